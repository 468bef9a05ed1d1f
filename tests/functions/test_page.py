"""The example on the page about functions of one's own runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/own-functions.md"


def test_the_example_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (topology,) = re.findall(r"^```vdsl\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    module, test = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "scoring").mkdir()
    (tmp_path / "scoring/rules.py").write_text(module, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    seen = {"topology": topology}
    try:
        exec(test, seen)
    finally:
        for name in ("scoring", "scoring.rules"):
            sys.modules.pop(name, None)
    assert "found" in seen
