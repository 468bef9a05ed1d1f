"""Aggregates of a stream of which some records fail, are refused, or overflow: as the oracle has it, however cut."""

from __future__ import annotations

import random
from contextlib import nullcontext
from itertools import pairwise

import pytest

from tests.oracle import difference, oracle, shipped
from tests.oracle.epochs import EpochRow
from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan
from vsc.testing import TopologyTestDriver

pytestmark = pytest.mark.slow

COLUMNS = "(k string, n bigint, x double, d decimal(38,2), at bigint) from memory () key k timestamp at"
CALLS = {
    "item": "10 / (count(*) - 3) as a, sum(n) as b, first(n) as c, last(x) as e",
    "kept": "10 / (sum(n) % 4) as a, collect_list(n) as b, collect_set(x) as c, count(distinct n) as e",
    "top": "collect_top(n, 2 by x) as a, collect_top(x, 3 by n desc) as b, collect_top(10 / n, 1 by struct(d, n)) as c",
    "percentiles": "10 / (approx_percentile(n, 0.5) - 1) as a, approx_percentile(10 / n, 0.9) as b",
    "overflow": f"sum(n * {2**60}) as a, count(*) as b, avg(n * {2**60}) as c",
    "decimals": "sum(d) as a, avg(d) as b, min(d) as c, count(*) as e",
    "nested": "min(array(n, 1)) as a, max(struct(n, x)) as b, first(array(x)) as c, max_by(struct(n), x) as e",
    "spreads": "10 / (count(*) - 3) as a, variance(x) as b, stddev(n) as c, stddev(d) as e, bool_or(n > 2) as f",
    "arguments": "sum(10 / n) as a, min_by(x, 10 % n) as b",
}
WINDOWS = {
    "none": "",
    "tumbling": "window tumbling (size = 7 ms, grace = 3 ms)",
    "hopping": "window hopping (size = 9 ms, advance = 4 ms, grace = 12 ms)",
    "final": "window hopping (size = 9 ms, advance = 4 ms, grace = 2 ms) emit final",
    "session": "window session (gap = 3 ms, grace = 8 ms)",
    "sliding": "window sliding (difference = 4 ms, grace = 9 ms)",
}
STORES = {
    "plain": "",
    "kept": "materialize unversioned",
    "versioned": "materialize versioned (retention = 15 ms)",
}


def history(seed: int, hot: bool) -> list[EpochRow]:
    rng = random.Random(seed)
    found = []
    for i in range(120):
        at = max(0, i // 2 - rng.choice((0, 0, 0, 1, 4, 25)))
        row = {
            "k": "a" if hot and rng.random() < 0.9 else rng.choice("abcd"), "n": rng.choice([None, 0, 1, 1, 2, -3, 5]),
            "x": rng.choice([None, 0.1, -0.0, 0.0, 1e300]), "d": rng.choice([None, "1.25", "-7.00", "9" * 36 + ".99"]),
            "at": at,
        }  # fmt: skip
        found.append(EpochRow("s", "0", i, row, at))
    return found


def cut(rows: list[EpochRow], rng: random.Random) -> list[list[EpochRow]]:
    marks = [0, *sorted(rng.sample(range(1, len(rows)), 3)), len(rows)]
    return [rows[a:b] for a, b in pairwise(marks)]


def plan_of(calls: str, window: str, store: str) -> Plan:
    made = f"aggregate s group by k {WINDOWS[window]} select {CALLS[calls]} {STORES[store]}"
    return compile_topology(f"stream s {COLUMNS}; table o = {made}; sink o to memory ();", path="t.vdsl")


def compare(plan: Plan, seed: int, hot: bool = False) -> None:
    rng = random.Random(seed)
    epochs = cut(history(seed, hot), rng)
    restarts = [rng.random() < 0.5 for _ in epochs]
    for partitions in (1, 2):
        expected = oracle(plan, epochs, ["o"], partitions)
        found = shipped(plan, epochs, ["o"], partitions, restarts=restarts)
        assert not difference(found, expected, in_sequence=partitions == 1)
        assert expected.outcome["o"]


@pytest.mark.parametrize(
    ("window", "store"),
    [(window, store) for window in WINDOWS for store in STORES if window == "none" or store != "versioned"],
)
@pytest.mark.parametrize("calls", CALLS)
def test_as_record_by_record(calls: str, window: str, store: str) -> None:
    compare(plan_of(calls, window, store), 1)


@pytest.mark.parametrize("window", [window for window in WINDOWS if window != "none"])
def test_results_know_the_bounds_of_their_window(window: str) -> None:
    items = "10 / (count(*) - 3) as a, unix_millis(window_start) as b, unix_millis(window_end) as c"
    made = f"aggregate s group by k {WINDOWS[window]} select {items}"
    compare(compile_topology(f"stream s {COLUMNS}; table o = {made}; sink o to memory ();", path="t.vdsl"), 1)


@pytest.mark.parametrize("seed", range(4))
def test_one_hot_key(seed: int) -> None:
    for calls, window, store in (("item", "none", "versioned"), ("kept", "none", "plain"), ("kept", "hopping", "kept")):
        compare(plan_of(calls, window, store), seed, hot=True)


@pytest.mark.parametrize("window", ["none", "tumbling"])
def test_rows_before_the_changes(window: str) -> None:
    """Asked for by a reader, where no store has them."""
    text = f"""stream s {COLUMNS}; table p = aggregate s group by k {WINDOWS[window]} select {CALLS["kept"]};
    table o = aggregate p group by size(b) as a select count(*) as c, sum(e) as n; sink o to memory ();"""
    compare(compile_topology(text, path="t.vdsl"), 2)


def test_the_first_failure_ends_a_query_that_does_not_drop() -> None:
    plan = plan_of("item", "none", "plain")
    epochs = cut(history(3, hot=False), random.Random(3))
    expected = oracle(plan, epochs, ["o"], on_error="fail")
    found = shipped(plan, epochs, ["o"], on_error="fail")
    assert expected.failure is not None and "DIVIDE_BY_ZERO" in expected.failure
    assert found.failure == expected.failure


@pytest.mark.parametrize(
    ("window", "found", "failures"),
    [
        ("none", [6.0, 3.0, 2.0], 1),
        ("tumbling", [6.0, 3.0, 2.0], 1),
        ("session", [6.0, 3.0, 2.0], 1),
        ("sliding", [6.0, 6.0, 3.0, 3.0, 6.0, 2.0], 4),  # each record also makes a window, with one record less
    ],
)
def test_a_failing_result_does_not_undo_its_record(window: str, found: list[float], failures: int) -> None:
    """The result of one row fails, as it divides by 0; those of two to four rows are 6, 3 and 2."""
    made = f"aggregate s group by k {WINDOWS[window]} select 6 / (count(*) - 1) as q"
    text = f"stream s {COLUMNS}; table o = {made}; stream c = to_stream o; sink dropped to memory ();"
    for batch in (False, True):
        with TopologyTestDriver(text, on_error="drop") as driver:
            with driver.batch() if batch else nullcontext():
                for at in range(4):
                    driver.pipe("s", {"k": "a", "n": at, "x": 0.0, "d": None, "at": at})
            assert [r.value["q"] for r in driver.read("c") if r.value is not None] == found
            assert driver.metrics()["dropped_records"] == {"o": {"expression_failed": failures}}
            letters = [(r.value or {})["value"] for r in driver.read("dropped")]
            assert len(letters) == failures and '"n":0' in str(letters[0])
