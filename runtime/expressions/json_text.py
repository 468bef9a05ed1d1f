"""``from_json`` and ``to_json`` as Spark's, with its default options.

`reader`: text that is not JSON, or JSON of another shape, gives null (a struct: null fields), never a failure. A field
of the wrong kind is null and its sibling fields are kept; an array or a map with one wrong element is null. `writer`:
null fields are left out of structs and kept in arrays and maps. Names and numbers are compared as written.

Data in JSON is read by other rules, from the same parts: `vsc.runtime.expressions.json_data`.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from itertools import accumulate
from typing import Any

from vsc.plan.types import ArrayType, DataType, DecimalType, MapType, ScalarType, StructType
from vsc.runtime.expressions.calendar import DAY, SECOND, date_text, parse_date, parse_timestamp
from vsc.runtime.expressions.casts import caster
from vsc.runtime.expressions.digits import of_base64
from vsc.runtime.expressions.failure import ExpressionFailure
from vsc.runtime.expressions.numbers import fit_decimal, to_float32
from vsc.runtime.expressions.text import java_double, java_float
from vsc.runtime.values import INTEGER_BITS

__all__ = [
    "SCALARS", "JsonNumber", "Scalars", "Wrong", "compact", "converter", "decoded", "double", "double_quoted",
    "nullable", "quoted", "reader", "too_deep", "whole_number", "writer",
]  # fmt: skip

_TEXT = ScalarType("string")


class Wrong(ValueError):
    """A JSON value is not of the schema's type."""


class JsonNumber(str):
    """A JSON number with a fraction, an exponent or very many digits, as it was written."""

    __slots__ = ()


_MANY_DIGITS = 400
"""More than any number has that a type holds, a double too."""
_DEEPEST = 200
"""How deeply arrays and objects may be nested: Python's own limit depends on who calls."""


def whole_number(text: str) -> int | JsonNumber:
    """A number without a fraction, as the decoder makes it."""
    return int(text) if len(text) < _MANY_DIGITS else JsonNumber(text)


_DECODER = json.JSONDecoder(parse_float=JsonNumber, strict=True)
_LONG_DECODER = json.JSONDecoder(parse_float=JsonNumber, parse_int=whole_number, strict=True)


def decoded(text: str, at: int = 0) -> tuple[Any, int]:
    """The value at a place of a text, and where it ends."""
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError:
        raise
    except ValueError:  # Python does not read an integer of so many digits
        return _LONG_DECODER.raw_decode(text, at)


_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "+INF": math.inf, "INF": math.inf, "+Infinity": math.inf,
            "-Infinity": -math.inf, "-INF": -math.inf}  # fmt: skip
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?|\'((?:[^\'\\]|\\.)*+)(\'?)', re.DOTALL)
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[][{}]', re.DOTALL)
Scalars = dict[str, Callable[[Any], Any]]


# ---------------------------------------------------------------------------------------------------------- reading


def reader(type: DataType) -> Callable[[str], Any]:
    """The function that reads a text as `type` (a struct, an array or a map)."""
    convert = converter(type, SCALARS, _lenient, _decimal)
    wraps = isinstance(type, ArrayType) and isinstance(type.element, StructType)  # one object reads as an array of it
    nothing = tuple([None] * len(type.fields)) if isinstance(type, StructType) else None

    def read(text: str) -> Any:
        given = text.lstrip(" \t\r\n")
        if not given:
            return None
        try:
            if too_deep(given):
                return nothing
            value, _ = decoded(double_quoted(given))
            if wraps and isinstance(value, dict):
                value = [value]
            return convert(value) if value is not None else nothing
        except (ValueError, Wrong):
            return nothing

    return read


def double_quoted(text: str) -> str:
    """`text` with strings in single quotes, which Spark reads as well, in double quotes."""
    if "'" not in text:
        return text

    def double(match: re.Match[str]) -> str:
        inside, end = match.groups()
        return match.group(0) if not end else '"' + inside.replace("\\'", "'").replace('"', '\\"') + '"'

    return _STRING.sub(double, text)


def too_deep(text: str) -> bool:
    """Whether arrays and objects are nested deeper than `_DEEPEST`."""
    if text.count("[") + text.count("{") <= _DEEPEST:
        return False
    depths = accumulate(1 if piece in "[{" else -1 for piece in _BRACKETS.findall(text) if piece in "[]{}")
    return max(depths, default=0) > _DEEPEST


def converter(
    type: DataType,
    scalars: Scalars,
    field: Callable[[Callable[[Any], Any]], Callable[[Any], Any]],
    decimal: Callable[[Any, DecimalType], Decimal],
) -> Callable[[Any], Any]:
    """The function from a JSON value, not null, to an internal value; it raises Wrong, or ValueError.

    `field` says what becomes of a wrong field of a struct.
    """
    inner = partial(converter, scalars=scalars, field=field, decimal=decimal)
    match type:
        case StructType(fields):
            members = [(f.name, field(inner(f.type))) for f in fields]
            return lambda value: _struct(value, members)
        case ArrayType(element):
            item = nullable(inner(element))
            return lambda value: [item(x) for x in _of(value, list)]
        case MapType(_, entry):
            name, item = scalars["string"], nullable(inner(entry))
            return lambda value: {name(k): item(v) for k, v in _of(value, dict).items()}
        case DecimalType():
            return lambda value: decimal(value, type)
        case ScalarType(name) if name in INTEGER_BITS:
            limit = 1 << (INTEGER_BITS[name] - 1)
            return lambda value: _integer(value, limit)
        case ScalarType(name):
            return scalars[name]
    raise ValueError(f"no JSON for {type}")


def nullable(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same function for a value that may be null."""
    return lambda value: None if value is None else convert(value)


def _lenient(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def field(value: Any) -> Any:
        try:
            return None if value is None else convert(value)
        except Wrong:
            return None

    return field


def _of(value: Any, kind: type[Any]) -> Any:
    if not isinstance(value, kind):
        raise Wrong
    return value


def _struct(value: Any, members: list[tuple[str, Callable[[Any], Any]]]) -> tuple[Any, ...]:
    found = _of(value, dict)
    return tuple(convert(found.get(name)) for name, convert in members)


def _integer(value: Any, limit: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -limit <= value < limit:
        raise Wrong
    return value


def double(value: Any) -> float:
    """A number, or one of the texts that stand for what JSON has no number for."""
    if isinstance(value, float):  # NaN and Infinity, the only floats that the decoder makes
        return value
    if isinstance(value, str) and not isinstance(value, JsonNumber):
        if value not in _SPECIAL:
            raise Wrong
        return _SPECIAL[value]
    if isinstance(value, bool) or not isinstance(value, int | JsonNumber):
        raise Wrong
    return float(str(value))  # infinite where `float(value)` of an integer would be an error


def _decimal(value: Any, type: DecimalType) -> Decimal:
    if isinstance(value, bool | float) or not isinstance(value, int | str):
        raise Wrong
    try:
        return fit_decimal(Decimal(value), type) if not isinstance(value, str) else caster(_TEXT, type)(value)
    except ExpressionFailure:
        raise Wrong from None


def _string(value: Any) -> str:
    return _whole(value if isinstance(value, str) and not isinstance(value, JsonNumber) else compact(value))


def _whole(text: str) -> str:
    """A text with ``?`` for each half of a surrogate pair, as Java writes it."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def compact(value: Any, number: Callable[[str], str] = lambda text: java_double(float(text))) -> str:
    """A JSON value as text again, as Jackson copies it; `number` shows those with a fraction or an exponent."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case JsonNumber():
            return str(value) if value.lstrip("-").isdigit() else number(value)
        case float():
            return f'"{java_double(value)}"'
        case str():
            return quoted(value)
        case list():
            return "[" + ",".join(compact(one, number) for one in value) + "]"
        case dict():
            return "{" + ",".join(f"{quoted(k)}:{compact(v, number)}" for k, v in value.items()) + "}"
        case _:
            return str(value)


def _binary(value: Any) -> bytes:
    if isinstance(value, JsonNumber):  # such as 1e39, whose digits would be base64
        raise Wrong
    try:
        return of_base64(_of(value, str))
    except ValueError:
        raise Wrong from None


def _timestamp(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return _integer(value * SECOND, 2**63)
    return _parsed(parse_timestamp, value)


def _parsed(parse: Callable[[str], int | None], value: Any) -> int:
    if isinstance(value, JsonNumber):
        raise Wrong
    found = parse(_of(value, str))
    if found is None:
        raise Wrong
    return found


SCALARS: Scalars = {
    "boolean": lambda value: _of(value, bool),
    "float": lambda value: to_float32(double(value)),
    "double": double,
    "string": _string,
    "binary": _binary,
    "date": lambda value: _parsed(parse_date, value),
    "timestamp": _timestamp,
}


# ---------------------------------------------------------------------------------------------------------- writing


def writer(type: DataType, exact: bool = False) -> Callable[[Any], str]:
    """The function that writes an internal value of `type`, not null: a time with milliseconds, as Spark does; if
    `exact`, with microseconds where it has some."""
    match type:
        case StructType(fields):
            members = [(quoted(f.name) + ":", writer(f.type, exact)) for f in fields]
            return lambda value: _object(name + write(x) for (name, write), x in zip(members, value, strict=True)
                                         if x is not None)  # fmt: skip
        case ArrayType(element):
            item = _or_null(writer(element, exact))
            return lambda value: "[" + ",".join(map(item, value)) + "]"
        case MapType(key, entry):
            name, item = caster(key, _TEXT), _or_null(writer(entry, exact))
            return lambda value: _object(f"{quoted(name(k))}:{item(v)}" for k, v in value.items())
        case DecimalType():
            return str
        case ScalarType("timestamp") if exact:
            return _exact_instant
        case ScalarType(name_):
            return _WRITERS.get(name_, str)
    raise ValueError(f"no JSON for {type}")


def _object(members: Any) -> str:
    return "{" + ",".join(members) + "}"


def _or_null(write: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: "null" if value is None else write(value)


_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_ESCAPED = re.compile(r'[\x00-\x1f"\\\ud800-\udfff]')  # with half of a surrogate pair, which JSON can have


def quoted(text: str) -> str:
    """A text as a JSON string."""
    return '"' + _ESCAPED.sub(lambda m: _ESCAPES.get(m[0]) or f"\\u{ord(m[0]):04X}", text) + '"'


def _number(show: Callable[[float], str]) -> Callable[[float], str]:
    return lambda value: show(value) if math.isfinite(value) else f'"{show(value)}"'


def _instant(micros: int) -> str:
    days, rest = divmod(micros, DAY)
    millis = rest // 1000
    seconds = millis // 1000
    time = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{millis % 1000:03d}"
    return f'"{date_text(days)}T{time}Z"'


def _exact_instant(micros: int) -> str:
    behind = micros % 1000
    return f'{_instant(micros)[:-2]}{behind:03d}Z"' if behind else _instant(micros)


_WRITERS: dict[str, Callable[[Any], str]] = {
    "boolean": lambda value: "true" if value else "false",
    "float": _number(java_float),
    "double": _number(java_double),
    "string": quoted,
    "binary": lambda value: quoted(base64.b64encode(value).decode("ascii")),
    "date": lambda value: f'"{date_text(value)}"',
    "timestamp": _instant,
}
