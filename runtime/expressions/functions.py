"""The strict functions: those that are null when any argument is, evaluated on values that are not.

`BUILDERS` maps a function's name to what makes its implementation for one call in a plan; building looks at types and
constants once, so that a row costs only the function itself. What is lazy or looks at nulls is in
`vsc.runtime.expressions.row`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from vsc.plan.expressions import Call, Expr, Literal
from vsc.plan.functions import SHA2_BITS
from vsc.plan.types import BINARY, ArrayType, MapType, StructType
from vsc.runtime.expressions import calendar, text
from vsc.runtime.expressions.failure import fail
from vsc.runtime.expressions.json_text import reader, writer
from vsc.runtime.expressions.numbers import absolute, binary, negated, rounded, whole
from vsc.runtime.expressions.ordering import comparison
from vsc.runtime.expressions.patterns import pattern_reader

__all__ = ["BUILDERS", "instant"]

Function = Callable[..., Any]
Builder = Callable[[Call], Function]


def _constant(expr: Expr) -> Any:
    """The value of a constant argument that the compiler has made sure of; None if it is not constant."""
    return expr.value if isinstance(expr, Literal) else None


def _plain(function: Function) -> Builder:
    return lambda call: function


# ---------------------------------------------------------------------------------------------------------- numbers


def _arithmetic(call: Call) -> Function:
    right = call.args[1]
    if str(right.type) == "interval":
        sign = 1 if call.function == "add" else -1
        return lambda moment, millis: instant(moment + sign * millis * 1000)
    return binary(call.function, call.type)


def instant(micros: int) -> int:
    """A timestamp, in microseconds; fails on one that has no room in 64 bits."""
    if -(2**63) <= micros < 2**63:
        return micros
    fail("ARITHMETIC_OVERFLOW", "long overflow")


def _round(call: Call) -> Function:
    rounding = rounded(int(_constant(call.args[1])), call.args[0].type, call.type)
    return lambda value, digits: rounding(value)


# ------------------------------------------------------------------------------------------------------------- text


def _like(call: Call) -> Function:
    pattern = _constant(call.args[1])
    if pattern is None:
        return lambda value, written: text.like_regex(written).fullmatch(value) is not None
    regex = text.like_regex(pattern)
    return lambda value, written: regex.fullmatch(value) is not None


def _split(call: Call) -> Function:
    regex = text.split_regex(str(_constant(call.args[1])))
    return lambda value, pattern, limit: text.split(value, regex, limit)


def _md5(value: bytes) -> str:
    return hashlib.md5(value, usedforsecurity=False).hexdigest()


def _sha2(value: bytes, bits: int) -> str | None:
    name = SHA2_BITS.get(bits)
    return None if name is None else hashlib.new(name, value).hexdigest()


def _concat(call: Call) -> Function:
    if isinstance(call.type, ArrayType):
        return lambda *lists: [item for one in lists for item in one]
    empty: Any = b"" if call.type == BINARY else ""
    return lambda *parts: empty.join(parts)


# ------------------------------------------------------------------------------------------------------------- time


def _truncate(call: Call) -> Function:
    unit = str(_constant(call.args[0]))
    return lambda written, micros: instant(calendar.truncate(unit, micros))


def _wrapped(value: int) -> int:
    """`value` as 32 bits, as Spark's date arithmetic leaves it."""
    return (value + 2**31) % 2**32 - 2**31


def _to_timestamp(call: Call) -> Function:
    pattern = str(_constant(call.args[1]))
    read = pattern_reader(pattern)

    def parse(value: str, written: str) -> int:
        micros = read(value)
        if micros is None:
            fail("CANNOT_PARSE_TIMESTAMP", f"the text '{value}' does not fit the pattern '{pattern}'")
        return micros

    return parse


def _to_date(call: Call) -> Function:
    parse = _to_timestamp(call)
    return lambda value, written: parse(value, written) // calendar.DAY


# ----------------------------------------------------------------------------------------------------- nested values


def _element(call: Call) -> Function:
    if isinstance(call.args[0].type, MapType):
        return _entry

    def element(items: list[Any], index: int) -> Any:
        if not 0 <= index < len(items):
            fail("INVALID_ARRAY_INDEX", f"the index {index} is out of bounds: the array has {len(items)} elements")
        return items[index]

    return element


def _element_at(call: Call) -> Function:
    if isinstance(call.args[0].type, MapType):
        return _entry

    def element_at(items: list[Any], index: int) -> Any:
        if index == 0:
            fail("INVALID_INDEX_OF_ZERO", "the index 0 is invalid: element_at counts from 1")
        if abs(index) > len(items):
            fail("INVALID_ARRAY_INDEX_IN_ELEMENT_AT", f"the index {index} is out of bounds: {len(items)} elements")
        return items[index - 1 if index > 0 else index]

    return element_at


def _entry(entries: dict[Any, Any], key: Any) -> Any:
    return entries.get(key)


def _field(call: Call) -> Function:
    struct, name = call.args[0].type, _constant(call.args[1])
    assert isinstance(struct, StructType)
    place = [f.name for f in struct.fields].index(name)
    return lambda value, written: value[place]


def _compare(call: Call) -> Function:
    return comparison(call.function, call.args[0].type)


def _abs(call: Call) -> Function:
    return absolute(call.type)


def _negate(call: Call) -> Function:
    return negated(call.type)


def _whole(call: Call) -> Function:
    return whole(call.function, call.args[0].type, call.type)


def _length(value: str | bytes) -> int:
    return len(value)


def _part(i: int) -> Builder:
    return _plain(lambda days: calendar.civil(days)[i])


def _clock(unit: int, modulus: int) -> Builder:
    return _plain(lambda micros: micros // unit % modulus)


BUILDERS: dict[str, Builder] = {
    "abs": _abs,
    "add": _arithmetic,
    "ceil": _whole,
    "concat": _concat,
    "contains": _plain(lambda value, part: part in value),
    "date_add": _plain(lambda days, more: _wrapped(days + more)),
    "date_trunc": _truncate,
    "datediff": _plain(lambda end, start: _wrapped(end - start)),
    "day": _part(2),
    "element": _element,
    "element_at": _element_at,
    "ends_with": _plain(lambda value, part: value.endswith(part)),
    "eq": _compare,
    "floor": _whole,
    "from_json": lambda call: reader(call.type),
    "ge": _compare,
    "get_field": _field,
    "gt": _compare,
    "hour": _clock(calendar.SECOND * 3600, 24),
    "le": _compare,
    "length": _plain(_length),
    "like": _like,
    "lower": _plain(str.lower),
    "lt": _compare,
    "md5": _plain(_md5),
    "minute": _clock(calendar.SECOND * 60, 60),
    "month": _part(1),
    "multiply": _arithmetic,
    "ne": _compare,
    "negate": _negate,
    "not": _plain(lambda value: not value),
    "replace": _plain(text.replace),
    "round": _round,
    "second": _clock(calendar.SECOND, 60),
    "sha2": _plain(_sha2),
    "size": _plain(len),
    "split": _split,
    "starts_with": _plain(lambda value, part: value.startswith(part)),
    "substring": _plain(text.substring),
    "subtract": _arithmetic,
    "timestamp_millis": _plain(lambda millis: instant(millis * 1000)),
    "to_date": _to_date,
    "to_json": lambda call: writer(call.args[0].type),
    "to_timestamp": _to_timestamp,
    "trim": _plain(lambda value: value.strip(" ")),
    "unix_millis": _plain(lambda micros: micros // 1000),
    "upper": _plain(str.upper),
    "year": _part(0),
}
"""What makes the implementation of each strict function."""
