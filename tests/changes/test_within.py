"""What changes of a join of what came before mean."""

from __future__ import annotations

import pytest

from tests.changes.test_diff import verdicts

BEFORE = """
stream p (id string, k string, n int, at bigint) from files (path = 'p', format = 'json') key k timestamp at;
stream o = left join p as l with p as r within (before = 7 days) grace 1 hour strictly before
  select l.id, count(r.id) as c, max(r.n) over 1 day as top;
sink o to files (path = 'o', format = 'json');
"""


@pytest.mark.parametrize(
    ("old", "new", "verdict", "of_sink"),
    [
        ("select l.id", "select l.id", None, None),
        ("left join", "join", "rebuild: `o`: it was a left join, is an inner join", "same"),
        ("before = 7 days", "before = 8 days", "rebuild: `o`: before was 7 days, is 8 days", "same"),
        ("grace 1 hour", "grace 2 hours", "limits: grace was 1 hour, is 2 hours", None),
        (
            " grace 1 hour", "",
            "rebuild: `o`: grace was 1 hour, is 0 ms: no result waits any more, and those that do would be lost",
            "same",
        ),
        (
            "strictly before", "",
            "rebuild: `o`: it was a join `strictly before`, is a join that counts records of the same time", "same",
        ),
        (
            "over 1 day", "over 2 days",
            "rebuild: `o`: it computed `max(r.n) over 1 day`, computes `max(r.n) over 2 days`", "same",
        ),
        ("count(r.id)", "count(r.n)", "rebuild: `o`: it computed `count(r.id)`, computes `count(r.n)`", "same"),
        (" as c,", " as c, sum(r.n) as s,", "rebuild: `o` computes a new column `s`", "same"),
        ("count(r.id) as c, ", "", "widened: the column `c` is gone", "same"),
    ],
)  # fmt: skip
def test_what_a_change_means(old: str, new: str, verdict: str | None, of_sink: str | None) -> None:
    wanted = {"store o#records": verdict, "sink o to files 'o'": verdict if of_sink else None}
    assert verdicts(BEFORE, BEFORE.replace(old, new)) == {name: text for name, text in wanted.items() if text}
