"""Classes of the JVM are asked for by their full names: `vsc.runtime.spark.base.java` says why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parents[2] / "runtime"
PART_BY_PART = re.compile(r"\b_?jvm\.\w+")
"""A package, or a class that Py4J has imported, as ``jvm.Thread``: for that it looks into every package it knows."""


def test_no_name_is_asked_for_part_by_part() -> None:
    found = {str(path.relative_to(RUNTIME)): PART_BY_PART.findall(path.read_text()) for path in RUNTIME.rglob("*.py")}
    del found["spark/base/java.py"]  # explains it
    del found["spark/session/interrupts.py"]  # the process of the JVM
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "text", ["jvm.java.util.HashMap()", "spark._jvm.Thread", "self._jvm.org.apache.hadoop.fs.Path"]
)
def test_what_is_found(text: str) -> None:
    assert PART_BY_PART.search(text)
