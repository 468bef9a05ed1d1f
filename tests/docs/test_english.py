"""The mechanical part of the style (CONTRIBUTING.md): phrases, lines, sentences."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path

from tests.docs.english import MODULES, PAGES, ROOT, ROWS, SOURCES, STILTED, messages, prose, remarks

LONGEST_SENTENCE = 40


def test_a_document_has_no_stilted_phrase() -> None:
    pages = [page for page in PAGES if page.name != "CONTRIBUTING.md"]  # which shows them
    assert _stilted([(_name(page), 0, re.sub(r"\s", " ", prose(page))) for page in pages]) == []


def test_a_message_has_no_stilted_phrase() -> None:
    assert _stilted([(_name(m), line, text) for m in (*MODULES, *ROWS) for line, text in messages(m)]) == []


def test_a_docstring_or_comment_has_no_stilted_phrase() -> None:
    assert _stilted([(_name(m), line, re.sub(r"\s+", " ", text)) for m in SOURCES for line, text in remarks(m)]) == []


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


def _stilted(texts: list[tuple[str, int, str]]) -> list[tuple[str, int, str]]:
    """The phrases in texts, with their places. All texts are searched as one: no phrase has a line break."""
    starts = list(accumulate((len(text) + 1 for _, _, text in texts), initial=0))
    whole = "\n".join(text for _, _, text in texts)
    hits = ((hit, better) for phrase, better in STILTED.items() for hit in re.finditer(phrase, whole))
    return [(*texts[bisect_right(starts, hit.start()) - 1][:2], f"{hit.group()}: {better}") for hit, better in hits]


def test_a_phrase_is_found_at_its_place() -> None:
    texts = [("a", 1, "one anew"), ("b", 2, "what"), ("b", 3, "waits; all is mended")]
    assert _stilted(texts) == [("b", 3, "mended: fix"), ("a", 1, "anew: again")]
