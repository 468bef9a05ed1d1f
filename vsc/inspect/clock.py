"""The event time: which column it could be, in which unit, and the `timestamp` clause that says so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.inspect.model import DataColumn, InspectError
from vsc.inspect.wording import written
from vsc.plan.types import BIGINT, DATE, DOUBLE, FLOAT, INT, STRING, TIMESTAMP, DecimalType
from vsc.runtime.units import PER_MILLISECOND, YEAR_1990, in_milliseconds

__all__ = ["DAY", "YEAR_1990", "Clock", "clocks", "unlikely", "words_of"]

DAY = 86_400_000
_SHARE = 0.8
"""The share of a column's numbers that must be times between 1990 and now, in some unit, for it to be a time."""
_TIMELY = {
    "time", "timestamp", "ts", "at", "date", "datetime", "day", "when", "since", "epoch", "ms", "millis", "micros",
    "nanos", "created", "occurred", "from", "utc", "on", "unix",
}  # fmt: skip
_FIRST = {"event", "occurred", "timestamp", "ts", "time", "observed", "happened", "measured", "recorded"}
_VALID = {"valid", "validity", "effective", "asof"}
"""Since when a row is valid comes before when it was written down."""
_LAST = {
    "to", "until", "end", "ended", "expires", "expiry", "expired", "updated", "modified", "deleted", "due", "birth",
    "birthday", "ingested", "processed", "loaded", "inserted", "closed", "landed", "arrived", "received",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Clock:
    """A column that could be the event time: its clause, the unit of its numbers, its rank (smallest: likeliest)."""

    column: DataColumn
    clause: str
    unit: str | None
    rank: tuple[int, ...]
    since: int = YEAR_1990
    """Earlier times are exceptions (such as a 0 for "unknown"), ignored for range and disorder."""


def clocks(columns: tuple[DataColumn, ...], probe: Mapping[str, pa.Array], now: int) -> list[Clock]:
    """The columns that could be the event time, likeliest first, judged by some of their values."""
    found = []
    for place, column in enumerate(columns):
        values = probe.get(column.name)
        clock = None if values is None else _clock(column, values, now, place)
        if clock is not None:
            found.append(clock)
    named = [clock for clock in found if clock.unit is None or words_of(clock.column.name) & _TIMELY]
    return sorted(named or [c for c in found if "id" not in words_of(c.column.name)], key=lambda clock: clock.rank)


def _clock(column: DataColumn, values: pa.Array, now: int, place: int) -> Clock | None:
    name, there = written(column.name), values.drop_null()
    empty = int(len(there) * 100 < len(values) * 99)
    words = words_of(column.name)
    liking = (int(bool(words & _LAST)), int(not words & _VALID), int(not words & _FIRST), place)
    if column.type in (TIMESTAMP, DATE):
        millis = there.cast(pa.timestamp("ms"), safe=False).view(pa.int64()).to_numpy()
        early = bool(len(millis)) and float(np.mean(millis < YEAR_1990)) > 1 - _SHARE
        odd = int(np.mean((millis >= YEAR_1990) & (millis < now + DAY)) < 0.5) if len(millis) else 1
        day = column.type == DATE
        clause = f"cast({name} as timestamp)" if day else name
        return Clock(column, clause, None, (odd, empty, 2 if day else 0, *liking), 0 if early else YEAR_1990)
    if column.type == STRING:
        if not column.patterns:
            return None
        return Clock(column, f"to_timestamp({name}, '{column.patterns[0]}')", None, (0, empty, 0, *liking), 0)
    unit = _unit(column, there, now)
    if unit is None:
        return None
    return Clock(column, _clause(column, name, unit), unit, (0, empty, 1, *liking))


def unlikely(column: DataColumn) -> Clock:
    """The clock of a column that does not look like a time, but that the user named. Raises InspectError."""
    if column.type not in (INT, BIGINT, DOUBLE, FLOAT) and not isinstance(column.type, DecimalType):
        raise InspectError(
            f"column {column.name} is {column.type} and holds no times that vsc inspect knows",
            "write the timestamp clause by hand; to_timestamp(text, pattern) reads other forms",
        )
    return Clock(column, _clause(column, written(column.name), "milliseconds"), "milliseconds", (), 0)


def _unit(column: DataColumn, values: pa.Array, now: int) -> str | None:
    if column.type not in (INT, BIGINT, DOUBLE, FLOAT) and not isinstance(column.type, DecimalType):
        return None
    if pa.types.is_boolean(values.type):  # a decimal in JSON: its values were not kept
        return None
    numbers = pc.cast(values, pa.float64(), safe=False).to_numpy()
    numbers = numbers[np.isfinite(numbers) & (numbers != 0)]
    if not len(numbers):
        return None
    for unit, (times, by) in PER_MILLISECOND.items():
        with np.errstate(over="ignore"):
            millis = numbers * times / by
        if np.mean((millis >= YEAR_1990) & (millis <= now + DAY)) >= _SHARE:
            return unit
    return None


def _clause(column: DataColumn, name: str, unit: str) -> str:
    """The expression that gives milliseconds. It divides by decimals: they are exact where a double is not."""
    if column.type in (DOUBLE, FLOAT):
        scaled = {
            "seconds": f"round({name} * 1000)", "milliseconds": name, "microseconds": f"{name} / 1000",
            "nanoseconds": f"{name} / 1000000",
        }[unit]  # fmt: skip
        return f"try_cast({scaled} as bigint)"
    if unit in ("microseconds", "nanoseconds"):
        return in_milliseconds(name, unit)
    if unit == "seconds" and isinstance(column.type, DecimalType):
        return f"cast({name} * 1000 as bigint)"
    return in_milliseconds(name if column.type == BIGINT else f"cast({name} as bigint)", unit)


def words_of(name: str) -> set[str]:
    """The words of a name, the same for `paidAt`, `paid_at` and `PAID-AT`."""
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return {word for word in re.split(r"[^a-z0-9]+", apart.lower()) if word}
