"""What can stand at a place of a text that is being written."""

from __future__ import annotations

import pytest

from vsc.compiler.parser.expect import expected_at


@pytest.mark.parametrize(
    ("text", "keywords", "names"),
    [
        ("", "function global include let sink stream table topology", ""),
        ("stream s (k string) ", "delete from key materialize timestamp", ""),
        ("stream s (k ", "", "plain_type"),
        ("stream s (k string) from files (", "", "option_name"),
        ("stream s (k string) from memory () key ", "", "*"),
        ("stream x = join ", "", "input"),
        ("stream x = join a with b ", "as correct drop grace max_age on select strictly within", ""),
        ("stream x = filter a where ", "case cast false not null true", "column_name"),
        ("stream x = join a as ", "", ""),  # a new name
        ("stream m = merge a, ", "", "node"),
        ("table t = suppress x until ", "time window", ""),
        ("stream broken = filter a wher b; table t = suppress x until window ", "closes", ""),
        ("stream broken = filter a wher b\ntable t = suppress x until window ", "closes", ""),
        ("stream broken = filter a wher ", "", ""),
    ],
)
def test_keywords_and_names_that_fit(text: str, keywords: str, names: str) -> None:
    found = expected_at(text + "whatever follows", len(text))
    assert found is not None
    assert (" ".join(found.keywords), " ".join(found.names)) == (keywords, names)


@pytest.mark.parametrize(
    "text", ["-- a comment", "stream s = filter a where b = 'tex", "stream s = filter a where b > 1"]
)
def test_nothing_fits_inside_of_strings_comments_and_numbers(text: str) -> None:
    assert expected_at(text, len(text)) is None
