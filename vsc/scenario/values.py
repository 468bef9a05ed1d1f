"""Reads values in a scenario file by the type of their column, not by what YAML guesses.

Guarantees: a value is exactly the one that the test driver returns for that column (decimals with their scale, floats
rounded to 32 bits, aware datetimes in UTC), so the two can be compared. No digit of a time is cut off silently, and no
key of a map counts twice. For `is_expected`, NaN equals NaN.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from vsc.plan.nodes import Column
from vsc.plan.types import ArrayType, DataType, DecimalType, MapType, StructType
from vsc.runtime.times import event_time
from vsc.runtime.values import from_python, to_python
from vsc.scenario.document import Document

__all__ = [
    "EXPECTED",
    "EXPECTED_KEY",
    "KEY",
    "ROW",
    "Manner",
    "Partial",
    "asked",
    "is_expected",
    "read_columns",
    "read_time",
    "read_value",
]

_INTEGER = re.compile(r"[-+]?[0-9]{1,40}")
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,4})?")
_FRACTION = re.compile(r":[0-9]{2}\.([0-9]+)")
_NOT_FINITE = {".inf": "inf", "+.inf": "inf", "-.inf": "-inf", ".nan": "nan"}
_BINARY_TAG = "tag:yaml.org,2002:binary"


class Partial(dict[Any, Any]):
    """A mapping that says what is expected of some names, and nothing of the others: one with a `...` in the file."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How mappings are read. `complete`: they need all columns and fields; else those left out are null.

    `partial`: they may say `...`.
    """

    complete: bool
    partial: bool


ROW, KEY = Manner(complete=False, partial=False), Manner(complete=True, partial=False)
EXPECTED, EXPECTED_KEY = Manner(complete=False, partial=True), Manner(complete=True, partial=True)


def read_value(document: Document, node: yaml.Node, type: DataType, what: str, manner: Manner) -> Any:
    """The Python value of `node` for a column of `type`. `what` names the column in errors. Raises ScenarioError."""
    if document.is_null(node):
        return None
    if isinstance(type, ArrayType | MapType | StructType):
        return _nested(document, node, type, what, manner)
    try:
        return to_python(from_python(_plain(document, node, type, what), type), type)
    except (ValueError, OverflowError):
        message = f"{what} is {type}: {_shown(node)} is not a value of it"
        raise document.error(node, message, _HELP.get(str(type))) from None


def read_columns(
    document: Document, node: yaml.Node, columns: Sequence[Column], what: str, manner: Manner
) -> dict[str, Any]:
    """The values of a mapping from columns to values, a `Partial` if it says `...`. Raises ScenarioError."""
    entries = document.mapping(node, what, manner.partial)
    types = {c.name: c.type for c in columns}
    for name, (key, _) in entries.items():
        if name not in types:
            raise document.unknown(key, f"column in {what}:", name, types)
    partial = document.is_partial(node)
    missing = [f"`{name}`" for name in types if name not in entries]
    if missing and manner.complete and not partial:
        raise document.error(node, f"{what} lacks {', '.join(missing)}", "a key has all of its columns")
    found = {
        name: read_value(document, value, types[name], f"`{name}`", manner) for name, (_, value) in entries.items()
    }
    return Partial(found) if partial else found


def read_time(document: Document, node: yaml.Node, what: str) -> int:
    """An event time: milliseconds since the epoch, or ISO text (UTC unless it says otherwise). Raises ScenarioError."""
    scalar = document.scalar(node, f"{what} is a time in milliseconds or as ISO text")
    _refuse_finer(document, scalar, what, 3)
    try:
        return event_time(_timestamp(scalar))
    except OverflowError:
        raise document.error(node, f"{what} is too far from 1970") from None
    except ValueError:
        raise document.error(
            node, f"{what} is a time in milliseconds or as ISO text (2026-03-02T10:00:00Z), not {scalar.value!r}"
        ) from None


def is_expected(expected: Any, seen: Any) -> bool:
    """Whether two values are equal, NaN being equal to itself; of a `Partial`, only what it names."""
    if isinstance(expected, float) and isinstance(seen, float):
        return expected == seen or (expected != expected and seen != seen)
    if isinstance(expected, list) and isinstance(seen, list):
        return len(expected) == len(seen) and all(map(is_expected, expected, seen))
    if isinstance(expected, dict) and isinstance(seen, dict):
        named = expected.keys() <= seen.keys() if isinstance(expected, Partial) else expected.keys() == seen.keys()
        return named and all(is_expected(value, seen[key]) for key, value in expected.items())
    return bool(expected == seen)


def asked(expected: Any, seen: Any) -> Any:
    """The part of what is seen that was expected in some way."""
    if isinstance(expected, Partial) and isinstance(seen, dict):
        return Partial({name: asked(value, seen[name]) for name, value in expected.items() if name in seen})
    if isinstance(expected, dict) and isinstance(seen, dict):
        return {name: asked(expected[name], value) if name in expected else value for name, value in seen.items()}
    if isinstance(expected, list) and isinstance(seen, list) and len(expected) == len(seen):
        return [asked(one, other) for one, other in zip(expected, seen, strict=True)]
    return seen


def _nested(
    document: Document, node: yaml.Node, type: ArrayType | MapType | StructType, what: str, manner: Manner
) -> Any:
    made = Partial if document.is_partial(node) else dict
    match type:
        case ArrayType(element):
            return [
                read_value(document, one, element, f"an element of {what}", manner)
                for one in document.sequence(node, f"{what}, {type},")
            ]
        case MapType(key_type, value_type):
            if not isinstance(node, yaml.MappingNode):
                raise document.error(node, f"{what} is {type}: a mapping, not {_shown(node)}")
            pairs: dict[Any, Any] = made()
            places: dict[Any, tuple[int, int]] = {}
            for key, value in document.entries(node, manner.partial):
                name = read_value(document, document.scalar(key, f"a key of {what} is {key_type}"), key_type, what, KEY)
                if name in places:
                    line, column = places[name]
                    raise document.error(key, f"{_shown(key)} is the key at {line}:{column} of {what} a second time")
                places[name] = document.place(key)
                pairs[name] = read_value(document, value, value_type, f"a value of {what}", manner)
            return pairs
        case StructType(fields):
            names = tuple(f.name for f in fields)
            entries = document.fields(node, what, names if manner.complete else (), names, manner.partial)
            left_out = () if document.is_partial(node) else names
            found = {
                f.name: read_value(document, entries[f.name], f.type, f"{what}.{f.name}", manner)
                for f in fields
                if f.name in entries
            }
            return made({**dict.fromkeys(left_out), **found})


def _plain(document: Document, node: yaml.Node, type: DataType, what: str) -> Any:
    scalar = document.scalar(node, f"{what} is {type}")
    name = "decimal" if isinstance(type, DecimalType) else str(type)
    if name == "timestamp":
        _refuse_finer(document, scalar, what, 6)
    try:
        return _READERS[name](scalar)
    except ValueError:
        help = "leave out the quotes" if scalar.style is not None and name not in _QUOTED else _HELP.get(name)
        raise document.error(node, f"{what} is {type}: {_shown(node)} is not a value of it", help) from None


def _refuse_finer(document: Document, scalar: yaml.ScalarNode, what: str, digits: int) -> None:
    """Refuses a time that has more than so many digits of a second."""
    fraction = _FRACTION.search(scalar.value)
    if fraction is not None and fraction[1][digits:].strip("0"):
        unit = {3: "milliseconds", 6: "microseconds"}[digits]
        raise document.error(
            scalar, f"{what} is a time in {unit}: {scalar.value!r} has digits beyond them", "leave them out"
        )


def _text(scalar: yaml.ScalarNode) -> str:
    return str(scalar.value)


def _unquoted(scalar: yaml.ScalarNode, pattern: re.Pattern[str]) -> str:
    if scalar.style is not None or not pattern.fullmatch(scalar.value):
        raise ValueError
    return str(scalar.value)


def _boolean(scalar: yaml.ScalarNode) -> bool:
    return _unquoted(scalar, re.compile("true|false|True|False|TRUE|FALSE")).lower() == "true"


def _integer(scalar: yaml.ScalarNode) -> int:
    return int(_unquoted(scalar, _INTEGER))


def _double(scalar: yaml.ScalarNode) -> float:
    special = None if scalar.style is not None else _NOT_FINITE.get(scalar.value.lower())
    found = float(special or _unquoted(scalar, _NUMBER))
    if math.isinf(found) and special is None:
        raise ValueError
    return found


def _decimal(scalar: yaml.ScalarNode) -> str:
    return _unquoted(scalar, _NUMBER)


def _timestamp(scalar: yaml.ScalarNode) -> int | str:
    """The value for `from_python` and `event_time`: a number, or ISO text. A number in quotes is ISO text."""
    return int(scalar.value) if scalar.style is None and _INTEGER.fullmatch(scalar.value) else _text(scalar)


def _binary(scalar: yaml.ScalarNode) -> bytes:
    if scalar.tag != _BINARY_TAG:
        raise ValueError
    try:
        return base64.b64decode("".join(scalar.value.split()), validate=True)
    except binascii.Error:
        raise ValueError from None


_READERS: dict[str, Callable[[yaml.ScalarNode], Any]] = {
    "boolean": _boolean,
    "tinyint": _integer,
    "smallint": _integer,
    "int": _integer,
    "bigint": _integer,
    "float": _double,
    "double": _double,
    "decimal": _decimal,
    "string": _text,
    "binary": _binary,
    "date": _text,
    "timestamp": _timestamp,
}
_QUOTED = frozenset({"string", "binary", "date", "timestamp"})
_HELP = {
    "boolean": "write true or false",
    "binary": "write !!binary and the bytes in base64",
    "date": "write it like 2026-03-02",
    "timestamp": "write milliseconds since 1970, or ISO text like 2026-03-02T10:00:00Z",
}


def _shown(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return repr(node.value)
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"
