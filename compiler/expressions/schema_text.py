"""Reads the schema text of ``from_json``: one type, or columns as in a table (``id bigint, name string``)."""

from __future__ import annotations

import re

from vsc.plan.types import INTERVAL, VOID, ArrayType, DataType, MapType, StructType, parse_type

__all__ = ["parse_schema"]

_COLUMN = re.compile(r"\s*(`(?:[^`]|``)+`|[A-Za-z_][A-Za-z0-9_]*)\s*(?::|\s)\s*(.+)\Z", re.DOTALL)


def parse_schema(text: str) -> DataType:
    """The type that `text` describes. Raises ValueError if it describes no type, or one that a column cannot have."""
    try:
        found = parse_type(text)
    except ValueError:
        found = parse_type("struct<" + ",".join(_member(part) for part in _split(text)) + ">")
    if not _is_storable(found):
        raise ValueError(f"not a type of a column: {found}")
    return found


def _member(text: str) -> str:
    match = _COLUMN.match(text)
    if match is None:
        raise ValueError(f"not a column: {text!r}")
    return f"{match.group(1)}:{match.group(2)}"


def _split(text: str) -> list[str]:
    """`text`, split at the commas outside brackets and backticks."""
    parts, depth, start, quoted = [], 0, 0, False
    for i, letter in enumerate(text):
        if letter == "`":
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "<(":
            depth += 1
        elif letter in ">)":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def _is_storable(type: DataType) -> bool:
    match type:
        case ArrayType(element):
            return _is_storable(element)
        case MapType(key, value):
            return _is_storable(key) and _is_storable(value)
        case StructType(fields):
            names = [f.name.lower() for f in fields]
            return len(set(names)) == len(names) and all(_is_storable(f.type) for f in fields)
        case _:
            return type not in (VOID, INTERVAL)
