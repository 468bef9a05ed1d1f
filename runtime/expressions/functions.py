"""The catalogue of the runtime: how each function and operator of `vsc.plan.functions` is evaluated.

Each has one record: the function of its arguments' values, and a kernel for whole columns if one exists.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pyarrow.compute as pc

from vsc.plan.expressions import Call, Expr, Literal
from vsc.plan.functions import SHA2_BITS
from vsc.plan.types import BINARY, ArrayType, Field, MapType, StructType
from vsc.runtime.expressions import (
    arrays,
    calendar,
    digits,
    json_paths,
    kernels,
    maths,
    regexes,
    text,
    text_kernels,
    time_kernels,
    urls,
)
from vsc.runtime.expressions.failure import fail, null_for_failure, short
from vsc.runtime.expressions.forms import Form, Kernel, Lazy, all_of, divisor_first, in_turn, seeing, stepwise
from vsc.runtime.expressions.hashing import SEED, hasher
from vsc.runtime.expressions.json_text import reader, writer
from vsc.runtime.expressions.lambdas import EXISTS, FILTER, FORALL, REDUCE, TRANSFORM, TRANSFORM_VALUES
from vsc.runtime.expressions.lazy import CASE, COALESCE, IN, LOGIC, OWN_VECTORIZED
from vsc.runtime.expressions.numbers import absolute, binary, instant, negated, rounded, whole
from vsc.runtime.expressions.ordering import comparison, sort_key
from vsc.runtime.expressions.own import on_row
from vsc.runtime.expressions.zones import zone_named

__all__ = ["FUNCTIONS", "form_of"]

Function = Callable[..., Any]


def _constant(expr: Expr) -> Any:
    """The value of a constant argument, which the compiler has checked; None if it is not constant."""
    return expr.value if isinstance(expr, Literal) else None


def _same(function: Function, kernel: Kernel | None = None, looks: Any = in_turn) -> Form:
    """The form of a function that is the same for every call."""
    return Form(lambda call: function, kernel, looks)


# ---------------------------------------------------------------------------------------------------------- numbers


def _arithmetic(call: Call) -> Function:
    right = call.args[1]
    if str(right.type) == "interval":
        sign = 1 if call.function == "add" else -1
        return lambda moment, millis: instant(moment + sign * millis * 1000)
    return binary(call.function, call.type)


def _try_divide(call: Call) -> Function:
    return null_for_failure(binary("divide", call.type))


def _extreme(call: Call) -> Function:
    choose, key = max if call.function == "greatest" else min, sort_key(call.type)
    return lambda *values: choose((v for v in values if v is not None), key=key, default=None)


def _round(call: Call) -> Function:
    rounding = rounded(int(_constant(call.args[1])), call.args[0].type, call.type)
    return lambda value, digits: rounding(value)


# ------------------------------------------------------------------------------------------------------------- text


def _like(call: Call) -> Function:
    pattern = _constant(call.args[1])
    if pattern is None:
        return lambda value, written: text.like_matcher(written)(value)
    matches = text.like_matcher(pattern)
    return lambda value, written: matches(value)


def _md5(value: bytes) -> str:
    return hashlib.md5(value, usedforsecurity=False).hexdigest()


def _sha2(value: bytes, bits: int) -> str | None:
    name = SHA2_BITS.get(bits)
    return None if name is None else hashlib.new(name, value).hexdigest()


def _concat(call: Call) -> Function:
    if isinstance(call.type, ArrayType):
        return lambda *lists: [item for one in lists for item in one]
    empty: Any = b"" if call.type == BINARY else ""
    return text.limited(lambda *parts: empty.join(parts))


def _hex(call: Call) -> Function:
    return digits.hex_of_bytes if call.args[0].type == BINARY else digits.hex_of_number


# ------------------------------------------------------------------------------------------------------------- time


def _truncate(call: Call) -> Function:
    unit = str(_constant(call.args[0]))
    if len(call.args) == 2:
        return lambda written, micros: instant(calendar.truncated(unit, micros))
    return lambda written, micros, zone: instant(calendar.truncated_in(zone_named(zone), unit, micros))


def _from_utc(micros: int, zone: str) -> int:
    return instant(micros + zone_named(zone).ahead(micros))


def _to_utc(local: int, zone: str) -> int:
    return instant(local - zone_named(zone).ahead_at(local))


def _days(value: int) -> int:
    """`value`, a date or a number of days; fails if it does not fit in 32 bits."""
    if -(2**31) <= value < 2**31:
        return value
    fail("ARITHMETIC_OVERFLOW", "int overflow")


_Made = TypeVar("_Made")


def _by(made: Callable[[str], _Made], call: Call, pattern: str) -> _Made:
    """The reader or writer of a pattern of times, which may have been computed; a wrong one fails."""
    try:
        return made(pattern)
    except ValueError as problem:
        fail("INVALID_DATETIME_PATTERN", f"`{call.function}` does not support {problem}")


def _try_to_timestamp(call: Call) -> Function:
    return lambda value, pattern: _by(calendar.pattern_reader, call, pattern)(value)


def _to_timestamp(call: Call) -> Function:
    read = _try_to_timestamp(call)

    def parse(value: str, pattern: str) -> int:
        micros = read(value, pattern)
        if micros is None:
            fail("CANNOT_PARSE_TIMESTAMP", f"the text '{short(value)}' does not fit the pattern '{pattern}'")
        return int(micros)

    return parse


def _from_unixtime(call: Call) -> Function:
    return lambda seconds, pattern: _by(calendar.pattern_writer, call, pattern)(instant(seconds * calendar.SECOND), 0)


def _date_format(call: Call) -> Function:
    def formatted(micros: int, pattern: str, zone: str = "UTC") -> str:
        write, ahead = _by(calendar.pattern_writer, call, pattern), zone_named(zone).ahead(micros)
        return write(micros + ahead, ahead)

    return formatted


def _to_date(call: Call) -> Function:
    parse = _to_timestamp(call)
    return lambda value, pattern: parse(value, pattern) // calendar.DAY


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


def _map(call: Call) -> Function:
    of = arrays.map_of(call)
    return lambda *values: of(zip(values[::2], values[1::2], strict=True))


def _map_from_entries(call: Call) -> Function:
    of = arrays.map_of(call)
    return lambda entries: None if None in entries else of(entries)


def _field(call: Call) -> Function:
    struct, name = call.args[0].type, _constant(call.args[1])
    assert isinstance(struct, StructType)
    place = [f.name for f in struct.fields].index(name)
    return lambda value, written: value[place]


def _hash(call: Call) -> Function:
    hashed = hasher(StructType(tuple(Field("", arg.type) for arg in call.args)))  # a struct is hashed value by value
    return lambda *values: hashed(values, SEED)


# --------------------------------------------------------------------------------------------------------- catalogue

_COMPARISON = Form(lambda call: comparison(call.function, call.args[0].type), kernels.comparison)


def _whole(function: Function) -> Form:
    return Form(lambda call: whole(call.function, call.args[0].type, call.type), kernels.whole(function))


def _of_micros(function: Function) -> Form:
    """An arithmetic function of the microseconds since 1970, the same for a number and an array."""
    return _same(function, time_kernels.of_micros(function))


def _date_part(part: Function, function: Function) -> Form:
    return _same(part, time_kernels.date_part(function))


def _trim(strip: Function, function: Function) -> Form:
    return _same(lambda value: strip(value, " "), lambda call, args: function(args[0], characters=" "))


def _after_1970(unit: int) -> Form:
    return _same(lambda units: instant(units * unit), time_kernels.after_1970(unit))


FUNCTIONS: dict[str, Form | Lazy] = {
    **{name: _same(function) for name, function in (maths.OF_ONE | maths.LOGARITHMS).items()},
    "abs": Form(lambda call: absolute(call.type), kernels.of_one),
    "add": Form(_arithmetic, kernels.arithmetic, stepwise),
    "aggregate": REDUCE,
    "and": LOGIC,
    "array": _same(lambda *items: list(items), kernels.array, seeing),
    "array_contains": Form(arrays.contains),
    "array_distinct": Form(arrays.distinct),
    "atan2": _same(maths.angle),
    "case": CASE,
    "ceil": _whole(np.ceil),
    "coalesce": COALESCE,
    "concat": Form(_concat, text_kernels.concat, all_of),
    "concat_ws": _same(text.limited(text.concat_ws), text_kernels.concat_ws, seeing),
    "contains": _same(lambda value, part: part in value, text_kernels.search(pc.match_substring)),
    "conv": _same(digits.in_base),
    "date_add": _same(lambda days, more: _days(days + more), time_kernels.add_days(pc.add_checked)),
    "date_format": Form(_date_format, time_kernels.formatted),
    "date_trunc": Form(_truncate, time_kernels.truncate),
    "datediff": _same(lambda end, start: _days(end - start), time_kernels.add_days(pc.subtract_checked)),
    "day": _date_part(lambda days: calendar.civil(days)[2], pc.day),
    "dayofweek": _date_part(lambda days: (days + 4) % 7 + 1, time_kernels.day_of_week),
    "divide": Form(_arithmetic, kernels.divide, divisor_first),
    "element": Form(_element, kernels.element(0)),
    "element_at": Form(_element_at, kernels.element(1)),
    "ends_with": _same(lambda value, part: value.endswith(part), text_kernels.search(pc.ends_with)),
    "eq": _COMPARISON,
    "exists": EXISTS,
    "filter": FILTER,
    "floor": _whole(np.floor),
    "forall": FORALL,
    "from_json": Form(lambda call: reader(call.type)),
    "from_unixtime": Form(_from_unixtime, time_kernels.by_pattern_of_seconds),
    "from_utc_timestamp": _same(_from_utc, time_kernels.from_utc),
    "ge": _COMPARISON,
    "get_field": Form(_field, kernels.get_field),
    "get_json_object": Form(json_paths.reader),
    "greatest": Form(_extreme, kernels.extreme(pc.max_element_wise), seeing),
    "gt": _COMPARISON,
    "hex": Form(_hex),
    "hour": _of_micros(lambda micros: micros // calendar.HOUR % 24),
    "if": CASE,
    "in": IN,
    "initcap": _same(text.initcap),
    "instr": _same(text.instr),
    "is_not_null": _same(lambda value: value is not None, kernels.is_null, seeing),
    "is_null": _same(lambda value: value is None, kernels.is_null, seeing),
    "le": _COMPARISON,
    "least": Form(_extreme, kernels.extreme(pc.min_element_wise), seeing),
    "length": _same(len, text_kernels.length),
    "like": Form(_like, text_kernels.like),
    "log": _same(maths.logarithm),
    "lower": _same(str.lower, text_kernels.case_of(pc.ascii_lower)),
    "lpad": _same(text.padded(left=True)),
    "lt": _COMPARISON,
    "ltrim": _trim(str.lstrip, pc.utf8_ltrim),
    "map": Form(_map, looks=seeing),
    "map_concat": Form(arrays.maps_joined),
    "map_entries": _same(lambda entries: list(entries.items())),
    "map_from_entries": Form(_map_from_entries),
    "map_keys": _same(list),
    "map_values": _same(lambda entries: list(entries.values())),
    "md5": _same(_md5),
    "minute": _of_micros(lambda micros: micros // calendar.MINUTE % 60),
    "modulo": Form(_arithmetic, kernels.modulo, divisor_first),
    "month": _date_part(lambda days: calendar.civil(days)[1], pc.month),
    "multiply": Form(_arithmetic, kernels.arithmetic, stepwise),
    "ne": _COMPARISON,
    "negate": Form(lambda call: negated(call.type), kernels.of_one),
    "not": _same(lambda value: not value, lambda call, args: pc.invert(*args)),
    "or": LOGIC,
    "parse_url": _same(urls.part_of_url),
    "pow": _same(maths.power),
    "quarter": _date_part(lambda days: (calendar.civil(days)[1] + 2) // 3, pc.quarter),
    "reduce": REDUCE,
    "regexp_extract": regexes.EXTRACT,
    "regexp_like": regexes.LIKE,
    "regexp_replace": regexes.REPLACE,
    "repeat": _same(text.repeat),
    "replace": _same(text.replace, text_kernels.replace),
    "reverse": _same(lambda value: value[::-1]),
    "round": Form(_round, kernels.rounding),
    "rpad": _same(text.padded(left=False)),
    "rtrim": _trim(str.rstrip, pc.utf8_rtrim),
    "second": _of_micros(lambda micros: micros // calendar.SECOND % 60),
    "sequence": Form(arrays.sequence),
    "sha2": _same(_sha2),
    "size": _same(len, kernels.size),
    "slice": _same(arrays.section),
    "sort_array": Form(arrays.sorting),
    "split": regexes.SPLIT,
    "starts_with": _same(lambda value, part: value.startswith(part), text_kernels.search(pc.starts_with)),
    "struct": _same(lambda *fields: fields, kernels.struct, seeing),
    "substring": _same(text.substring, text_kernels.substring),
    "subtract": Form(_arithmetic, kernels.arithmetic, stepwise),
    "timestamp_millis": _after_1970(calendar.SECOND // 1000),
    "timestamp_seconds": _after_1970(calendar.SECOND),
    "to_date": Form(_to_date, time_kernels.by_pattern),
    "to_json": Form(lambda call: text.limited(writer(call.args[0].type))),
    "to_timestamp": Form(_to_timestamp, time_kernels.by_pattern),
    "to_utc_timestamp": _same(_to_utc, time_kernels.to_utc),
    "transform": TRANSFORM,
    "transform_values": TRANSFORM_VALUES,
    "translate": _same(text.translate),
    "trim": _trim(str.strip, pc.utf8_trim),
    "try_divide": Form(_try_divide, kernels.try_divide, divisor_first),
    "try_to_timestamp": Form(_try_to_timestamp, time_kernels.by_pattern),
    "unbase64": _same(digits.from_base64),
    "unhex": _same(digits.from_hex),
    "unix_millis": _of_micros(lambda micros: micros // (calendar.SECOND // 1000)),
    "unix_seconds": _of_micros(lambda micros: micros // calendar.SECOND),
    "upper": _same(str.upper, text_kernels.case_of(pc.ascii_upper)),
    "xxhash64": Form(_hash, looks=seeing),
    "year": _date_part(lambda days: calendar.civil(days)[0], pc.year),
}
"""How each is evaluated, by its name. Not here: ``event_time``, a leaf as columns are, ``nullif``, an ``if``, and the
literals ``pi`` and ``e``."""

_OWN = Form(on_row, looks=seeing)


def form_of(call: Call) -> Form | Lazy:
    """How a call is evaluated."""
    if call.is_own:
        return OWN_VECTORIZED if call.vectorized else _OWN
    return FUNCTIONS[call.function]
