"""The column types of the language: Spark SQL's DDL types, as frozen values.

``str(t)`` is a type's DDL, and `parse_type` reads it back; the plan's JSON holds that text. Two types are equal iff
their DDL is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from vsc.plan.record import record

__all__ = [
    "BIGINT",
    "BINARY",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "FLOAT",
    "INT",
    "INTERVAL",
    "MAX_PRECISION",
    "SMALLINT",
    "STRING",
    "TIMESTAMP",
    "TINYINT",
    "VOID",
    "ArrayType",
    "DataType",
    "DecimalType",
    "Field",
    "MapType",
    "ScalarType",
    "StructType",
    "other_key",
    "parse_type",
    "quoted_name",
    "types_in",
]

MAX_PRECISION = 38
"""Digits of the widest decimal."""


@record
class ScalarType:
    """A type without parameters, by its DDL name (``bigint``, ``string``, ...).

    ``void`` is the type of a bare ``null``. ``interval`` is the type of a duration, which occurs only inside an
    expression, together with a timestamp. Neither may be a column's type.
    """

    name: str

    def __str__(self) -> str:
        return self.name


@record
class DecimalType:
    """``decimal(precision, scale)``; 1 <= precision <= 38, 0 <= scale <= precision."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@record
class ArrayType:
    """``array<element>``; elements may be null."""

    element: DataType

    def __str__(self) -> str:
        return f"array<{self.element}>"


@record
class MapType:
    """``map<key, value>``; keys are never null, values may be."""

    key: DataType
    value: DataType

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


@record
class Field:
    """A named member of a struct."""

    name: str
    type: DataType


@record
class StructType:
    """``struct<name: type, ...>``."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return "struct<" + ",".join(f"{quoted_name(f.name)}:{f.type}" for f in self.fields) + ">"


DataType = ScalarType | DecimalType | ArrayType | MapType | StructType

BOOLEAN = ScalarType("boolean")
TINYINT = ScalarType("tinyint")
SMALLINT = ScalarType("smallint")
INT = ScalarType("int")
BIGINT = ScalarType("bigint")
FLOAT = ScalarType("float")
DOUBLE = ScalarType("double")
STRING = ScalarType("string")
BINARY = ScalarType("binary")
DATE = ScalarType("date")
TIMESTAMP = ScalarType("timestamp")
VOID = ScalarType("void")
INTERVAL = ScalarType("interval")

_SCALARS = {
    t.name: t
    for t in (
        BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, VOID, INTERVAL,
    )
}  # fmt: skip

_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`|[A-Za-z_][A-Za-z0-9_]*|\d+)|([<>(),:]))")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_MAX_DEPTH = 64
_T = TypeVar("_T")


def types_in(type: DataType) -> Iterator[DataType]:
    """A type and all types inside it."""
    yield type
    match type:
        case ArrayType(element=element):
            yield from types_in(element)
        case MapType(key=key, value=value):
            yield from types_in(key)
            yield from types_in(value)
        case StructType(fields=fields):
            for field in fields:
                yield from types_in(field.type)


def other_key(type: DataType) -> DataType | None:
    """The key of the first map in a type whose keys are not strings, as JSON and Avro have them; None without one."""
    match type:
        case MapType(key=key, value=value):
            return key if key != STRING else other_key(value)
        case ArrayType(element=element):
            return other_key(element)
        case StructType(fields=fields):
            return next((found for field in fields if (found := other_key(field.type)) is not None), None)
    return None


def parse_type(ddl: str) -> DataType:
    """The type that `ddl` names, as written by ``str(type)``; case does not matter for type names.

    Raises ValueError if the whole of `ddl` is not exactly one type, or is nested too deeply.
    """
    tokens, position = [], 0
    while position < len(ddl.rstrip()):
        match = _TOKEN.match(ddl, position)
        if match is None:
            raise ValueError(f"not a type: {ddl!r}")
        tokens.append(match.group(1) or match.group(2))
        position = match.end()
    reader = _Reader(ddl, tokens)
    found = reader.type(0)
    if reader.next != len(tokens):
        raise reader.wrong()
    return found


class _Reader:
    """Recursive descent over the tokens of one DDL text."""

    def __init__(self, ddl: str, tokens: list[str]) -> None:
        self.ddl, self.tokens, self.next = ddl, tokens, 0

    def type(self, depth: int) -> DataType:
        if depth > _MAX_DEPTH:
            raise ValueError(f"type nested deeper than {_MAX_DEPTH}: {self.ddl[:60]!r}...")
        name = self._take().lower()
        match name:
            case "decimal":
                return DecimalType(*self._parts("(", self._number, ")", 2))
            case "array":
                return ArrayType(*self._parts("<", lambda: self.type(depth + 1), ">", 1))
            case "map":
                return MapType(*self._parts("<", lambda: self.type(depth + 1), ">", 2))
            case "struct":
                return StructType(tuple(self._parts("<", lambda: self._field(depth + 1), ">")))
        if name not in _SCALARS:
            raise self.wrong()
        return _SCALARS[name]

    def wrong(self) -> ValueError:
        return ValueError(f"not a type: {self.ddl!r}")

    def _take(self, expected: str | None = None) -> str:
        token = self.tokens[self.next] if self.next < len(self.tokens) else ""
        if not token or (expected is not None and token != expected):
            raise self.wrong()
        self.next += 1
        return token

    def _parts(self, opening: str, part: Callable[[], _T], closing: str, count: int | None = None) -> list[_T]:
        """The parts between brackets, of which there are `count`; None: any number."""
        self._take(opening)
        found = [part()]
        while (token := self._take()) == ",":
            found.append(part())
        if token != closing or count not in (None, len(found)):
            raise self.wrong()
        return found

    def _field(self, depth: int) -> Field:
        name = _unquoted(self._take())
        self._take(":")
        return Field(name, self.type(depth))

    def _number(self) -> int:
        token = self._take()
        if not token.isdigit():
            raise self.wrong()
        return int(token)


def quoted_name(name: str) -> str:
    """A name as a topology has it: in backticks if it is not a plain word."""
    return name if _PLAIN_NAME.match(name) else "`" + name.replace("`", "``") + "`"


def _unquoted(token: str) -> str:
    return token[1:-1].replace("``", "`") if token.startswith("`") else token
