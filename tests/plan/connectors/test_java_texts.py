"""Texts of Java in options: those that are surely wrong are refused, all others are not."""

from __future__ import annotations

import pytest

from vsc.plan.connectors.java_texts import wrong_glob, wrong_regex, wrong_time_pattern


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("*.parquet", "a `*` that repeats nothing"),
        ("a|+b", "a `+` that repeats nothing"),
        ("(?:?a)", "a `?` that repeats nothing"),
        ("(a", "a `(` without its `)`"),
        ("a)", "a `)` without its `(`"),
        ("[a", "a `[` without its `]`"),
        ("[^]", "a `[` without its `]`"),
        ("a{,3}", "a `{` that is not `{n}`, `{n,}` or `{n,m}`"),
        ("{country}", "a `{` that is not `{n}`, `{n,}` or `{n,m}`"),
        ("(?P<day>a)", "`(?P`, where Java has `(?<name>...)`"),
        ("a\\", "a `\\` at its end"),
    ],
)
def test_a_broken_regular_expression_is_told(text: str, found: str) -> None:
    message, _ = wrong_regex("excludeRegex", text) or ("", "")
    assert message == f"'excludeRegex' is a regular expression, and '{text}' has {found}"


@pytest.mark.parametrize(
    "text",
    [
        "", ".*/day=2026-\\d{2}/.*", "(?i)a(?<n>b|c)\\k<n>", "[]]", "[^])(*]", "\\(*", "\\Q(*\\E", "(?x) a # (",
        "a*+b*?", "[a[*(]]", "[\\](]", "\\p{L}\\x{41}{2}", "a{2}{3}", "]}", "{2}", "(?<=a)(?!b)(?>c)(?i:d)", "(|a)",
    ],
)  # fmt: skip
def test_other_regular_expressions_are_not(text: str) -> None:
    assert wrong_regex("excludeRegex", text) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[", "a `[` without its `]`"),
        ("[a[b]", "a `[` without its `]`"),
        ("{a,b", "a `{` without its `}`"),
        ("a\\", "a `\\` at its end"),
    ],
)
def test_a_broken_glob_is_told(text: str, found: str) -> None:
    message, help = wrong_glob("pathGlobFilter", text) or ("", "")
    assert message == f"'pathGlobFilter' is a pattern of names, and '{text}' has {found}"
    assert help == "write one, such as '*.json'"


@pytest.mark.parametrize("text", ["", "*.json", "[!a-c]*", "{a,{b,c}}?", "a}", "]", "\\[", "\\{", "[{]}", "(|+.$^"])
def test_other_globs_are_not(text: str) -> None:
    assert wrong_glob("pathGlobFilter", text) is None


@pytest.mark.parametrize(
    ("text", "found", "help"),
    [
        ("yyyy-MM-ddTHH:mm", "`T`, which Spark does not know", "between quotes, each doubled in a topology: ''T''"),
        ("YYYY-MM-dd", "`YYYY`, which Spark does not know", "write `yyyy`"),
        ("EEE dd", "`EEE`, which Spark does not know", "''EEE''"),
        ("SSSSSSSSSS", "`SSSSSSSSSS`, which Spark does not know", ""),
        ("yyyy 'at", "a quote without its end", "close it"),
        ("HH:mm]", "the reserved sign `]`", "write it as text: '']''"),
        ("{yyyy}", "the reserved sign `{`", "write it as text: ''{''"),
    ],
)
def test_a_pattern_that_no_time_can_be_read_by_is_told(text: str, found: str, help: str) -> None:
    message, action = wrong_time_pattern("dateFormat", text, reads=True) or ("", "")
    assert message == f"'dateFormat' is a pattern of times, and '{text}' has {found}"
    assert help in action


@pytest.mark.parametrize(
    "text", ["", "yyyy-MM-dd'T'HH:mm[:ss[.SSS]][XXX]", "''", "'T''T'", "dd. MMM yy", "SS'at", "[HH", "D/y G"]
)
def test_other_patterns_are_not(text: str) -> None:
    assert wrong_time_pattern("dateFormat", text, reads=True) is None


def test_times_are_written_with_more_letters_than_they_are_read_with() -> None:
    assert wrong_time_pattern("dateFormat", "EEE Q", reads=False) is None
    assert wrong_time_pattern("dateFormat", "EEEEE", reads=False) is not None
