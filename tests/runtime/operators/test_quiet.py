"""Steps of quiet: clocks that go on while sources bring nothing, in the test driver."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.random_topologies.test_partitions import PARTITIONS
from tests.runtime.operators.driving import dropped
from vsc.compiler import compile_topology
from vsc.runtime.operators.operator import operator_of
from vsc.runtime.operators.views.catalog import next_due, side_store_of
from vsc.testing import TopologyTestDriver

READINGS = """topology plant (quiet = 10 seconds);
stream readings (sensor string, at timestamp) from memory () key sensor timestamp at;
"""
FINAL = (
    READINGS
    + """table counts = aggregate readings group by sensor window tumbling (size = 60 seconds,
  grace = 5 seconds) emit final select count(*) as n;"""
)
SUPPRESSED = (
    READINGS
    + """table open = aggregate readings group by sensor window tumbling (size = 60 seconds,
  grace = 5 seconds) emit changes select count(*) as n;
table counts = suppress open until window closes;"""
)


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def given(driver: TopologyTestDriver, node: str) -> list[tuple[Any, int]]:
    return [(record.value and next(iter(record.value.values())), record.timestamp) for record in driver.read(node)]


@pytest.mark.parametrize("partitions", PARTITIONS)
@pytest.mark.parametrize(("text", "late"), [(FINAL, "counts"), (SUPPRESSED, "open")])
def test_a_window_closes_without_a_row_once(text: str, late: str, partitions: int) -> None:
    with TopologyTestDriver(text, partitions=partitions) as driver:
        driver.pipe("readings", {"sensor": "a", "at": at(50)})
        driver.quiet(64_999)
        assert given(driver, "counts") == []
        driver.quiet(at(65))
        assert given(driver, "counts") == [(1, 50_000)]
        driver.restart()
        driver.pipe("readings", {"sensor": "a", "at": at(58)})
        assert dropped(driver) == {late: {"window_closed": 1, "after_quiet": 1}}
        driver.quiet(at(60))  # never back
        driver.pipe("readings", {"sensor": "b", "at": at(66)})
        driver.pipe("readings", {"sensor": "b", "at": at(59)})
        assert dropped(driver) == {late: {"window_closed": 2, "after_quiet": 1}}
        driver.drain()
        assert given(driver, "counts") == [(1, 66_000)]


WAITING = """topology waits (quiet = 1 minute);
table t (k string, n int, at bigint) from memory () key k timestamp at materialize versioned (retention = 1 hour);
stream s (k string, v int, at bigint) from memory () key k timestamp at;
stream o (k string, w int, at bigint) from memory () key k timestamp at;
{}"""


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("stream x = left join s with t grace 10 ms select v;", 30),
        ("stream x = reorder s within 10 ms;", 30),
        ("stream x = left join s with o within 4 ms grace 6 ms select v;", 31),
        ("stream g = reorder s within 7 ms; table x = to_table g;", 27),
        ("table x = suppress n until time limit 12 ms; table n = to_table s;", 32),
        ("table x = to_table s materialize unversioned (expire = 15 ms);", 35),
        ("table x = aggregate s group by k window session (gap = 5 ms, grace = 2 ms) emit final "
         "select max(v) as v;", 28),
        ("table x = aggregate s group by k window sliding (difference = 5 ms, grace = 2 ms) emit final "
         "select max(v) as v;", 23),
    ],
)  # fmt: skip
def test_whatever_waits_comes_out_when_its_clock_says_so(text: str, due: int, partitions: int) -> None:
    """The clock at which the first of it is due, as a run asks the stores, is the one at which it comes out."""
    with TopologyTestDriver(WAITING.format(text), partitions=partitions) as driver:
        driver.pipe("s", {"k": "a", "v": 7, "at": 20})
        driver.read("x")
        stages = [(stage, partition) for stage in driver.plan.stages[1:] for partition in range(partitions)]
        found = [
            one for stage, number in stages for one in next_due(driver.plan, stage, driver._open(stage.id, number))
        ]
        assert min(found)[0] == due
        assert min(found)[1] in (["s"], ["o", "s"])
        driver.quiet(due - 1)
        assert driver.read("x") == []
        driver.quiet(due)
        assert driver.read("x")


def test_whatever_waits_tells_when_it_is_due() -> None:
    plan = compile_topology(WAITING.format("stream x = reorder s within 1 ms;"))
    for node in (node for node in plan.nodes if node.waits):
        assert side_store_of(node).due is not None, operator_of(node.operation)


@pytest.mark.parametrize("partitions", [1, 4])
def test_the_lowest_of_several_clocks_decides(partitions: int) -> None:
    """A run learns when each of them is due. What is late by the one that decides is late because of quiet."""
    text = """
    stream a (k string, at bigint) from memory () key k timestamp at reorder within 5 ms;
    stream b (k string, at bigint) from memory () key k timestamp at reorder within 9 ms;
    stream c (k string, at bigint) from memory () key k timestamp at;
    stream m = merge a, b, c;
    table w = aggregate m group by k window tumbling (size = 10 ms) emit final select count(*) as n;
    """
    with TopologyTestDriver(text, partitions=partitions) as driver:
        driver.pipe("a", {"k": "x", "at": 3})
        driver.quiet(12)
        stages = [(stage, partition) for stage in driver.plan.stages[1:] for partition in range(partitions)]
        told = [one for stage, n in stages for one in next_due(driver.plan, stage, driver._open(stage.id, n))]
        assert told == [(15, ["a"]), (19, ["b"])]
        driver.quiet(18)
        assert driver.read("w") == []
        driver.quiet(19)
        assert given(driver, "w") == [(1, 3)]
        driver.pipe("c", {"k": "y", "at": 5})
        assert dropped(driver) == {"w": {"window_closed": 1, "after_quiet": 1}}
        driver.pipe("b", {"k": "y", "at": 20})
        driver.pipe("c", {"k": "y", "at": 5})  # the clock is that of b, which a row has moved
        assert dropped(driver) == {"w": {"window_closed": 2, "after_quiet": 1}}


def test_late_for_other_reasons_than_quiet() -> None:
    """A row of another source has moved the clock of the join beyond what quiet did."""
    with TopologyTestDriver(WAITING.format("stream x = reorder s within 10 ms;")) as driver:
        driver.quiet(100)
        driver.pipe("s", {"k": "a", "v": 1, "at": 89})
        driver.pipe("s", {"k": "a", "v": 1, "at": 90})
        assert dropped(driver) == {"x": {"out_of_order": 1, "after_quiet": 1}}
        assert given(driver, "x") == [(1, 90)]
        driver.pipe("s", {"k": "a", "v": 1, "at": 101})
        driver.pipe("s", {"k": "a", "v": 1, "at": 90})
        assert dropped(driver) == {"x": {"out_of_order": 2, "after_quiet": 1}}


def test_what_cannot_be() -> None:
    with TopologyTestDriver(FINAL) as driver:
        with pytest.raises(ValueError, match="inside a batch"), driver.batch():
            driver.quiet(5)
        with pytest.raises(ValueError, match="until= is an int of ms"):
            driver.quiet("soon")
    records = "topology t (clock = 'records'); stream s (k string, at bigint) from memory () key k timestamp at;"
    with TopologyTestDriver(records) as driver, pytest.raises(ValueError, match="clock of records"):
        driver.quiet(5)
