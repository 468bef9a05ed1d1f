"""Casts between internal values, as Spark's in ANSI mode: `caster` gives the function for a pair of types.

Guarantees: a value that the target cannot hold fails with Spark's error class; null stays null (the caller's job).
Differs from Spark: a number of seconds that no timestamp can be fails, where Spark gives some other time; so does
binary that is not UTF-8, of which Spark makes a text that is none; doubles are printed with the fewest digits, where a
Java before 19 sometimes prints one more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np

from vsc.plan.types import VOID, ArrayType, DataType, DecimalType, MapType, ScalarType, StructType
from vsc.runtime.expressions.calendar import DAY, EDGES, SECOND, date_text, parse_date, parse_timestamp, timestamp_text
from vsc.runtime.expressions.failure import fail, null_for_failure, short
from vsc.runtime.expressions.numbers import fit_decimal, instant, to_float32
from vsc.runtime.expressions.text import java_double, java_float
from vsc.runtime.values import INTEGER_BITS

__all__ = ["Caster", "caster"]

Caster = Callable[[Any], Any]

_JAVA_TRIM = "".join(map(chr, range(0x21)))
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_FLOAT = re.compile(r"([+-]?(?:(?:[0-9]++\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?\Z")
_HEX_FLOAT = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]++\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?\Z")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?\Z")
_SPECIAL = {
    "nan": math.nan, "inf": math.inf, "+inf": math.inf, "infinity": math.inf, "+infinity": math.inf,
    "-inf": -math.inf, "-infinity": -math.inf,
}  # fmt: skip
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_PARSE = Context(prec=2000)
_FLOATING = ("float", "double")


def caster(source: DataType, target: DataType, *, safe: bool = False) -> Caster:
    """The function that casts a non-null value of `source` to `target`; the types must be castable.

    With `safe` (``try_cast``) a value that cannot be cast is null: the element or the field, not its container.
    """
    if source in (target, VOID):  # of void there is only null
        return lambda value: value
    match source, target:
        case ArrayType(a), ArrayType(b):
            item = _nullable(caster(a, b, safe=safe))
            return lambda value: [item(x) for x in value]
        case MapType(k, v), MapType(l, w):
            key, entry = caster(k, l), _nullable(caster(v, w, safe=safe))
            return lambda value: {key(x): entry(y) for x, y in value.items()}
        case StructType(fs), StructType(gs):
            members = [_nullable(caster(f.type, g.type, safe=safe)) for f, g in zip(fs, gs, strict=True)]
            return lambda value: tuple(member(x) for member, x in zip(members, value, strict=True))
        case _, DecimalType():
            cast = _to_decimal(source, target)
        case _, ScalarType(name):
            cast = _TARGETS[name](source, name)
        case _:
            raise ValueError(f"no cast from {source} to {target}")
    return null_for_failure(cast) if safe else cast


def _nullable(cast: Caster) -> Caster:
    return lambda value: None if value is None else cast(value)


def _invalid(value: object, source: str, target: object) -> Any:
    fail(
        "CAST_INVALID_INPUT", f"the value '{short(value)}' of type {source} cannot be cast to {target}: it is malformed"
    )


def _overflow(value: object, source: object, target: object) -> Any:
    fail("CAST_OVERFLOW", f"the value {short(value)} of type {source} cannot be cast to {target}: overflow")


# ---------------------------------------------------------------------------------------------------------- numbers


def _to_integer(source: DataType, name: str) -> Caster:
    high = (1 << (INTEGER_BITS[name] - 1)) - 1
    low = -high - 1

    def checked(number: int, value: object) -> int:
        return number if low <= number <= high else int(_overflow(value, source, name))

    def of_string(value: str) -> int:
        text = value.strip(EDGES)
        if _INTEGER.match(text) is None:
            _invalid(value, "string", name)
        digits = text.lstrip("+-").lstrip("0")
        number = int(digits or 0) if len(digits) < 20 else high + 2
        number = -number if text[0] == "-" else number
        return number if low <= number <= high else int(_invalid(value, "string", name))

    match str(source):
        case "string":
            return of_string
        case "boolean":
            return int
        case "float" | "double":
            return lambda value: _truncated(value, value, low, high, source, name)
        case "timestamp":
            return lambda value: checked(value // SECOND, value)
        case _:
            return lambda value: checked(int(value), value)


def _truncated(number: float, value: float, low: int, high: int, source: DataType, name: str) -> int:
    """The integer before the point of `number`, which `value` has become; fails if it is not from `low` to `high`."""
    if math.isfinite(number) and math.floor(number) <= float(high) and math.ceil(number) >= float(low):
        return min(int(number), high)
    return int(_overflow(value, source, name))


def _seconds(micros: int) -> float:
    return float(micros) / SECOND  # rounded twice, as in Spark


def _to_floating(source: DataType, name: str) -> Caster:
    single = name == "float"

    def of_string(value: str) -> float:
        text = value.strip(_JAVA_TRIM)
        if (match := _FLOAT.match(text)) is not None:
            number = float(match[1])
        elif (match := _HEX_FLOAT.match(text)) is not None:
            number = _hex(match[1])
        elif text.lower() in _SPECIAL:
            number = _SPECIAL[text.lower()]
        else:
            number = float(_invalid(value, "string", name))
        return to_float32(number) if single else number

    if str(source) == "string":
        return of_string
    if str(source) == "timestamp":
        return (lambda value: to_float32(_seconds(value))) if single else _seconds
    if single and str(source) in INTEGER_BITS:
        return lambda value: float(np.int64(value).astype(np.float32))  # rounded once, not by way of a double
    return (lambda value: to_float32(float(value))) if single else float


def _hex(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf


def _to_decimal(source: DataType, target: DecimalType) -> Caster:
    def of_string(value: str) -> Decimal:
        text = value.strip(_JAVA_TRIM)
        match = _DECIMAL.match(text)
        if match is None or len((match[1] or "").lstrip("+-0")) > 9:  # Java has no exponents of more digits
            return Decimal(_invalid(value, "string", target))
        number = Decimal(text)
        return fit_decimal(number if number and number.adjusted() >= -100 else Decimal(0), target)

    def of_float(value: float) -> Decimal | None:
        # Spark finds no decimal for NaN and gives null, even in ANSI mode.
        return fit_decimal(Decimal(repr(value)), target) if math.isfinite(value) else None

    match str(source):
        case "string":
            return of_string
        case "float" | "double":
            return of_float
        case "timestamp":
            return lambda value: fit_decimal(Decimal(value).scaleb(-6, _PARSE), target)
        case _:
            return lambda value: fit_decimal(Decimal(value), target)


def _to_boolean(source: DataType, name: str) -> Caster:
    def of_string(value: str) -> bool:
        text = value.strip(EDGES).lower()
        if text in _TRUE:
            return True
        return False if text in _FALSE else bool(_invalid(value, "string", name))

    return of_string if str(source) == "string" else lambda value: value != 0


# ------------------------------------------------------------------------------------------------------------- time


def _to_timestamp(source: DataType, name: str) -> Caster:
    low, high = -(2**63), 2**63 - 1

    def of_float(value: float) -> int:
        if not math.isfinite(value):
            return int(_invalid(java_double(value), str(source), name))
        return _truncated(value * SECOND, value, low, high, source, name)

    def of_seconds(seconds: Callable[[Any], int]) -> Caster:
        def of_number(value: Any) -> int:
            micros = seconds(value)
            return micros if low <= micros <= high else int(_overflow(value, source, name))

        return of_number

    match str(source):
        case "string":
            return _parsed(parse_timestamp, name)
        case "float" | "double":
            return of_float
        case "date":
            return lambda value: instant(value * DAY)
        case _ if isinstance(source, DecimalType):
            return of_seconds(lambda value: int(value.scaleb(6, _PARSE)))
        case _:
            return of_seconds(lambda value: value * SECOND)


def _to_date(source: DataType, name: str) -> Caster:
    return _parsed(parse_date, name) if str(source) == "string" else lambda value: value // DAY


def _parsed(parse: Callable[[str], int | None], name: str) -> Caster:
    def of_string(value: str) -> int:
        found = parse(value)
        return int(_invalid(value, "string", name)) if found is None else found

    return of_string


# ------------------------------------------------------------------------------------------------------------- text


def _to_string(source: DataType, name: str) -> Caster:
    match source:
        case ArrayType(element):
            item = _shown(element)
            return lambda value: "[" + ", ".join(item(x) for x in value) + "]"
        case MapType(key, entry):
            left, right = _shown(key), _shown(entry)
            return lambda value: "{" + ", ".join(f"{left(k)} -> {right(v)}" for k, v in value.items()) + "}"
        case StructType(fields):
            members = [_shown(f.type) for f in fields]
            return lambda value: "{" + ", ".join(m(x) for m, x in zip(members, value, strict=True)) + "}"
        case DecimalType():
            return lambda value: format(value, "f")
        case ScalarType(kind):
            return _PRINTERS.get(kind, str)


def _shown(type: DataType) -> Caster:
    cast = caster(type, ScalarType("string"))
    return lambda value: "null" if value is None else cast(value)


def _utf8(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        fail("INVALID_UTF8_STRING", f"a binary that is not valid UTF-8 cannot be cast to string: {short(value.hex())}")


_PRINTERS: dict[str, Caster] = {
    "boolean": lambda value: "true" if value else "false",
    "float": java_float,
    "double": java_double,
    "date": date_text,
    "timestamp": timestamp_text,
    "binary": _utf8,
}


_TARGETS: dict[str, Callable[[DataType, str], Caster]] = {
    **dict.fromkeys(INTEGER_BITS, _to_integer),
    **dict.fromkeys(_FLOATING, _to_floating),
    "boolean": _to_boolean,
    "timestamp": _to_timestamp,
    "date": _to_date,
    "string": _to_string,
    "binary": lambda source, name: str.encode,
}
