"""The mechanical part of the style (CONTRIBUTING.md): phrases, lines, sentences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.english import MODULES, PAGES, ROOT, SOURCES, STILTED, messages, prose, remarks

LONGEST_SENTENCE = 40


def _named(paths: list[Path]) -> list[object]:
    return [pytest.param(path, id=str(path.relative_to(ROOT))) for path in paths]


@pytest.mark.parametrize("page", _named(PAGES))
def test_a_document_has_no_stilted_phrase(page: Path) -> None:
    if page.name == "CONTRIBUTING.md":
        pytest.skip("shows them")
    assert _stilted(re.sub(r"\s", " ", prose(page))) == []


def test_a_message_has_no_stilted_phrase() -> None:
    found = [
        (str(m.relative_to(ROOT)), line, hit) for m in MODULES for line, text in messages(m) for hit in _stilted(text)
    ]
    assert found == []


def test_a_docstring_or_comment_has_no_stilted_phrase() -> None:
    found = [
        (str(m.relative_to(ROOT)), line, hit)
        for m in SOURCES
        for line, text in remarks(m)
        for hit in _stilted(re.sub(r"\s+", " ", text))
    ]
    assert found == []


@pytest.mark.parametrize("page", _named(PAGES))
def test_a_line_has_at_most_120_characters(page: Path) -> None:
    """But rows of tables, which cannot be broken, and code."""
    lines = prose(page).split("\n")
    assert [
        n for n, line in enumerate(lines, 1) if len(line.rstrip()) > 120 and not line.lstrip().startswith("|")
    ] == []


def test_a_sentence_of_a_message_is_short() -> None:
    """A text in backticks counts as one word."""
    found = [
        (str(module.relative_to(ROOT)), line, sentence)
        for module in MODULES
        for line, text in messages(module)
        for sentence in re.split(r"(?<=[.:;?]) |\n", re.sub(r"`[^`]*`", "x", text))
        if len(sentence.split()) > LONGEST_SENTENCE
    ]
    assert found == []


def _stilted(text: str) -> list[str]:
    return [f"{hit.group()}: {better}" for phrase, better in STILTED.items() for hit in re.finditer(phrase, text)]
