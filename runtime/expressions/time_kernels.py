"""Kernels of functions over dates and timestamps: see `vsc.runtime.expressions.kernels`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.expressions import Call
from vsc.plan.functions import parse_pattern
from vsc.runtime.expressions.calendar import DAY, SECOND, truncated
from vsc.runtime.expressions.forms import Kernel, Uncertain, constant, fits, numbers, with_nulls_of
from vsc.runtime.expressions.zones import Micros, Zone, zone_named
from vsc.runtime.values import arrow_type


def of_micros(function: Callable[[Any], Any]) -> Kernel:
    """An arithmetic function of the microseconds since 1970."""

    def kernel(call: Call, args: list[Any]) -> Any:
        micros, wanted = args[0].view(pa.int64()), arrow_type(call.type)
        return with_nulls_of(function(numbers(micros)).astype(wanted.to_pandas_dtype(), copy=False), wanted, micros)

    return kernel


def after_1970(unit: int) -> Kernel:
    """The timestamp a number of units after 1970, if it does not overflow."""

    def kernel(call: Call, args: list[Any]) -> Any:
        return pc.multiply_checked(args[0], pa.scalar(unit, pa.int64())).view(arrow_type(call.type))

    return kernel


def day_of_week(dates: pa.Array) -> pa.Array:
    """1 for Sunday."""
    return pc.day_of_week(dates, count_from_zero=False, week_start=7)


_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_LONG = ("week", *_MONTHS)


def truncate(call: Call, args: list[Any]) -> Any:
    """``date_trunc``."""
    unit, micros = constant(call.args[0]), args[1].view(pa.int64())
    values = _far_from_ends(micros)
    if len(args) == 2:
        start = _truncated(unit, values)
    else:
        start = _truncated_in(zone_named(constant(call.args[2])), unit, values)
    return with_nulls_of(start, pa.int64(), micros).view(arrow_type(call.type))


def _truncated(unit: str, values: Micros) -> Micros:
    if unit not in _MONTHS:
        found: Micros = truncated(unit, values)
        return found
    months = (values // DAY).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    first = (months - months % _MONTHS[unit]).astype("datetime64[M]").astype("datetime64[D]")
    return first.astype(np.int64) * DAY


def _truncated_in(zone: Zone, unit: str, values: Micros) -> Micros:
    ahead = zone.all_ahead(values)
    start = _truncated(unit, values + ahead)
    first = start - zone.all_ahead_at(start)
    if unit in _LONG:
        if (zone.all_ahead(first) != start - first).any():
            raise Uncertain  # clocks skip a start
        return first
    return np.where(zone.all_ahead(start - ahead) == ahead, start - ahead, first)


def _far_from_ends(micros: pa.Array) -> Micros:
    """The numbers. Raises Uncertain if one is near the ends of the type."""
    values: Micros = numbers(micros)
    if len(values) and not -(2**62) <= values.min() <= values.max() <= 2**62:
        raise Uncertain
    return values


def from_utc(call: Call, args: list[Any]) -> Any:
    """``from_utc_timestamp`` for one zone."""
    micros, zone = args[0].view(pa.int64()), zone_named(constant(call.args[1]))
    values = _far_from_ends(micros)
    return with_nulls_of(values + zone.all_ahead(values), pa.int64(), micros).view(arrow_type(call.type))


def to_utc(call: Call, args: list[Any]) -> Any:
    """``to_utc_timestamp`` for one zone."""
    micros, zone = args[0].view(pa.int64()), zone_named(constant(call.args[1]))
    values = _far_from_ends(micros)
    return with_nulls_of(values - zone.all_ahead_at(values), pa.int64(), micros).view(arrow_type(call.type))


def add_days(function: Callable[..., Any]) -> Kernel:
    """``date_add`` and ``datediff``, in 32 bits."""
    return lambda call, args: function(*(pc.cast(arg, pa.int32()) for arg in args)).cast(arrow_type(call.type))


_FIRST_DAY, _LAST_DAY = -719162, 2932896  # the years 1 to 9999


def of_usual_years(dates: pa.Array) -> pa.Array:
    """The dates. Raises Uncertain if one is not in the years that Arrow knows."""
    days = numbers(dates.view(pa.int32()))
    if len(days) and (days.min() < _FIRST_DAY or days.max() > _LAST_DAY):
        raise Uncertain
    return dates


def date_part(function: Callable[..., Any]) -> Kernel:
    """A part of the date, in the years that Arrow knows."""

    def kernel(call: Call, args: list[Any]) -> Any:
        return function(of_usual_years(args[0])).cast(pa.int32())

    return kernel


_FIXED = {"yyyy": r"(\d{4})", "MM": r"(\d\d)", "dd": r"(\d\d)", "HH": r"(\d\d)", "mm": r"(\d\d)", "ss": r"(\d\d)"}
_ISO = (
    ("yyyy", "", "1970"),
    ("MM", "-", "01"),
    ("dd", "-", "01"),
    ("HH", " ", "00"),
    ("mm", ":", "00"),
    ("ss", ":", "00"),
)


def by_pattern(call: Call, args: list[Any]) -> Any:
    """``to_timestamp`` and ``to_date`` by a pattern of parts of one width, where every text fits."""
    parts = parse_pattern(constant(call.args[1]))
    if any(part.letter and part.text not in _FIXED for part in parts):
        raise Uncertain
    regex = "".join(_FIXED[part.text] if part.letter else re.escape(part.text) for part in parts)
    place = {part.text: i for i, part in enumerate((p for p in parts if p.letter), start=1)}
    iso = "".join(sign + (f"\\{place[part]}" if part in place else text) for part, sign, text in _ISO)
    if not fits(args[0], regex):
        raise Uncertain
    texts = pc.replace_substring_regex(args[0], pattern=rf"\A{regex}\z", replacement=iso)
    found = pc.cast(texts, pa.timestamp("us"))
    return found.cast(pa.date32()) if call.function == "to_date" else found.view(arrow_type(call.type))


_CODES = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "hh": "%I", "mm": "%M", "ss": "%S"}
_FIRST_SECOND, _LAST_SECOND = -30610224000, 253402300799  # the years 1000 to 9999


def by_pattern_of_seconds(call: Call, args: list[Any]) -> Any:
    """``from_unixtime`` by a pattern of numbers of one width."""
    return _written(constant(call.args[1]), args[0])


def formatted(call: Call, args: list[Any]) -> Any:
    """``date_format`` by a pattern of numbers of one width."""
    micros = args[0].view(pa.int64())
    values = numbers(micros)
    if len(args) == 3:
        values = values + zone_named(constant(call.args[2])).all_ahead(values)
    return _written(constant(call.args[1]), with_nulls_of(values // SECOND, pa.int64(), micros))


def _written(pattern: str, seconds: pa.Array) -> pa.Array:
    parts = parse_pattern(pattern, writes=True)
    if any(part.letter and part.text not in _CODES for part in parts):
        raise Uncertain
    values = numbers(seconds)
    if len(values) and not _FIRST_SECOND <= values.min() <= values.max() <= _LAST_SECOND:
        raise Uncertain
    codes = (_CODES[part.text] if part.letter else part.text.replace("%", "%%") for part in parts)
    return pc.strftime(seconds.cast(pa.timestamp("s")), format="".join(codes), locale="C")
