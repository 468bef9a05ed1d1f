"""Columns of texts as dates, timestamps and decimals: as `vsc.runtime.texts` says, at the speed of Arrow.

Guarantees: a text is what the function for one text makes of it; null where that raises ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, tzinfo
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.types import MAX_PRECISION, DecimalType
from vsc.runtime.texts import date_of, decimal_of, timestamp_of

__all__ = ["dates_of", "decimals_of", "timestamps_of", "usual_decimals"]

_DATE = r"\d{4}-\d\d-\d\d"
_DATE_IN_ZONE = r"(?:19\d\d|20[0-2]\d|203[0-6])-\d\d-\d\d"
"""Of the years from 2037 on, Arrow does not know when clocks are changed."""
_CLOCK = r"\d\d:\d\d:\d\d(?:\.\d{1,6})?"
_OFFSET = r"(?:Z|[+-](?:0\d|1[0-7]):?[0-5]\d)"
_EDGE = r"\A(?:000|9999)"
"""What begins the years at whose ends Arrow counts on."""
_TIMESTAMP = pa.timestamp("us", "UTC")


def dates_of(texts: pa.Array) -> pa.Array:
    """The dates of a column of texts; null where `date_of` raises ValueError."""
    return _column(texts, _DATE, lambda usual: usual.cast(pa.date32()), date_of, pa.int32(), pa.date32())


def timestamps_of(texts: pa.Array, zone: tzinfo = UTC) -> pa.Array:
    """The timestamps of a column of texts; null where `timestamp_of` raises ValueError."""
    one = partial(timestamp_of, zone=zone)
    first = texts.drop_null()[:1].to_pylist()
    if first and re.search(rf":.*{_OFFSET}$", first[0]):
        usual = rf"{_DATE}[ T]{_CLOCK}{_OFFSET}"
        return _column(texts, usual, lambda found: found.cast(_TIMESTAMP), one, pa.int64(), _TIMESTAMP)
    day = _DATE if zone is UTC else _DATE_IN_ZONE
    usual = rf"{day}(?:[ T]{_CLOCK})?"
    return _column(texts, usual, lambda found: _in_zone(found, zone), one, pa.int64(), _TIMESTAMP)


def _in_zone(texts: pa.Array, zone: tzinfo) -> pa.Array:
    """Where clocks leave a time out, Arrow would take another than `timestamp_of`: it raises ArrowInvalid."""
    times = texts.cast(pa.timestamp("us"))
    if zone is not UTC:
        times = pc.assume_timezone(times, str(zone), ambiguous="earliest", nonexistent="raise")
    return times.view(_TIMESTAMP)


def decimals_of(texts: pa.Array, type: DecimalType) -> pa.Array:
    """The decimals of a column of texts; null where `decimal_of` raises ValueError."""
    wanted = pa.decimal128(type.precision, type.scale)
    one = partial(decimal_of, type=type)
    return _column(texts, usual_decimals(type), lambda found: found.cast(wanted), one, wanted, wanted)


def usual_decimals(type: DecimalType) -> str:
    """The texts that Arrow reads as decimals of a type, or refuses. Of one with more digits it makes another number:
    what does not fit into 128 bits wraps around."""
    whole = type.precision - type.scale
    behind = MAX_PRECISION - max(whole, 1)
    return (rf"-?\d{{1,{whole}}}" if whole else "-?0") + (rf"(?:\.\d{{1,{behind}}})?" if behind else "")


def _column(
    texts: pa.Array,
    usual: str,
    convert: Callable[[pa.Array], pa.Array],
    one: Callable[[str], Any],
    physical: pa.DataType,
    wanted: pa.DataType,
) -> pa.Array:
    """Texts of the usual form at once, by `convert`, if it takes all of them; the others one by one."""
    fits = pc.match_substring_regex(texts, rf"\A(?:{usual})\z")
    fits = pc.fill_null(pc.and_not(fits, pc.match_substring_regex(texts, _EDGE)), False)
    try:
        found = convert(pc.if_else(fits, texts, None))
    except pa.ArrowInvalid:
        return _each(texts, one, physical).view(wanted)
    rest = pc.and_not(texts.is_valid(), fits)
    if not pc.any(rest, min_count=0).as_py():
        return found
    return pc.replace_with_mask(found, rest, _each(texts.filter(rest), one, physical).view(wanted))


def _each(texts: pa.Array, one: Callable[[str], Any], type: pa.DataType) -> pa.Array:
    return pa.array([None if text is None else _or_none(one, text) for text in texts.to_pylist()], type)


def _or_none(one: Callable[[str], Any], text: str) -> Any:
    try:
        return one(text)
    except ValueError:
        return None
