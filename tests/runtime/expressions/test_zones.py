"""What clocks show in a zone, and when: as Spark 4.1 has it (`zones.txt`), by rows and by columns.

A line of the file has a zone, a timestamp, and of both: `from_utc_timestamp`, `to_utc_timestamp`, `date_trunc` to the
units below, `date_format` by two patterns, and the parts. Spark has no zone as an argument of the last three: its
session had the zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vsc.compiler.expressions import Scope, ScopeInput, type_expression
from vsc.compiler.parser import parse_expression
from vsc.plan.nodes import Column, Schema
from vsc.plan.types import STRING, TIMESTAMP
from vsc.plan.zones import fixed_offset
from vsc.runtime.expressions import ExpressionFailure, Frame, compile_row, evaluate
from vsc.runtime.expressions.calendar import DAY, HOUR, parse_timestamp, timestamp_text
from vsc.runtime.expressions.zones import zone_named
from vsc.runtime.values import to_array, to_values

LINES = [line.split(" | ") for line in (Path(__file__).parent / "zones.txt").read_text("utf-8").splitlines()]
ZONES = sorted({line[0] for line in LINES})
UNITS = ("minute", "hour", "day", "week", "month", "year")
CALLS = (
    "from_utc_timestamp(t, {})", "to_utc_timestamp(t, {})", *(f"date_trunc('{unit}', t, {{}})" for unit in UNITS),
    "date_format(t, 'yyyy-MM-dd HH:mm:ss.SSSXXX', {})", "date_format(t, 'd MMM, h a X', {})",
)  # fmt: skip
PARTS = ("year", "quarter", "month", "day", "dayofweek", "hour", "minute", "second")
SCHEMA = Schema((), (Column("t", TIMESTAMP), Column("z", STRING)))
SCOPE = Scope((ScopeInput("r", 0, SCHEMA),))


def values(text: str, rows: Sequence[tuple[int | None, str | None]]) -> list[Any]:
    """The values of an expression over rows of a timestamp and a zone, which rows and columns agree on."""
    parsed = parse_expression(text)
    assert parsed.expression is not None
    expr = type_expression(parsed.expression, SCOPE).expr
    assert expr is not None, text
    row = compile_row(expr, [SCHEMA])
    found = [row(values, None, None, None) for values in rows]
    columns = tuple(to_array([values[i] for values in rows], c.type) for i, c in enumerate(SCHEMA.value))
    column, failed = evaluate(expr, [Frame(SCHEMA, columns, np.zeros(len(rows), dtype=np.int64))])
    assert (to_values(column, expr.type), failed) == (found, {}), text
    return found


def shown(value: Any) -> str:
    return timestamp_text(value) if isinstance(value, int) else str(value)


@pytest.mark.parametrize("zone", ZONES)
def test_clocks_show_what_they_show_in_spark(zone: str) -> None:
    lines = [line for line in LINES if line[0] == zone]
    rows = [(parse_timestamp(line[1]), zone) for line in lines]
    for place, call in enumerate(CALLS, start=2):
        for written in (f"'{zone}'", "z"):
            found = [*map(shown, values(call.format(written), rows))]
            assert found == [line[place] for line in lines], call
    parts = [values(f"{part}(t, '{zone}')", rows) for part in PARTS]
    assert [" ".join(map(str, of)) for of in zip(*parts, strict=True)] == [line[-1] for line in lines]


def test_without_a_zone_it_is_utc() -> None:
    rows: list[tuple[int | None, str | None]] = [(-1, "x"), (None, None), (951782400000000, "Asia/Tokyo")]
    assert values("date_format(t, 'dd.MM.yyyy h a XXX')", rows) == ["31.12.1969 11 PM Z", None, "29.02.2000 12 AM Z"]
    assert values("date_format(t, 'yyyyMMddHHmmss')", rows) == ["19691231235959", None, "20000229000000"]
    assert values("hour(t, null)", rows) == values("date_format(t, 'yyyy', null)", rows) == [None] * 3


FAR = {
    "Europe/Berlin": (3600, 7200, 7200, 3208, 3208),
    "Asia/Tehran": (12600, 12600, 12600, 12344, 12344),
    "America/Havana": (-18000, -14400, -14400, -19768, -19768),
}


@pytest.mark.parametrize("zone", FAR)
def test_the_rules_of_a_zone_have_no_end(zone: str) -> None:
    """Spark's distances, in the years 10000, 12427, 287169, 0 and -283230."""
    far = (253402300800000000, 330000000000000000, 9000000000000000000, -62167219200000000, -9000000000000000000)
    ahead = [seconds * 1_000_000 for seconds in FAR[zone]]
    assert [zone_named(zone).ahead(time) for time in far] == ahead
    assert [zone_named(zone).ahead_at(time) for time in far] == ahead
    assert zone_named(zone).all_ahead(np.array(far)).tolist() == ahead


def test_columns_ask_once_an_hour_and_know_each_change() -> None:
    """Every second of the days of change in a zone whose clocks changed within an hour, and of one without seconds."""
    for zone, day in (("Europe/Berlin", datetime(1893, 3, 31)), ("Australia/Lord_Howe", datetime(2026, 4, 4))):
        start = int(day.replace(tzinfo=UTC).timestamp()) * 1_000_000
        times = np.arange(start, start + DAY, HOUR // 3600)
        there = zone_named(zone)
        assert len(set(there.all_ahead(times).tolist())) == 2
        assert there.all_ahead(times).tolist() == [*map(there.ahead, times.tolist())]
        assert there.all_ahead_at(times).tolist() == [*map(there.ahead_at, times.tolist())]


@pytest.mark.parametrize(
    ("zone", "seconds"),
    [
        ("Z", 0), ("UTC", 0), ("GMT", 0), ("UT", 0), ("EST", -18000), ("MST", -25200), ("HST", -36000), ("+2", 7200),
        ("+02", 7200), ("+0230", 9000), ("+02:30", 9000), ("+1:30", 5400), ("+01:3", 3780), ("+5:3", 18180),
        ("-01:30:15", -5415), ("+013015", 5415), ("+1:00:00", 3600), ("UTC+5", 18000), ("GMT-03:30", -12600),
        ("UT+1:00", 3600), ("-00:00", 0), ("+18:00", 64800), ("+18:01", None), ("+25:00", None), ("+02:60", None),
        ("+130", None), ("+1:2:3", None), ("UTC0", None), ("utc", None), (" UTC", None), ("", None), ("PST", None),
        ("+٠٢", None),
    ],
)  # fmt: skip
def test_distances_from_utc_are_read_as_in_java(zone: str, seconds: int | None) -> None:
    assert fixed_offset(zone) == seconds


WRONG = (
    "Mars/Base",
    "berlin",
    "PST",
    "IST",
    "+25:00",
    "",
    "utc",
    "localtime",
    "posix/Europe/Berlin",
    "right/UTC",
    "../x",
)


@pytest.mark.parametrize("zone", WRONG)
def test_a_wrong_zone_in_a_row_fails(zone: str) -> None:
    for call in ("hour(t, z)", "from_utc_timestamp(t, z)", "to_utc_timestamp(t, z)", "date_trunc('day', t, z)",
                 "date_format(t, 'yyyy', z)"):  # fmt: skip
        with pytest.raises(ExpressionFailure) as failure:
            values(call, [(0, zone)])
        assert failure.value.reason == f"[INVALID_TIMEZONE] there is no time zone '{zone}'"


def test_a_local_time_out_of_range_fails() -> None:
    with pytest.raises(ExpressionFailure, match="ARITHMETIC_OVERFLOW"):
        values("from_utc_timestamp(t, z)", [(2**63 - 1, "+01:00")])
    with pytest.raises(ExpressionFailure, match="ARITHMETIC_OVERFLOW"):
        values("to_utc_timestamp(t, z)", [(-(2**63), "+01:00")])
