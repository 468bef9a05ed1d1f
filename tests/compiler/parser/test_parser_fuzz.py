"""No text makes the parser raise, hang or forget a place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsc.compiler.diagnostics.codes import CODES
from vsc.compiler.parser import parse, parse_expression
from vsc.compiler.parser.tables import load_tables
from vsc.compiler.syntax import File

_WORDS = sorted(load_tables().words) + sorted(load_tables().signs)
_OTHERS = [
    "a", "b", "`c d`", "'x'", "'${v}'", "${v}", "1", "1.5", "1e6", "5 days", "5", "dayz", "==", "SELECT",
    "'", "`", "${", '"', "--", "/*", "\n", "\0", "é", "3x", ".", "\ufeff", "(" * 40, "9" * 41,
]  # fmt: skip
SOUP = st.lists(st.sampled_from(_WORDS + _OTHERS), max_size=60).map(" ".join)
STATEMENTS = st.lists(
    st.sampled_from(
        [
            "stream s (a string, b int) from files (path = 'x', format = 'json') key a timestamp b;",
            "table t = aggregate s group by a window tumbling (size = 1 hour) emit final select count(*) as n;",
            "stream j = left join s as x with t as y on a as k grace 5 minutes select x.*, y.b + 1 as c;",
            "table m = suppress t until time limit 5 seconds (max_records = 10, when_full = 'emit');",
            "sink s to console ();",
        ]
    ),
    min_size=1,
    max_size=4,
).map(lambda parts: "\n".join(["stream first (a string) from memory ();", *parts]))


def _check(text: str) -> None:
    parsed = parse(text, {"v": "1"})
    assert isinstance(parsed.file, File)
    assert parsed.file.statements or parsed.findings
    for finding in parsed.findings:
        assert finding.code in CODES
        assert 0 <= finding.span.start <= finding.span.end <= len(text)
        assert finding.message and "$END" not in finding.message and "ANON" not in finding.message


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    _check(text)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(SOUP)
def test_any_words(text: str) -> None:
    _check(text)
    parse_expression(text)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(STATEMENTS, st.data())
def test_a_good_text_with_a_piece_cut_out(text: str, data: st.DataObject) -> None:
    assert parse(text).findings == ()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 12, len(text))))
    _check(text[:start] + text[end:])
