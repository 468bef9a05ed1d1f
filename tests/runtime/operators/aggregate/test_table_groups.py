"""Aggregates of a table, and count(distinct), on whole columns beside the oracle: every order of old and new rows."""

from __future__ import annotations

import random

import pytest

from tests.oracle import Deleted, difference, oracle, shipped
from tests.oracle.epochs import EpochRow
from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan
from vsc.runtime.operators.aggregate.groups.table_groups import TableGroupColumns
from vsc.runtime.operators.columns.flow import Flow

pytestmark = pytest.mark.slow

COLUMNS = "(k string, g string, n bigint, x double, d decimal(9,2), at bigint) from memory () key k timestamp at"
CALLS = {
    "sums": "sum(n) as a, avg(n) as b, sum(d) as c, avg(d) as e, count(*) as f, count(x) as h",
    "floats": "sum(x) as a, avg(x) as b, variance(x) as c, stddev(n) as e, variance(d) as f",
    "distinct": "count(distinct n) as a, count(distinct x) as b, count(distinct g) as c, count(distinct d) as e",
    "collected": "collect_list(n) as a, collect_list(d) as b, collect_set(n) as c, collect_set(x) as e, count(*) as f",
    "top": "collect_top(k, 2 by n) as a, collect_top(x, 3 by x desc) as b, collect_top(n, 1 by struct(d, g)) as c",
    "top of few": "collect_top(struct(n, k), 1000 by g desc) as a, collect_top(10 / n, 2 by d desc) as b",
    "percentiles": "approx_percentile(n, 0.5) as a, approx_percentile(x, 0.9) as b, approx_percentile(d, 0) as c",
    "failing percentiles": "approx_percentile(10 / n, 1) as a, 1 / (approx_percentile(n, 0.3) - 1) as b",
    "extremes": "min(n) as a, max(n) as b, min(x) as c, max(x) as e, max(d) as f, min(array(n, 1)) as h",
    "extremes by": "min_by(x, n) as a, max_by(n, x) as b, min_by(struct(n, k), d) as c, max_by(x, struct(n, d)) as e",
    "first and last": "first(n) as a, last(x) as b, first(struct(n, d)) as c, last(g) as e, first(k) as f",
    "failing extremes": "min(10 / n) as a, 1 / (max(n) - 2) as b, last(10 % n) as c",
    "nested": "collect_list(struct(n, g)) as a, collect_set(array(n, 1)) as b, collect_list(k) as c",
    "failing lists": "collect_list(10 / n) as a, 1 / (size(collect_set(n)) - 2) as b",
    "failing": "sum(10 / n) as a, count(distinct 10 % n) as b, count(*) as c",
    "failing results": "1 / (sum(n) - 1) as a, count(distinct n) as b",
    "overflow": f"sum(n * {2**59}) as a, count(*) as b",
}
STORES = ["", "materialize versioned (retention = 20 ms)", "materialize versioned (retention = 2 s)"]


def history(seed: int, rows: int, epochs: int, name: str) -> list[list[EpochRow]]:
    rng = random.Random(seed)
    found: list[list[EpochRow]] = []
    for epoch in range(epochs):
        found.append([])
        for i in range(rows):
            at = max(0, epoch * rows + i - rng.choice((0, 0, 0, 3, 40)))
            row = {
                "k": rng.choice("abcdefgh"), "g": rng.choice(["u", "v", None]),
                "n": rng.choice([None, 0, 1, 1, 2, -3]), "x": rng.choice([None, 0.1, -0.0, 0.0, 1e300, -1e300, 3.5]),
                "d": rng.choice([None, "1.25", "-7.00"]), "at": at,
            }  # fmt: skip
            deleted = name == "t" and rng.random() < 0.3
            found[-1].append(EpochRow(name, "0", epoch * rows + i, Deleted(k=row["k"]) if deleted else row, at))
    return found


def compare(plan: Plan, epochs: list[list[EpochRow]]) -> None:
    for partitions in (1, 2):
        expected = oracle(plan, epochs, ["o"], partitions)
        found = shipped(plan, epochs, ["o"], partitions)
        assert not difference(found, expected, in_sequence=partitions == 1)
        assert expected.outcome["o"]


@pytest.mark.parametrize("made", STORES[:2], ids=["plain", "stored"])
@pytest.mark.parametrize("of", STORES[::2], ids=["unversioned", "versioned"])
@pytest.mark.parametrize("calls", CALLS)
def test_changes_of_a_table_give_what_they_give_one_by_one(calls: str, of: str, made: str) -> None:
    result = f"table o = aggregate t group by g select {CALLS[calls]} {made};"
    text = f"table t {COLUMNS} {of}; {result} sink o to memory ();"
    plan = compile_topology(text, path="t.vdsl")
    compare(plan, history(1, 40, 2, "t"))


def test_old_results_come_with_the_new_ones() -> None:
    text = f"""table t {COLUMNS}; table p = aggregate t group by g select sum(n) as a, 1 / (sum(n) - 1) as b;
    table o = aggregate p group by a select count(*) as c, sum(a) as s; sink o to memory ();"""
    plan = compile_topology(text, path="t.vdsl")
    for seed in range(2):
        compare(plan, history(seed, 40, 2, "t"))


KEEPING = ["distinct", "collected", "nested", "failing", "failing lists"]
WINDOWS = {
    "": "",
    "tumbling": "window tumbling (size = 7 ms, grace = 3 ms)",
    "hopping": "window hopping (size = 9 ms, advance = 4 ms, grace = 12 ms)",
    "final": "window hopping (size = 9 ms, advance = 4 ms, grace = 12 ms) emit final",
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("calls", KEEPING)
def test_values_of_a_stream_are_kept_once(calls: str, window: str) -> None:
    made = f"aggregate s group by k {WINDOWS[window]} select {CALLS[calls]}"
    plan = compile_topology(f"stream s {COLUMNS}; table o = {made}; sink o to memory ();", path="t.vdsl")
    for seed in range(2):
        compare(plan, history(seed, 40, 3, "s"))


@pytest.mark.parametrize("calls", ["collected", "distinct"])
def test_old_lists_come_with_the_new_ones(calls: str) -> None:
    """What reads the rows before the changes, without a store that knows them."""
    text = f"""stream s {COLUMNS}; table p = aggregate s group by k select {CALLS[calls]};
    table o = aggregate p group by cast(a as string) as a select count(*) as c; sink o to memory ();"""
    if calls == "collected":
        text = text.replace("cast(a as string) as a", "size(a) as a")
    plan = compile_topology(text, path="t.vdsl")
    for seed in range(2):
        compare(plan, history(seed, 40, 3, "s"))


def test_a_table_is_aggregated_on_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not by the loop, which gives the same."""
    ran: list[int] = []
    process = TableGroupColumns.process

    def watched(self: TableGroupColumns, flow: Flow) -> Flow:
        ran.append(len(flow))
        return process(self, flow)

    monkeypatch.setattr(TableGroupColumns, "process", watched)
    text = f"table t {COLUMNS}; table o = aggregate t group by g select {CALLS['distinct']}; sink o to memory ();"
    compare(compile_topology(text, path="t.vdsl"), history(0, 30, 2, "t"))
    assert len(ran) == 6
