"""Every block of ``tests/compiler/parser/syntax.md`` has exactly the findings that are noted beside its lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.compiler.notes import finding, noted
from vsc.compiler.diagnostics.codes import CODES
from vsc.compiler.parser import parse
from vsc.compiler.source import SourceFile

PAGE = Path(__file__).with_name("syntax.md").read_text(encoding="utf-8")
BLOCKS = [(PAGE.count("\n", 0, m.start()) + 2, m[1]) for m in re.finditer(r"^```vdsl\n(.*?)^```", PAGE, re.M | re.S)]


@pytest.mark.parametrize("text", [pytest.param(text, id=f"line {line}") for line, text in BLOCKS])
def test_a_block_has_exactly_the_findings_that_are_noted_beside_it(text: str) -> None:
    plain, expected = noted(text)
    source = SourceFile("x", plain)
    assert sorted(finding(source, f.code, f.span) for f in parse(plain).findings) == expected


def test_every_finding_says_what_to_do() -> None:
    without = {f.message for _, text in BLOCKS for f in parse(noted(text)[0]).findings if f.help is None}
    assert all(message.startswith(("expected ", "a statement begins")) for message in without), without


def test_every_code_of_the_syntax_is_shown() -> None:
    shown = {code for _, code, _ in noted(PAGE)[1]}
    assert {code for code in CODES if code.startswith("VSC0")} - shown == {
        "VSC015",  # too long for a page
        "VSC027", "VSC028",  # of files: tests/compiler/test_includes.py
        "VSC029",  # of comments: tests/compiler/test_allowances.py
    }  # fmt: skip
