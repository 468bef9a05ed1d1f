"""Classes of the JVM are asked for by their full names: `vsc.runtime.spark.base.java` says why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PART_BY_PART = re.compile(r"\b_?jvm\.\w+")
"""A package, or a class that Py4J has imported, as ``jvm.Thread``: for that it looks into every package it knows."""


def test_no_name_is_asked_for_part_by_part() -> None:
    files = (path for folder in ("runtime", "tests/runtime") for path in (ROOT / folder).rglob("*.py"))
    found = {str(path.relative_to(ROOT)): PART_BY_PART.findall(path.read_text()) for path in files}
    del found["runtime/spark/base/java.py"]  # explains it
    del found["runtime/spark/session/interrupts.py"]  # the process of the JVM
    del found["tests/runtime/spark/session/test_interrupts.py"]
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "text", ["jvm.java.util.HashMap()", "spark._jvm.Thread", "self._jvm.org.apache.hadoop.fs.Path"]
)
def test_what_is_found(text: str) -> None:
    assert PART_BY_PART.search(text)
