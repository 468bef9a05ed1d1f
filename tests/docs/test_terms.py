"""The terms of docs/glossary.md: one word for one thing, where users read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from vsc.cli import whole_parser

DOCS = Path(__file__).parents[2] / "docs"
TERMS = (DOCS / "glossary.md").read_text(encoding="utf-8")
_OTHERS = re.compile(r"`[^`]*`|Arrow batch(es)?|micro-batch(es)?|Serverless batches|values of a batch")
"""What is called a batch beside an epoch: names, other systems' words, the rows that a function gets at once."""


def _prose(page: Path) -> str:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return _OTHERS.sub("", text)


def _helps() -> Iterator[tuple[str, str]]:
    parser = whole_parser()
    for action in parser._subparsers._group_actions:  # type: ignore[union-attr]
        for name, inner in action.choices.items():  # type: ignore[union-attr]
            yield name, inner.format_help()


def test_an_epoch_is_called_one_in_help_and_on_the_pages_about_running() -> None:
    assert [name for name, text in _helps() if re.search(r"\bbatch", text)] == []
    pages = [*(DOCS / "diagnostics").glob("*.md"), *(DOCS / f"{name}.md" for name in ("guide", "changing", "time"))]
    assert [page.name for page in pages if re.search(r"\bbatch", _prose(page))] == []


def test_grace_is_explained_for_each_clause_that_has_one() -> None:
    [section] = re.findall(r"^## Grace\n(.*?)^## ", TERMS, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| a (.*?) \|", section, re.MULTILINE)
    words = ("join", "streams", "window", "distinct", "store")
    assert [word for word in words if not any(word in row for row in rows)] == []


def test_a_term_stands_once_and_those_of_the_code_elsewhere() -> None:
    terms = re.findall(r"^\| (\*\*.+?\*\*) \|", TERMS, re.MULTILINE)
    words = [
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", word) for row in terms for word in re.findall(r"\*\*(.+?)\*\*", row)
    ]
    assert len(words) == len(set(words)) > 40
    inside = re.findall(r"^\| ([a-z -]+?) \|", (DOCS / "inside/words.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"blob", "cause", "moment", "route", "site", "turn"} <= set(inside)
    assert set(words) & set(inside) <= {"batch"}
