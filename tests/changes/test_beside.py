"""Columns that are not in the value of a record: an option that makes a column one of them gives it another meaning."""

from __future__ import annotations

import pytest

from tests.changes.test_diff import verdicts

CLICKS = """
stream clicks (page string, part int{columns}) from kafka (bootstrap_servers = 'b', topic = 'clicks', format = 'json'
{options}) key page;
table seen = aggregate clicks group by part select count(*) as n;
sink seen to noop ();
{more}
"""


def clicks(columns: str = "", options: str = "", more: str = "") -> str:
    return CLICKS.format(columns=columns, options=options, more=more)


def test_the_partition_and_the_offset_can_be_added() -> None:
    new = clicks(", p int, o bigint", ", partition = 'p', offset = 'o'", "sink clicks to noop ();")
    assert verdicts(clicks(), new) == {
        "source clicks": "widened: a new column `p`, a new column `o`; partition was not given, is 'p'; "
        "offset was not given, is 'o'",
        "sink clicks to noop": "new",
    }


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("", ", partition = 'part'", "partition was not given, is 'part'"),
        (", partition = 'part'", "", "partition was 'part', is not given"),
        (", partition = 'part'", ", partition = 'other'", "partition was 'part', is not given"),
    ],
)
def test_a_column_that_becomes_the_partition_holds_something_else(old: str, new: str, words: str) -> None:
    found = verdicts(*(clicks(", other int", options) for options in (old, new)))
    assert found["store seen"] == f"rebuild: `clicks`: {words}"
