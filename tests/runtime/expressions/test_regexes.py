"""Regular expressions, row by row and over columns: values as Java's. All of Java's are in `test_regexes_spark.py`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.expressions.test_failures import both, steps


@pytest.mark.parametrize(
    ("call", "text", "found"),
    [
        ("regexp_like(s, 'b')", "abc", True),
        ("regexp_like(s, '^b')", "abc", False),
        ("regexp_like(s, 'c$')", "abc", True),
        ("regexp_like(s, 'c$')", "abcd", False),
        ("regexp_like(s, 'c$')", "abc\n\n", False),
        ("regexp_like(s, 'c$')", "abc\n", True),
        ("regexp_like(s, 'c$')", "abc\r\n", True),
        ("regexp_like(s, '\\r$')", "abc\r\n", False),
        ("regexp_like(s, 'c\\z')", "abc\n", False),
        ("regexp_like(s, '(?i)STRASSE')", "strasse", True),
        ("regexp_like(s, '\\d')", "٣", False),
        ("regexp_like(s, '')", "", True),
        ("regexp_like(s, 'a')", None, None),
        ("regexp_extract(s, '(\\d+)-(\\d+)')", "x 12-345", "12"),
        ("regexp_extract(s, '(\\d+)-(\\d+)', 2)", "x 12-345", "345"),
        ("regexp_extract(s, '\\d+-?', 0)", "x 12-345", "12-"),
        ("regexp_extract(s, '(a)|(b)', 1)", "b", ""),
        ("regexp_extract(s, '(a)', 1)", "b", ""),
        ("regexp_extract(s, '.*$', 0)", "ab\r\n", "ab"),
        ("regexp_extract(s, '(\\s*?)$', 1)", " \n", " "),
        ("regexp_extract(s, 'b$|a', 0)", "cb\n", "b"),
        ("regexp_extract(s, '(a)', 1)", None, None),
        ("regexp_replace(s, '[,;]+', ' ')", "a,;b,c", "a b c"),
        ("regexp_replace(s, '(\\w)(\\w)', '$2$1')", "abcde", "badce"),
        ("regexp_replace(s, '(a)', '$11\\$\\\\')", "ba", "ba1$\\"),
        ("regexp_replace(s, '^a', '')", "aa", "a"),
        ("regexp_replace(s, '.', 'x')", "\U0001d11e\n", "x\n"),
        ("regexp_replace(s, 'a', '')", None, None),
    ],
)
def test_a_regular_expression(call: str, text: str | None, found: Any) -> None:
    assert both(call, s=text) == found


def test_time_grows_with_the_text() -> None:
    """Java and Python would take longer than anyone waits."""
    assert both("regexp_like(s, '^(a|aa)+$')", s="a" * 10_000 + "b") is False
    assert steps(lambda: both("regexp_like(s, '(x+x+)+y')", s="x" * 10_000)) < 20_000


def test_a_replacement_that_is_too_long() -> None:
    found = both(f"regexp_replace(s, 'a', '{'b' * 1000}')", s="a" * 3_000_000)
    assert found == "[VALUE_TOO_LONG] the result could have more than 100000000 characters"
