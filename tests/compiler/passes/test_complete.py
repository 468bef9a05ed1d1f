"""What a warning about versions that are results advises, and that it is right to follow it."""

from __future__ import annotations

import pytest

from vsc.compiler import check_topology

TABLES = """
stream s (k string, at bigint) from memory () key k timestamp at;
table a (k string, f string, n bigint, at bigint) from memory () key k timestamp at
  materialize versioned (retention = 1 day);
stream i = join s with a select n;
sink i to console ();
sink j to console ();
"""
KEPT = "materialize versioned (retention = 1 day)"
COMPLETE = "materialize versioned (retention = 1 day, history = 'complete')"


@pytest.mark.parametrize(
    ("text", "help", "right"),
    [
        (
            f"table c = join a with a as b select a.n as n {KEPT}; stream j = join s with c select n;",
            "add `history = 'complete'`, which makes them right; or",
            f"table c = join a with a as b select a.n as n {COMPLETE}; stream j = join s with c select n;",
        ),
        (
            f"table c = aggregate a group by f select count(*) as n; table m = materialize c {KEPT[12:]};"
            "stream j = join s with m select n;",
            "give `c` a complete history, with `history = 'complete'` in a clause of its own; or",
            f"table c = aggregate a group by f select count(*) as n {COMPLETE};stream j = join s with c select n;",
        ),
    ],
)
def test_the_advice_makes_the_history_right(text: str, help: str, right: str) -> None:
    (found,) = check_topology(TABLES + text)
    assert (found.code, (found.help or "")[: len(help)]) == ("VSC311", help)
    assert check_topology(TABLES + right) == ()


def test_a_count_of_a_stream_cannot_be_complete_but_is_right_in_order() -> None:
    text = TABLES + f"table c = aggregate s group by k select count(*) as n {KEPT}; stream j = join s with c select n;"
    (found,) = check_topology(text)
    assert (found.code, found.help) == (
        "VSC311", "put its records in order, with `reorder within` in their source, which makes them right; or "
        "materialize it unversioned, if only the newest result is read",
    )  # fmt: skip
    ordered = text.replace("timestamp at;", "timestamp at reorder within 1 hour;", 1)
    assert check_topology(ordered) == ()
