"""Every pass on its fixture file, ``fixtures/<pass>.vdsl``.

A file is a prelude and cases, each begun by a line ``--- what it shows``; the prelude stands in front of every case.
A case is right if it has exactly the findings that are noted beside its lines (`tests/compiler/notes.py`). That a node
reaches no sink is a finding in the cases of `usage` alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compiler.notes import Finding, finding, noted
from vsc.compiler.driver import compile_source
from vsc.compiler.source import SourceFile, Span

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.vdsl"))
PASSES = Path(__file__).parents[3] / "compiler" / "passes"
# what passes are made of
_HELPERS = {
    "__init__",
    "check",
    "columns",
    "conditions",
    "connector_values",
    "holds",
    "survey",
    "offsets",
    "options",
    "shapes",
    "zones",
}


def cases(path: Path) -> Iterator[tuple[str, str]]:
    prelude, *parts = re.split(r"^--- ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for part in parts:
        title, _, text = part.partition("\n")
        yield title, f"{prelude}-- {title}\n{text}"


def _found(text: str, usage: bool) -> list[Finding]:
    source = SourceFile("case.vdsl", text)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for d in compile_source(text, "case.vdsl").diagnostics:
        span = Span(starts[d.line - 1] + d.column - 1, starts[d.end_line - 1] + d.end_column - 1)
        if usage or d.code != "VSC123":
            found.append(finding(source, d.code, span))
        assert d.help or d.code < "VSC1", f"{d.code} says nothing to do"
    return sorted(found)


@pytest.mark.parametrize(
    ("path", "text"), [pytest.param(p, text, id=f"{p.stem}: {title}") for p in FIXTURES for title, text in cases(p)]
)
def test_a_case_has_exactly_the_findings_that_are_written_beside_it(path: Path, text: str) -> None:
    plain, expected = noted(text)
    assert _found(plain, path.stem == "usage") == expected


def test_every_pass_has_a_fixture_file() -> None:
    passes = {path.stem for path in PASSES.glob("*.py")} - _HELPERS
    assert passes <= {path.stem for path in FIXTURES}
