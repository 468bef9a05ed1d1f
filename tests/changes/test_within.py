"""What changes of a join of what came before mean."""

from __future__ import annotations

import pytest

from tests.changes.test_diff import verdicts

BEFORE = """
stream p (id string, k string, n int, m int, at bigint) from files (path = 'p', format = 'json') key k timestamp at;
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
            None, "rebuild: `o`: it computed `max(r.n) over 1 day`, computes `max(r.n) over 2 days`",
        ),
        ("count(r.id)", "count(r.n)", None, "rebuild: `o`: it computed `count(r.id)`, computes `count(r.n)`"),
        (" as c,", " as c, sum(r.n) as s,", None, "rebuild: `o` computes a new column `s`"),
        ("count(r.id)", "count(r.m)", "rebuild: nothing had read `m` of `p` before",
         "rebuild: `o`: it computed `count(r.id)`, computes `count(r.m)`"),
        ("count(r.id) as c, ", "", None, "widened: the column `c` is gone"),
    ],
)  # fmt: skip
def test_what_a_change_means(old: str, new: str, verdict: str | None, of_sink: str | None) -> None:
    """The state has whole records, so calls may be others."""
    wanted = {"store o#records": verdict, "sink o to files 'o'": verdict if of_sink == "same" else of_sink}
    assert verdicts(BEFORE, BEFORE.replace(old, new)) == {name: text for name, text in wanted.items() if text}
