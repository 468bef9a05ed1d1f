"""Expressions that fail on a record: the run stops with the place, or the record is dropped and counted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.operators.driving import dropped, values
from vsc.runtime.errors import BadRowError, ExpressionError
from vsc.testing import TopologyTestDriver

SOURCES = (
    "stream s (k string, n int, at bigint) from memory () key k timestamp at;"
    "table t (k string, n int) from memory () key k materialize versioned (retention = 1 minute);"
)
PLACES = {
    "stream map": ("stream x = map s select 10 / n as v;", "s"),
    "stream filter": ("stream x = filter s where 10 / n > 0;", "s"),
    "re-key of a join": ("stream x = join s with t on cast(10 / s.n as string) select s.n;", "s"),
    "table map": ("table x = map t select 10 / n as v;", "t"),
    "table filter": ("table x = filter t where 10 / n > 0;", "t"),
    "join": ("stream x = left join s with t select 10 / s.n as v;", "s"),
    "to_table": ("table x = to_table s delete when 10 / n > 100;", "s"),
    "map behind a join": (
        "stream j = left join s with t select s.n; stream x = map j select 10 / n as v;", "s",
    ),
}  # fmt: skip


def _feed(driver: TopologyTestDriver, source: str) -> None:
    for offset, number in enumerate((5, 0, 2)):
        row: dict[str, Any] = {"k": "a", "n": number}
        driver.pipe(source, row | {"at": offset} if source == "s" else row, timestamp=offset)


@pytest.mark.parametrize("place", PLACES)
def test_stops_and_names_node_expression_and_origin(place: str) -> None:
    text, source = PLACES[place]
    with TopologyTestDriver(SOURCES + text) as driver, pytest.raises(ExpressionError) as raised:
        _feed(driver, source)
    message = str(raised.value)
    assert message.startswith("[VSC902] 'x'")
    assert f"record 1 of its only partition of source '{source}'" in message
    assert "10 / " in message
    assert "zero" in message.lower()


@pytest.mark.parametrize("place", PLACES)
def test_drops_and_counts(place: str) -> None:
    text, source = PLACES[place]
    with TopologyTestDriver(SOURCES + text, on_error="drop") as driver:
        _feed(driver, source)
        assert dropped(driver) == {"x": {"expression_failed": 1}}
        if place != "re-key of a join":
            assert [time for _, time in values(driver, "x")] == [0, 2]


def test_a_row_that_a_look_up_cannot_compute_drops_the_stream_record() -> None:
    text = SOURCES + "table m = map t select 10 / n as v; stream x = left join s with m select m.v as v;"
    with TopologyTestDriver(text, on_error="drop") as driver:
        driver.pipe("t", {"k": "a", "n": 0}, timestamp=0)
        driver.pipe("s", {"k": "a", "n": 1, "at": 1})
        assert values(driver, "x") == []
        assert dropped(driver) == {"m": {"expression_failed": 2}}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"k": None, "n": 1, "at": 1}, "null_key"),
        ({"k": "a", "n": 1, "at": None}, "null_timestamp"),
        ({"k": "a", "n": 1, "at": -1}, "negative_timestamp"),
    ],
)
def test_bad_rows_are_dropped_and_counted_or_stop_the_run(row: dict[str, Any], reason: str) -> None:
    with TopologyTestDriver(SOURCES) as driver:
        driver.pipe("s", row)
        assert values(driver, "s") == []
        assert dropped(driver) == {"s": {reason: 1}}
    with TopologyTestDriver(SOURCES, on_bad_row="fail") as driver, pytest.raises(BadRowError, match=reason) as raised:
        driver.pipe("s", row)
    assert "source 's': row 0" in str(raised.value)
