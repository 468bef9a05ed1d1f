"""Aggregates: their functions against plain Python over the same rows, with rows taken back, in windows and without."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction
from typing import Any

import pytest

from vsc.testing import Record, TopologyTestDriver

pytestmark = pytest.mark.slow

ALL = """count(*) as rows, count(v) as c, count(distinct v) as d, sum(v) as s, avg(v) as a, min(v) as mn, max(v) as mx,
  min_by(v, w) as mnb, max_by(v, w) as mxb, first(v) as f, last(v) as l, collect_list(v) as cl, collect_set(v) as cs,
  variance(v) as var, stddev(v) as sd, bool_and(v > 0) as ba, bool_or(v > 4) as bo,
  collect_top(v, 2 by w) as t, collect_top(w, 3 by v desc) as td, approx_percentile(v, 0.4) as p"""


def expected(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What the functions give for rows in order of arrival, each with its `time`."""
    values = [r["v"] for r in rows if r["v"] is not None]
    timed = sorted(rows, key=lambda r: r["time"])  # stable: (event time, arrival)
    ordered = [r for r in rows if r["w"] is not None]
    return {
        "rows": len(rows),
        "c": len(values),
        "d": len(set(values)),
        "s": sum(values) if values else None,
        "a": sum(values) / len(values) if values else None,
        "mn": min(values, default=None),
        "mx": max(values, default=None),
        "mnb": min(reversed(ordered), key=lambda r: r["w"])["v"] if ordered else None,
        "mxb": max(reversed(ordered), key=lambda r: r["w"])["v"] if ordered else None,
        "f": timed[0]["v"],
        "l": timed[-1]["v"],
        "cl": [r["v"] for r in timed if r["v"] is not None],
        "cs": list(dict.fromkeys(values)),
        "var": float(statistics.variance(map(Fraction, values))) if len(values) > 1 else None,
        "sd": math.sqrt(statistics.variance(map(Fraction, values))) if len(values) > 1 else None,
        "ba": min((v > 0 for v in values), default=None),
        "t": [r["v"] for r in sorted(ordered, key=lambda r: r["w"])][:2],
        "td": [r["w"] for r in sorted((r for r in rows if r["v"] is not None), key=lambda r: -r["v"])][:3],
        "p": sorted(values)[math.ceil(0.4 * len(values)) - 1] if values else None,
        "bo": max((v > 4 for v in values), default=None),
    }


def some_rows(seed: int, count: int) -> Iterator[dict[str, Any]]:
    rng = random.Random(seed)
    for _ in range(count):
        yield {
            "k": rng.choice("abcdef"),
            "g": rng.choice(["x", "x", "y", None]),
            "v": rng.choice([None, 1, 2, 3, -4, 5]),
            "w": rng.choice([None, "p", "q", "r"]),
            "time": rng.randrange(100),
        }


def fed(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "time"}


@pytest.mark.parametrize("seed", range(4))
def test_functions_over_a_table_take_every_row_back(seed: int) -> None:
    text = f"""table t (k string, g string, v int, w string) from memory () key k;
    table a = aggregate t group by g select {ALL};"""
    rng = random.Random(seed)
    rows: dict[str, dict[str, Any]] = {}
    with TopologyTestDriver(text) as driver:
        for row in some_rows(seed, 120):
            before = rows.pop(row["k"], None)
            if rng.random() < 0.2:
                driver.delete("t", {"k": row["k"]}, timestamp=row["time"])
                changed = {before["g"]} if before else set()
            else:
                driver.pipe("t", fed(row), timestamp=row["time"])
                rows[row["k"]] = row  # a changed row arrives again: behind all others
                changed = {row["g"]} | ({before["g"]} if before else set())
            newest = {r.key["g"]: r.value for r in driver.read("a")}
            assert set(newest) == changed - {None}
            for group, value in newest.items():
                own = [r for r in rows.values() if r["g"] == group]
                assert value == (expected(own) if own else None)


@pytest.mark.parametrize("seed", range(2))
def test_functions_over_a_stream(seed: int) -> None:
    text = f"""stream t (k string, g string, v int, w string) from memory () key k;
    table a = aggregate t group by k select {ALL};"""
    rows: dict[str, list[dict[str, Any]]] = {}
    with TopologyTestDriver(text) as driver:
        for row in some_rows(seed, 100):
            driver.pipe("t", fed(row), timestamp=row["time"])
            own = rows.setdefault(row["k"], [])
            own.append(row)
            assert [(r.value, r.timestamp) for r in driver.read("a")] == [(expected(own), max(r["time"] for r in own))]


def windowed(window: str, seed: int, steps: int = 150) -> tuple[list[dict[str, Any]], list[Record]]:
    """The rows in order of arrival, and the newest result of every window."""
    text = f"""stream t (k string, g string, v int, w string) from memory () key k;
    table a = aggregate t group by k window {window} select {ALL};"""
    rows = list(some_rows(seed, steps))
    with TopologyTestDriver(text) as driver:
        for row in rows:
            driver.pipe("t", fed(row), timestamp=row["time"])
        found = driver.read("a")
    return rows, found


def newest(found: list[Record]) -> dict[tuple[Any, ...], dict[str, Any]]:
    state = {}
    for record in found:
        key = (record.key["k"], _ms(record.key["window_start"]), _ms(record.key["window_end"]))
        state[key] = record.value
    return {key: value for key, value in state.items() if value is not None}


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def test_functions_in_hopping_windows() -> None:
    rows, found = windowed("hopping (size = 20 ms, advance = 8 ms, grace = 200 ms)", 1)
    model: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        for start in range(0, 100, 8):
            if start <= row["time"] < start + 20:
                model.setdefault((row["k"], start, start + 20), []).append(row)
    assert newest(found) == {key: expected(own) for key, own in model.items()}


@pytest.mark.parametrize("seed", range(3))
def test_functions_in_sessions_that_grow_together(seed: int) -> None:
    rows, found = windowed("session (gap = 3 ms, grace = 200 ms)", seed, 60)
    model = {}
    for key in "abcdef":
        own = [r for r in rows if r["k"] == key]
        sessions: list[list[int]] = []
        for time in sorted({r["time"] for r in own}):
            if sessions and time - sessions[-1][1] <= 3:
                sessions[-1][1] = time
            else:
                sessions.append([time, time])
        for start, end in sessions:
            model[key, start, end] = expected([r for r in own if start <= r["time"] <= end])
    assert newest(found) == model


@pytest.mark.parametrize("seed", range(3))
def test_functions_in_sliding_windows(seed: int) -> None:
    rows, found = windowed("sliding (difference = 10 ms, grace = 200 ms)", seed, 80)
    for (key, start, end), value in newest(found).items():
        own = [r for r in rows if r["k"] == key and start <= r["time"] <= end]
        if start > 0:  # the window at 0 is shared by the early records, as in Kafka
            assert value == expected(own), (key, start, end)


def test_doubles_over_a_table_do_not_drift() -> None:
    text = """table t (k string, v double) from memory () key k;
    table a = aggregate t group by 'all' as g select sum(v) as s, avg(v) as m;"""
    with TopologyTestDriver(text) as driver:
        for n, value in enumerate([0.1, 1e300, float("inf"), float("nan"), 1e-300, 0.2]):
            driver.pipe("t", {"k": str(n), "v": value}, timestamp=n)
        for n in (1, 2, 3, 4):
            driver.delete("t", {"k": str(n)}, timestamp=9)
        driver.pipe("t", {"k": "0", "v": 0.3}, timestamp=10)
        assert driver.read("a")[-1].value == {"s": 0.3 + 0.2, "m": 0.25}


def test_sums_that_do_not_fit() -> None:
    text = """stream s (k string, v bigint) from memory () key k;
    table t (k string, v bigint) from memory () key k;
    table a = aggregate s group by k select sum(v) as s;
    table b = aggregate t group by 'all' as g select sum(v) as s;"""
    largest = 2**63 - 1
    with TopologyTestDriver(text, on_error="drop") as driver:
        for value in (largest, 1, -1):
            driver.pipe("s", {"k": "a", "v": value}, timestamp=0)
        assert [r.value for r in driver.read("a")] == [{"s": largest}, {"s": largest}]  # the second has no result (D34)
        driver.pipe("t", {"k": "a", "v": largest}, timestamp=0)
        driver.pipe("t", {"k": "b", "v": 1}, timestamp=0)
        driver.pipe("t", {"k": "c", "v": -2}, timestamp=0)  # the rows are there all the same
        assert [r.value for r in driver.read("b")] == [{"s": largest}, {"s": largest - 1}]
        assert driver.metrics()["dropped_records"] == {"a": {"expression_failed": 1}, "b": {"expression_failed": 1}}


def test_floats_have_sparks_order() -> None:
    text = """table t (k string, v double) from memory () key k;
    table a = aggregate t group by 'all' as g
      select min(v) as mn, max(v) as mx, count(distinct v) as d, collect_set(v) as cs;"""
    with TopologyTestDriver(text) as driver:
        for n, one in enumerate([-1.5, 0.0, -0.0, float("inf"), float("-inf")]):
            driver.pipe("t", {"k": str(n), "v": one}, timestamp=n)
        last = driver.read("a")[-1].value
        assert last is not None
        assert last.pop("cs") == [-1.5, 0.0, float("inf"), float("-inf")]
        assert last == {"mn": float("-inf"), "mx": float("inf"), "d": 4}
        driver.pipe("t", {"k": "9", "v": float("nan")}, timestamp=9)
        last = driver.read("a")[-1].value
        assert last is not None
        assert str(last["mx"]) == "nan"


def test_a_variance_loses_no_digits() -> None:
    """Of values close to each other and far from zero; infinite ones leave no trace when they are taken back."""
    text = """table t (k string, x double) from memory () key k;
    table a = aggregate t group by 1 as g select variance(x) as v, stddev(x) as s;"""
    with TopologyTestDriver(text) as driver:

        def after(k: str, x: float | None) -> list[Any]:
            driver.pipe("t", {"k": k, "x": x}, timestamp=0)
            return [record.value for record in driver.read("a")]

        assert after("a", 1e9) == [{"v": None, "s": None}]
        assert after("b", 1e9 + 1) == [{"v": 0.5, "s": math.sqrt(0.5)}]
        assert after("c", 1e9 + 2) == [{"v": 1.0, "s": 1.0}]
        assert repr(after("d", math.inf)) == "[{'v': nan, 's': nan}]"
        assert after("d", None)[-1] == {"v": 1.0, "s": 1.0}
        assert after("d", 1e200)[-1]["v"] == math.inf
        assert after("d", 5e-324)[-1]["v"] == float(statistics.variance(map(Fraction, (5e-324, 1e9, 1e9 + 1, 1e9 + 2))))
        assert after("d", None)[-1] == {"v": 1.0, "s": 1.0}
