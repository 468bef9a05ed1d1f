"""How data in JSON is read: not lenient, as ``from_json`` is.

Guarantees: a value of which any part does not fit is not read at all; dates, times and decimals are what
`vsc.runtime.texts` says, and a number too large for its type is not one. In a column of text, a value that is none is
what it is written as.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, tzinfo
from decimal import Decimal
from functools import partial
from json.decoder import JSONArray, JSONObject  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any

from vsc.plan.types import DataType, DecimalType
from vsc.runtime.expressions.json_text import (
    SCALARS,
    JsonNumber,
    Scalars,
    Wrong,
    compact,
    converter,
    decoded,
    double,
    double_quoted,
    nullable,
    too_deep,
    whole_number,
)
from vsc.runtime.expressions.numbers import to_float32
from vsc.runtime.expressions.text import java_double
from vsc.runtime.texts import date_of, decimal_of, exact_decimal, seconds_of, timestamp_of

__all__ = ["Inexact", "data_converter", "data_reader", "json_values"]


class Inexact(Exception):
    """A text is to be what a JSON value is written as, and it is not known how: see `json_values`."""


class _Object(dict[str, Any]):
    """A JSON object, and as what it is written."""

    __slots__ = ("written",)
    written: str


class _Array(list[Any]):
    """A JSON array, and as what it is written."""

    __slots__ = ("written",)
    written: str


_SPACE = re.compile(r"[ \t\r\n]*")


def _noting(parse: Callable[..., tuple[Any, int]], kind: type[Any]) -> Callable[..., tuple[Any, int]]:
    """A function of Python's decoder that gives a `kind`, which knows its text."""

    def noted(text_and_start: tuple[str, int], *more: Any) -> tuple[Any, int]:
        (text, start), (value, end) = text_and_start, parse(text_and_start, *more)
        found = kind(value)
        found.written = text[start - 1 : end]
        return found, end

    return noted


class _ExactDecoder(json.JSONDecoder):
    """Python's decoder, with objects and arrays that know their texts: a tenth as fast."""

    def __init__(self) -> None:
        super().__init__(parse_float=JsonNumber, parse_int=whole_number, strict=True)
        self.parse_object = _noting(JSONObject, _Object)
        self.parse_array = _noting(JSONArray, _Array)
        self.scan_once = py_make_scanner(self)


_EXACT_DECODER = _ExactDecoder()


def json_values(text: str, exact: bool = False) -> list[Any]:
    """All values that a text holds, one after the other, for `data_reader`, which raises Inexact for some that are not
    `exact`: that takes longer. ValueError if the text is not JSON.
    """
    text = double_quoted(text.removeprefix("\ufeff"))
    if too_deep(text):
        raise ValueError("nested too deeply")
    found, at = [], _SPACE.match(text).end()  # type: ignore[union-attr]
    while at < len(text):
        value, at = _EXACT_DECODER.raw_decode(text, at) if exact else decoded(text, at)
        found.append(value)
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
    return found


def data_reader(type: DataType, zone: tzinfo = UTC) -> Callable[[Any], Any]:
    """The function from a value of `json_values`, not null, to an internal value. Times without an offset are those of
    `zone`. It raises ValueError for what does not fit."""
    return data_converter(type, {"timestamp": partial(_moment, zone)}, _exact_decimal)


def data_converter(
    type: DataType, scalars: Scalars, decimal: Callable[[Any, DecimalType], Decimal]
) -> Callable[[Any], Any]:
    """As `data_reader`, with rules of its own for some `scalars`, and for decimals."""
    return converter(type, {**SCALARS, **_EXACT, **scalars}, nullable, decimal)


def _exact_decimal(value: Any, type: DecimalType) -> Decimal:
    if isinstance(value, bool | float) or not isinstance(value, int | str):
        raise Wrong
    return decimal_of(value, type) if isinstance(value, str) else exact_decimal(Decimal(value), type)


def _finite(value: Any) -> float:
    """A number of double precision: infinite only if the text says so."""
    found = double(value)
    if math.isinf(found) and isinstance(value, int | JsonNumber):
        raise Wrong
    return found


def _single(value: Any) -> float:
    found = _finite(value)
    rounded = to_float32(found)
    if math.isinf(rounded) and not math.isinf(found):
        raise Wrong
    return rounded


def _text(value: Any) -> str:
    """A text as UTF-8 can have it, without half of a surrogate pair; other values as they are written."""
    if isinstance(value, dict | list):
        if not isinstance(value, _Object | _Array):
            raise Inexact
        value = value.written
    if isinstance(value, float):  # NaN or an infinity, which the decoder takes as bare words
        return java_double(value)
    found = value if isinstance(value, str) else compact(value, str)
    found.encode()  # UnicodeEncodeError is a ValueError
    return found


def _day(value: Any) -> int:
    if not isinstance(value, str) or isinstance(value, JsonNumber):
        raise Wrong
    return date_of(value)


def _moment(zone: tzinfo, value: Any) -> int:
    """A timestamp of a text; of a whole number the one after so many seconds since 1970."""
    if isinstance(value, int) and not isinstance(value, bool):
        return seconds_of(value)
    if not isinstance(value, str) or isinstance(value, JsonNumber):
        raise Wrong
    return timestamp_of(value, zone)


_EXACT: Scalars = {"float": _single, "double": _finite, "string": _text, "date": _day}
"""How values of data are read that `from_json` is lenient about."""
