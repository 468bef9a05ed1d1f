"""Which columns of a source are read at all: all that anything needs, whichever input of a join it is."""

from __future__ import annotations

import pytest

from vsc.compiler import compile_topology
from vsc.plan.read_columns import read_columns

SOURCES = """
stream a (k string, x int, u int, at bigint) from memory () key k timestamp at;
stream b (k string, y int, v int, at bigint) from memory () key k timestamp at;
"""


@pytest.mark.parametrize(
    ("statement", "of_a", "of_b"),
    [
        ("stream j = join a with b within 1 hour select x, y;", {"k", "at", "x"}, {"k", "at", "y"}),
        ("stream j = join b with a within 1 hour select y;", {"k", "at"}, {"k", "at", "y"}),
        ("stream j = outer join a as l with a as r within 1 hour select l.x, r.u;", {"k", "at", "x", "u"}, {"k", "at"}),
    ],
)
def test_a_join_of_streams_reads_the_columns_of_both(statement: str, of_a: set[str], of_b: set[str]) -> None:
    plan = compile_topology(SOURCES + statement + "sink j to memory ();")
    assert read_columns(plan, "a") == of_a
    assert read_columns(plan, "b") == of_b


CORRECTED = """
table t (k string, z int, w int, at bigint) from memory () key k timestamp at
materialize versioned (retention = 1 hour);
table j = join a with t on {on} {grace} correct by {by} within 1 hour select {items};
"""


@pytest.mark.parametrize("grace", ["", "grace 1 minute"])
@pytest.mark.parametrize(
    ("on", "by", "items", "of_a"),
    [
        ("k", "u", "z, revision() as r", {"k", "at", "u"}),
        ("k", "k", "x + z as z", {"k", "at", "x"}),
        ("cast(u as string)", "k", "z", {"k", "at", "u"}),
    ],
)
def test_a_corrected_join_reads_what_it_names_results_by_and_what_its_items_need(
    on: str, by: str, items: str, of_a: set[str], grace: str
) -> None:
    statement = CORRECTED.format(on=on, by=by, items=items, grace=grace)
    assert read_columns(compile_topology(SOURCES + statement + "sink j to memory ();"), "a") == of_a
