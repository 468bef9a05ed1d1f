"""`map` with a `timestamp`: its records have that event time from there on."""

from __future__ import annotations

from typing import Any

import pytest

from vsc.testing import TopologyTestDriver

TEXT = """stream s (k string, made bigint, at bigint) from memory () key k timestamp at;
table t (k string, n int, at bigint) from memory () key k timestamp at materialize versioned (retention = 1 hour);
stream m = map s select made, event_time() as was timestamp made;
stream j = left join m with t select n;
table w = aggregate m group by k window tumbling (size = 10 ms, grace = 30 ms) select count(*) as n;
sink dropped to noop ();"""


def piped(driver: TopologyTestDriver, *rows: tuple[Any, ...]) -> None:
    for made, at in rows:
        driver.pipe("s", {"k": "a", "made": made, "at": at})


def test_a_record_meets_the_row_and_the_window_of_its_new_time() -> None:
    with TopologyTestDriver(TEXT) as driver:
        for number, at in ((1, 5), (2, 20)):
            driver.pipe("t", {"k": "a", "n": number, "at": at})
        piped(driver, (12, 40), (22, 41), (3, 42), (0, 45))
        joined = [(record.timestamp, record.value and record.value["n"]) for record in driver.read("j")]
        assert joined == [(12, 1), (22, 2), (3, None), (0, None)]
        # The clock is that of the source: at 42 the window from 0 to 10 has been closed since 40.
        windows = [(r.key["window_start"].microsecond // 1000, r.timestamp, r.value) for r in driver.read("w")]
        assert windows == [(10, 12, {"n": 1}), (20, 22, {"n": 1})]
        assert driver.metrics()["dropped_records"] == {"w": {"window_closed": 2}}


def test_a_time_that_is_missing_negative_or_ahead_is_dropped_and_counted() -> None:
    with TopologyTestDriver(TEXT) as driver:
        piped(driver, (None, 50), (-1, 51), (53, 52), (52, 52), (51, 60))
        found = [(record.timestamp, record.value and record.value["made"]) for record in driver.read("m")]
        assert found == [(52, 52), (51, 51)]
        assert driver.metrics()["dropped_records"]["m"] == {
            "null_timestamp": 1, "negative_timestamp": 1, "ahead_of_record": 1,
        }  # fmt: skip
        lost = [(letter.value["reason"], letter.timestamp) for letter in driver.read("dropped") if letter.value]
        assert lost == [("null_timestamp", 50), ("negative_timestamp", 51), ("ahead_of_record", 52)]


@pytest.mark.parametrize(("made", "found"), [("1970-01-01T00:00:00.0079999Z", 7), (None, None)])
def test_a_timestamp_is_floored(made: str | None, found: int | None) -> None:
    text = """stream s (k string, made timestamp, at bigint) from memory () key k timestamp at;
    stream m = map s select at timestamp made;"""
    with TopologyTestDriver(text) as driver:
        driver.pipe("s", {"k": "a", "made": made, "at": 9})
        assert [record.timestamp for record in driver.read("m")] == ([] if found is None else [found])


def test_a_record_without_a_value_keeps_its_time() -> None:
    text = """table t (k string, made bigint, at bigint, gone boolean) from memory () key k timestamp at
    delete when gone;
    stream s = to_stream t;
    stream m = map s select made timestamp made;"""
    with TopologyTestDriver(text) as driver:
        driver.pipe("t", {"k": "a", "made": 3, "at": 10, "gone": False})
        driver.pipe("t", {"k": "a", "made": 4, "at": 20, "gone": True})
        assert [(record.timestamp, record.value) for record in driver.read("m")] == [(3, {"made": 3}), (20, None)]
