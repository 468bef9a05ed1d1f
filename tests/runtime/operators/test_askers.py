"""How much of a table's history is kept while what looks into it stands still: as much as can still be asked for."""

from __future__ import annotations

import pytest

from tests.oracle import shipped
from tests.oracle.epochs import EpochRow
from vsc.compiler import compile_topology

TABLES = """
table t (k string, n bigint, at bigint) from memory () key k timestamp at
materialize versioned (retention = 10 ms, segment = 1 ms);
table u (k string, n bigint, at bigint) from memory () key k timestamp at;
stream s (k string, n bigint, at bigint) from memory () key k timestamp at;
table held = suppress u until time limit 1 minute;
sink t to memory ();
"""
COUNT = 300


@pytest.mark.parametrize(
    ("reader", "keeps"),
    [
        ("table r = join held with t select held.n;", False),
        ("table r = join held with t on held.k select held.n;", False),
        ("stream r = join s with u select s.n;", False),
        ("stream r = left join s with t select s.n;", True),
        ("table high = filter t where n > 0; stream r = left join s with high select s.n;", True),
    ],
)
def test_what_stands_still_keeps_the_history_that_it_can_ask_for(reader: str, keeps: bool) -> None:
    plan = compile_topology(f"{TABLES}{reader}\nsink r to memory ();", path="askers.vdsl")
    rows = [EpochRow("t", "", at, {"k": "a", "n": 1, "at": at}, at) for at in range(COUNT)]
    epochs = [rows[start : start + 10] for start in range(0, COUNT, 10)]
    content = shipped(plan, epochs, ["t"], clock="input").stores.content(plan)
    versions = max(
        len(rows) for (_, _, node, place), (_, _, rows) in content.items() if (node, place) == ("t", "table")
    )
    assert versions == COUNT if keeps else versions <= 30
