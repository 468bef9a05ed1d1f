"""The mechanical part of the style (CONTRIBUTING.md): phrases, lines, sentences."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.english import MODULES, PAGES, ROOT, ROWS, SOURCES, STILTED, messages, prose, remarks

LONGEST_SENTENCE = 40


def test_a_document_has_no_stilted_phrase() -> None:
    pages = [page for page in PAGES if page.name != "CONTRIBUTING.md"]  # which shows them
    assert [(_name(page), hit) for page in pages for hit in _stilted(re.sub(r"\s", " ", prose(page)))] == []


def test_a_message_has_no_stilted_phrase() -> None:
    found = [(_name(m), line, hit) for m in (*MODULES, *ROWS) for line, text in messages(m) for hit in _stilted(text)]
    assert found == []


def test_a_docstring_or_comment_has_no_stilted_phrase() -> None:
    found = [
        (_name(m), line, hit)
        for m in SOURCES
        for line, text in remarks(m)
        for hit in _stilted(re.sub(r"\s+", " ", text))
    ]
    assert found == []


def test_a_line_has_at_most_120_characters() -> None:
    """But rows of tables, which cannot be broken, and code."""
    lines = [(page, n, line) for page in PAGES for n, line in enumerate(prose(page).split("\n"), 1)]
    assert [
        f"{_name(page)}:{n}"
        for page, n, line in lines
        if len(line.rstrip()) > 120 and not line.lstrip().startswith("|")
    ] == []


def test_a_sentence_of_a_message_is_short() -> None:
    """A text in backticks counts as one word."""
    found = [
        (_name(module), line, sentence)
        for module in (*MODULES, *ROWS)
        for line, text in messages(module)
        for sentence in re.split(r"(?<=[.:;?]) |\n", re.sub(r"`[^`]*`", "x", text))
        if len(sentence.split()) > LONGEST_SENTENCE
    ]
    assert found == []


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _stilted(text: str) -> list[str]:
    return [f"{hit.group()}: {better}" for phrase, better in STILTED.items() for hit in re.finditer(phrase, text)]
