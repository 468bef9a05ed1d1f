"""Joins of windows that are begun by different sources: each window closes by the clock of its own source.

That of the other one may be far ahead by then. It hides no row that is still to be met.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from tests.random_topologies.seeds import seeds
from vsc.plan.clocks import node_clocks
from vsc.testing import Record, TopologyTestDriver

TEXT = """
stream a (k string, x int, at bigint) from memory () key k timestamp at;
stream b (k string, x int, at bigint) from memory () key k timestamp at;
stream c (k string, x int, at bigint) from memory () key k timestamp at;
table fa = aggregate a group by k window {window} {emit} select sum(x) as sa;
table fb = aggregate b group by k window {window} {emit} select sum(x) as sb;
table fc = aggregate c group by k window {window} select sum(x) as sc;
table ab = {mode} join fa with fb select sa, sb;
table abc = {mode} join ab with fc select sa, sb, sc;
table sums = aggregate ab group by sa select count(*) as n, sum(sb) as total;
sink fa to memory (); sink fb to memory (); sink fc to memory (); sink ab to memory (); sink abc to memory ();
sink sums to memory ();
"""
TUMBLING = "tumbling (size = 10 ms)"


def last(records: Iterable[Record]) -> dict[Any, tuple[Any, ...]]:
    found: dict[Any, tuple[Any, ...]] = {}
    for record in records:
        key = tuple(record.key.values())
        found.pop(key, None)
        if record.value is not None:
            found[key] = tuple(record.value.values())
    return found


@pytest.mark.parametrize("emit", ["emit changes", "emit final"])
@pytest.mark.parametrize("mode", ["outer", "left", ""])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_source_that_is_ahead_hides_no_windows(mode: str, emit: str, restarted: bool) -> None:
    with TopologyTestDriver(TEXT.format(mode=mode, emit=emit, window=TUMBLING), partitions=3) as driver:
        for source, at in [("a", 3), ("a", 50), ("b", 4), ("b", 60), ("a", 70)]:
            driver.pipe(source, {"k": "x", "x": 1, "at": at})
            if restarted:
                driver.restart()
        (first,) = (row for (_, start, _), row in last(driver.read("ab")).items() if start.timestamp() == 0)
        assert first == (1, 1)
        assert driver.metrics()["dropped_records"].keys() <= {"sums"}  # a group that is null


def test_the_branches_of_a_join_are_the_sources_of_its_windows() -> None:
    with TopologyTestDriver(TEXT.format(mode="", emit="", window=TUMBLING)) as driver:
        clocks = node_clocks(driver.plan)
    branches = {name: ["".join(one.sources) for one in clocks[name].branches] for name in ("fa", "ab", "abc", "sums")}
    assert branches.pop("sums") in (["ab"], ["ba"])  # no windows of a or b any more
    assert branches == {"fa": ["a"], "ab": ["a", "b"], "abc": ["a", "b", "c"]}
    assert clocks["ab"].shown({"a": 50, "b": 4}) == 4


@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 20))
@pytest.mark.quick(5)
def test_a_join_ends_as_the_join_of_what_its_windows_end_as(seed: int) -> None:
    rng = random.Random(seed)
    mode, emit = rng.choice(("outer", "left", "")), rng.choice(("", "emit final"))
    window = rng.choice((TUMBLING, "session (gap = 2 ms)", "sliding (difference = 3 ms, grace = 2 ms)"))
    rows = [
        (rng.choice("abc"), {"k": rng.choice("xy"), "x": rng.randint(1, 3), "at": rng.randrange(30)}) for _ in "x" * 20
    ]
    with TopologyTestDriver(TEXT.format(mode=mode, emit=emit, window=window), partitions=rng.choice((1, 4))) as driver:
        while rows:
            with driver.batch():
                for source, row in rows[: rng.choice((1, 1, 4))]:
                    driver.pipe(source, row)
                    rows.pop(0)
        driver.drain()
        fa, fb, fc, ab, abc, sums = (last(driver.read(name)) for name in ("fa", "fb", "fc", "ab", "abc", "sums"))
    assert ab == joined(mode, fa, 1, fb, 1)
    assert abc == joined(mode, ab, 2, fc, 1)
    counts: dict[Any, int] = {}
    for sa, _ in ab.values():
        if sa is not None:
            counts[sa,] = counts.get((sa,), 0) + 1
    assert {key: n for key, (n, _) in sums.items()} == counts


def joined(
    mode: str, left: dict[Any, tuple[Any, ...]], width: int, right: dict[Any, tuple[Any, ...]], other: int
) -> dict[Any, tuple[Any, ...]]:
    keys = {"": left.keys() & right.keys(), "left": left.keys(), "outer": left.keys() | right.keys()}[mode]
    return {key: (*left.get(key, (None,) * width), *right.get(key, (None,) * other)) for key in keys}
