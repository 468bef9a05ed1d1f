"""The grace buffer: Kafka's KStreamKTableJoinTest sequences, order of release, restart, drain."""

from __future__ import annotations

import pytest

from tests.runtime.operators.driving import RECORDS, STREAM, VERSIONED, missed, put, values
from vsc.testing import TopologyTestDriver

SOURCES = RECORDS + STREAM + VERSIONED
GRACE = SOURCES + "stream j = join s with t grace 2 ms select s.v || '+' || t.v as v;"
LEFT = (
    RECORDS
    + STREAM
    + VERSIONED
    + "stream j = left join s with t grace {} ms select s.v || '+' || coalesce(t.v, '') as v;"
)


def test_delays_the_join_by_the_grace_period() -> None:
    with TopologyTestDriver(GRACE) as driver:
        for i in range(4):
            put(driver, "t", str(i), f"Y{i}", 0)
        for i in range(4):
            put(driver, "s", str(i), f"X{i}", i)
        assert values(driver, "j") == [("X0+Y0", 0), ("X1+Y1", 1)]
        for i in range(4):
            put(driver, "t", str(i), f"YY{i}", 0)
        assert values(driver, "j") == []
        for i in range(4):
            put(driver, "s", str(i), f"X{i}", i)
        assert values(driver, "j") == [("X0+YY0", 0), ("X1+YY1", 1)]
        put(driver, "s", "5", "test", 7)
        assert values(driver, "j") == [
            ("X2+YY2", 2), ("X2+YY2", 2), ("X3+YY3", 3), ("X3+YY3", 3),
        ]  # fmt: skip
        for i in range(4):
            put(driver, "t", str(i), f"YYY{i}", 0)
        assert values(driver, "j") == []


def test_a_late_record_is_joined_at_once_and_flushes_nothing() -> None:
    with TopologyTestDriver(GRACE) as driver:
        for i in range(4):
            put(driver, "t", str(i), f"Y{i}", 0)
        for i in range(4):
            put(driver, "s", str(i), f"X{i}", i)
        assert values(driver, "j") == [("X0+Y0", 0), ("X1+Y1", 1)]
        put(driver, "s", "0", "X0", 0)
        assert values(driver, "j") == [("X0+Y0", 0)]


def test_comes_out_by_time_then_key_bytes_then_arrival() -> None:
    with TopologyTestDriver(LEFT.format(10)) as driver:
        for key, value in (("b", "1"), ("ab", "2"), ("a", "3"), ("a", "4"), ("é", "5"), ("z", "6")):
            put(driver, "s", key, value, 5)
        put(driver, "s", "c", "0", 3)
        put(driver, "s", "x", "7", 100)
        assert values(driver, "j") == [
            ("0+", 3), ("3+", 5), ("4+", 5), ("2+", 5), ("1+", 5), ("6+", 5), ("5+", 5),
        ]  # fmt: skip


def test_the_table_is_read_as_it_is_when_the_record_comes_out() -> None:
    with TopologyTestDriver(LEFT.format(10)) as driver:
        put(driver, "s", "a", "1", 5)
        put(driver, "t", "a", "late", 4)
        put(driver, "s", "b", "2", 15)
        assert values(driver, "j") == [("1+late", 5)]
        assert missed(driver) == {}


def test_drain_lets_out_what_waits_and_the_clock_stays() -> None:
    with TopologyTestDriver(LEFT.format(10)) as driver:
        put(driver, "s", "b", "1", 20)
        put(driver, "s", "a", "2", 15)
        driver.drain()
        assert values(driver, "j") == [("2+", 15), ("1+", 20)]
        driver.drain()
        put(driver, "s", "a", "3", 11)
        assert values(driver, "j") == []
        put(driver, "s", "a", "4", 9)
        assert values(driver, "j") == [("4+", 9)]


@pytest.mark.parametrize("partitions", [1, 3])
def test_drain_goes_through_joins_in_a_row(partitions: int) -> None:
    text = (
        STREAM
        + VERSIONED
        + "table u (k string, w string) from memory () key k materialize versioned (retention = 1 hour);"
        + "stream j1 = left join s with t grace 10 ms select s.v as v;"
        + "stream j2 = left join j1 with u on substring(j1.v, 1, 1) grace 20 ms select j1.v as v;"
    )
    with TopologyTestDriver(text, partitions=partitions) as driver:
        put(driver, "s", "a", "p", 20)
        put(driver, "s", "b", "q", 15)
        driver.drain()
        assert sorted(values(driver, "j2"), key=lambda r: r[1]) == [("q", 15), ("p", 20)]
