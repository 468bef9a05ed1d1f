"""What a part of an expression is on every row, where constants decide it: a value, null, or a failure.

It is careful rather than complete: a text counts as a number or a time wherever it could be one. So it may overlook a
failure, but never invents one.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import Enum
from math import isfinite, prod
from typing import TypeGuard

from vsc.plan.expressions import Call, Cast, Expr, Literal, Value, inside
from vsc.plan.record import record
from vsc.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    ArrayType,
    DataType,
    DecimalType,
)

__all__ = ["BITS", "LENIENT", "Always", "Constant", "Known", "Outcomes"]


Constant = bool | int | Decimal | float | str | datetime


class Always(Enum):
    """What a part that has no value is on every row (on which its other parts have one)."""

    NULL = "null"
    FAILS = "a failure"


@record
class Known:
    """A value that is the same on every row; a date is the datetime at which it begins."""

    value: Constant


Outcome = Known | Always | None

BITS: Mapping[DataType, int] = {TINYINT: 8, SMALLINT: 16, INT: 32, BIGINT: 64}
LENIENT = frozenset(
    ("and", "or", "case", "if", "coalesce", "nullif", "in", "is_null", "is_not_null", "greatest", "least", "concat_ws",
     "array", "struct", "to_json", "size", "event_time", "xxhash64", "map", "aggregate", "reduce")
)  # fmt: skip
"""The calls that can have a value although an argument is null."""
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FLOATING = re.compile(rf"[+-]?(?:inf|infinity|nan)|[+-]?0x.*|(?:{_NUMBER.pattern})[df]?", re.IGNORECASE | re.DOTALL)
_TRUTH = frozenset(("t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"))
_DAY = re.compile(r"[+-]?(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_HOURS = re.compile(r"[^ T]*[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2}))?(?!\d).*", re.DOTALL)
_PLAIN_TIME = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)?")
_CLOCK = re.compile(r"T?\d{1,2}:.*", re.DOTALL)
"""A time without a date, which is none here; whether it is one is not for this module to say."""


class Outcomes:
    """The outcomes of the parts of one expression, each computed once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Expr, Outcome]] = {}

    def of(self, expr: Expr) -> Outcome:
        """What `expr` is on every row; None if this is not known."""
        waiting = [expr]
        while waiting:
            part = waiting[-1]
            unknown = [one for one in inside(part) if id(one) not in self._known]
            if unknown:
                waiting += unknown
                continue
            waiting.pop()
            if id(part) not in self._known:
                self._known[id(part)] = part, self._computed(part)  # the part is kept, and with it its id
        return self._known[id(expr)][1]

    def _computed(self, expr: Expr) -> Outcome:
        try:
            return self._compute(expr)
        except (ArithmeticError, ValueError):  # a number or a time that Python does not have
            return None

    def _compute(self, expr: Expr) -> Outcome:
        match expr:
            case Literal(None):
                return Always.NULL
            case Literal(value, type):
                return _literal(value, type)
            case Cast(arg, type, safe):
                inner = self._known[id(arg)][1]
                found = _cast(inner.value, type) if isinstance(inner, Known) else inner
                return Always.NULL if safe and found is Always.FAILS and inner is not found else found
            case Call(function, args):
                return self._call(expr, function, args)
            case _:
                return None

    def _call(self, call: Call, function: str, args: tuple[Expr, ...]) -> Outcome:
        if function in LENIENT or call.is_own:
            return None
        outcomes = [self._known[id(arg)][1] for arg in args]
        if Always.FAILS in outcomes or Always.NULL in outcomes:
            return Always.FAILS if Always.FAILS in outcomes else Always.NULL
        last = outcomes[-1]
        number = last.value if isinstance(last, Known) and isinstance(last.value, int | float | Decimal) else None
        if function in ("divide", "modulo", "try_divide") and number == 0:
            return Always.NULL if function == "try_divide" else Always.FAILS
        if function in ("element", "element_at") and isinstance(number, int) and _is_no_element(call, number):
            return Always.FAILS
        if function == "slice" and _is_no_part(*outcomes[1:]):
            return Always.FAILS
        if function in ("to_date", "to_timestamp") and len(args) == 1 and isinstance(last, Known):
            return _cast(last.value, call.type)
        return _calculated(function, outcomes, call.type)


def _literal(value: Value, type: DataType) -> Outcome:
    if isinstance(type, DecimalType):
        return Known(Decimal(str(value)))
    is_plain = type in (BOOLEAN, DOUBLE, FLOAT, TINYINT, SMALLINT, INT, BIGINT) or isinstance(value, str)
    return Known(value) if is_plain and value is not None else None


def _is_no_element(call: Call, index: int) -> bool:
    """Whether an array, or this one if it is written out, has no such element."""
    array = call.args[0]
    if not isinstance(array.type, ArrayType):
        return False
    count = len(array.args) if isinstance(array, Call) and array.function == "array" else None
    if call.function == "element":
        return index < 0 or (count is not None and index >= count)
    return index == 0 or (count is not None and abs(index) > count)


def _is_no_part(start: Outcome, length: Outcome) -> bool:
    """Whether `slice` fails on every array."""
    return (isinstance(start, Known) and start.value == 0) or (
        isinstance(length, Known) and isinstance(length.value, int) and length.value < 0
    )


def _calculated(function: str, found: list[Outcome], type: DataType) -> Outcome:
    """The result of whole numbers, or that it does not fit its type."""
    values: list[int] = [one.value for one in found if isinstance(one, Known) and _is_whole(one.value)]
    if type not in BITS or len(values) < len(found):
        return None
    match function:
        case "add":
            return _cast(sum(values), type)
        case "subtract":
            return _cast(values[0] - sum(values[1:]), type)
        case "multiply":
            return _cast(prod(values), type)
        case _:
            return _cast(-values[0], type) if function == "negate" else None


def _is_whole(value: Constant) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _cast(value: Constant, to: DataType) -> Outcome:
    """The value as `to`; that it cannot be one; None if this is not known."""
    if isinstance(value, str):
        return _read(value, to)
    if isinstance(value, bool | datetime) or (isinstance(value, float) and not isfinite(value)):
        return None
    if to in BITS:
        limit = 1 << (BITS[to] - 1)
        return Known(int(value)) if -limit <= int(value) < limit else Always.FAILS
    if isinstance(to, DecimalType) and not isinstance(value, float):
        exact = round(Decimal(value), to.scale) == value  # else it is rounded, perhaps up
        fits = abs(value) < 10 ** (to.precision - to.scale)
        return Always.FAILS if not fits else Known(Decimal(value)) if exact else None
    return Known(float(value)) if to == DOUBLE else None


def _read(text: str, to: DataType) -> Outcome:
    """The text as a value of `to`."""
    text = text.strip()
    if to in BITS:
        return _cast(int(text), to) if _WHOLE.fullmatch(text) else Always.FAILS
    if isinstance(to, DecimalType):
        return _cast(Decimal(text), to) if _NUMBER.fullmatch(text) else Always.FAILS
    if to in (FLOAT, DOUBLE):
        return None if _FLOATING.fullmatch(text) else Always.FAILS
    if to == BOOLEAN:
        return None if text.lower() in _TRUTH else Always.FAILS
    if to in (DATE, TIMESTAMP):
        if not _may_be_time(text) or (to == TIMESTAMP and not _may_be_hours(text)):
            return Always.FAILS
        return Known(datetime.fromisoformat(text)) if _PLAIN_TIME.fullmatch(text) else None
    return Known(text) if to == STRING else None


def _may_be_time(text: str) -> bool:
    if _CLOCK.fullmatch(text):
        return True
    found = _DAY.fullmatch(text)
    if found is None:
        return False
    year, month, day = (int(part or 1) for part in found.groups())
    return 1 <= month <= 12 and 1 <= day <= (monthrange(year, month)[1] if 0 < year < 10_000 else 31)


def _may_be_hours(text: str) -> bool:
    """Whether what follows a day can be the time of a day. A date takes anything there."""
    found = _HOURS.fullmatch(text)
    if found is None:
        return True
    hour, minute, second = (int(part or 0) for part in found.groups())
    return hour < 24 and minute < 60 and second < 60
