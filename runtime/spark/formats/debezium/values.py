"""Values in the rows of change events: JSON, but for decimals and times, which Debezium writes in ways of its own.

A decimal is a number, a text, the bytes of its digits in base64, or these with their scale; a date is a number of days;
a time is a text, or a number of which only the event's schema or an option tells the unit. What neither tells is not
guessed: a guess would be a wrong value.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date
from decimal import Decimal
from typing import Any

from vsc.plan.types import DataType, DecimalType
from vsc.runtime.expressions.json_data import data_converter
from vsc.runtime.expressions.json_text import JsonNumber
from vsc.runtime.texts import date_of, decimal_of, exact_decimal, micros_of, timestamp_of

__all__ = ["Form", "Unknown", "form_of", "value_reader"]

_DAYS, _OTHER = "days", "another"
"""What an event's schema says of the numbers in a column, beside the units of the option: they count days, or they are
times of a day, durations or years."""
_UNITS: Mapping[str, tuple[int, int]] = {
    "milliseconds": (1000, 1), "microseconds": (1, 1), "nanoseconds": (1, 1000), _DAYS: (86_400_000_000, 1),
}  # fmt: skip
"""By what a number is multiplied and divided to be microseconds."""
_OF_TIMES = ("io.debezium.time.", "org.apache.kafka.connect.data.")
"""What begins the names of schemas whose numbers are times of some kind."""
_TIMES = {
    "io.debezium.time.Date": _DAYS, "org.apache.kafka.connect.data.Date": _DAYS,
    "io.debezium.time.Timestamp": "milliseconds", "io.debezium.time.MicroTimestamp": "microseconds",
    "io.debezium.time.NanoTimestamp": "nanoseconds", "org.apache.kafka.connect.data.Timestamp": "milliseconds",
}  # fmt: skip
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_YEARS = (date.min.toordinal() - date(1970, 1, 1).toordinal(), date.max.toordinal() - date(1970, 1, 1).toordinal())


class Unknown(ValueError):
    """A value that could be several; the argument says what is missing."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a column is written: decimals as ``base64`` (of this scale; None: that of the column) or ``text``, times in
    units of `times`. None: unknown. `told`: by the event's schema, where dates are not numbers of days unless it says
    so."""

    decimals: str | None = None
    scale: int | None = None
    times: str | None = None
    told: bool = False


def form_of(schema: Any, otherwise: Form) -> Form:
    """What the schema of a field says of it, or of the elements of its array."""
    while isinstance(schema, dict) and schema.get("type") == "array":
        schema = schema.get("items")
    if not isinstance(schema, dict):
        return otherwise
    name = schema.get("name")
    if name == _DECIMAL:
        return Form("base64", int(schema["parameters"]["scale"]))
    if isinstance(name, str) and name.startswith(_OF_TIMES):
        return Form(times=_TIMES.get(name, _OTHER), told=True)
    return Form("text", times=otherwise.times) if schema.get("type") == "string" else otherwise


def value_reader(type: DataType, form: Form) -> Callable[[Any], Any]:
    """The function from a JSON value, not null, to an internal value; it raises ValueError, Unknown if it has to know
    more."""

    def decimal(value: Any, type: DecimalType) -> Decimal:
        return _decimal(value, type, form)

    times = {"date": lambda value: _day(value, form), "timestamp": lambda value: _moment(value, form)}
    return data_converter(type, times, decimal)


def _decimal(value: Any, type: DecimalType, form: Form) -> Decimal:
    if isinstance(value, dict):  # a decimal of which each has a scale of its own
        return exact_decimal(_of_bytes(value["value"], int(value["scale"])), type)
    if isinstance(value, JsonNumber):
        return decimal_of(value, type)
    if isinstance(value, int) and not isinstance(value, bool):
        return exact_decimal(Decimal(value), type)
    if not isinstance(value, str):
        raise ValueError(value)
    if form.decimals is None:
        raise Unknown("is it base64 or text? say so with the option `decimals`")
    if form.decimals == "text":
        return decimal_of(value, type)
    return exact_decimal(_of_bytes(value, type.scale if form.scale is None else form.scale), type)


def _of_bytes(text: str, scale: int) -> Decimal:
    unscaled = int.from_bytes(base64.b64decode(text, validate=True), "big", signed=True)
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def _day(value: Any, form: Form) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        if not _YEARS[0] <= value <= _YEARS[1] or (form.told and form.times != _DAYS):
            raise ValueError(value)
        return value
    if not isinstance(value, str) or isinstance(value, JsonNumber):
        raise ValueError(value)
    return date_of(value)


def _moment(value: Any, form: Form) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        if form.times is None:
            raise Unknown("in which unit is it counted? say so with the option `times`")
        if form.times not in _UNITS:
            raise ValueError(value)
        factor, divisor = _UNITS[form.times]
        return micros_of(value * factor // divisor)
    if not isinstance(value, str) or isinstance(value, JsonNumber):
        raise ValueError(value)
    return timestamp_of(value, UTC)
