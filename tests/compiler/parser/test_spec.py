"""Every block of ``tests/compiler/parser/syntax.md`` has exactly the findings that are written beside its lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vsc.compiler.diagnostics.codes import CODES
from vsc.compiler.parser import parse
from vsc.compiler.source import SourceFile

PAGE = Path(__file__).with_name("syntax.md").read_text(encoding="utf-8")
BLOCKS = [(PAGE.count("\n", 0, m.start()) + 2, m[1]) for m in re.finditer(r"^```vdsl\n(.*?)^```", PAGE, re.M | re.S)]


@pytest.mark.parametrize("text", [pytest.param(text, id=f"line {line}") for line, text in BLOCKS])
def test_a_block_has_the_findings_that_are_written_beside_it(text: str) -> None:
    expected = sorted((number, code) for number, line in enumerate(text.split("\n"), 1)
                      for code in re.findall(r"-- error: (VSC\d{3})", line))  # fmt: skip
    source = SourceFile("x", text)
    found = [(source.position(finding.span.start).line, finding.code) for finding in parse(text).findings]
    if expected and expected[0][1] == "VSC013":
        assert [code for _, code in found] == ["VSC013"]
    else:
        assert sorted(found) == expected


def test_every_finding_says_what_to_do() -> None:
    without = {f.message for _, text in BLOCKS for f in parse(text).findings if f.help is None}
    assert all(message.startswith(("expected ", "a statement begins")) for message in without), without


def test_every_code_of_the_syntax_is_shown() -> None:
    shown = set(re.findall(r"-- error: (VSC\d{3})", PAGE))
    assert {code for code in CODES if code.startswith("VSC0")} - shown == {"VSC015"}  # too long for a page
