"""Keys and times typed on a command line, read by the types of the store's columns, not by how they look."""

from __future__ import annotations

import base64
import binascii
import json
import re
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from vsc.cli.errors import UsageError
from vsc.plan.nodes import Column
from vsc.plan.types import DataType, DecimalType, StructType
from vsc.runtime.operators.views import StoreInfo
from vsc.runtime.times import event_time, from_iso

__all__ = ["read_key", "read_time"]

_MILLISECONDS = re.compile(r"[+-]?\d{1,18}")
_HELP = {
    "boolean": "write true or false",
    "binary": "write the bytes in base64",
    "date": "write it like 2026-03-02",
    "timestamp": "write milliseconds since 1970, or ISO text like 2026-03-02T10:00:00Z",
}


def read_key(store: StoreInfo, text: str) -> dict[str, Any]:
    """The key columns that `text` gives: a JSON object, or the plain value if the key has one column.

    Raises UsageError for text that is neither, or for a value that is not of its column's type.
    """
    columns = {c.name: c for c in store.key}
    members = _members(text)
    if len(columns) == 1 and (members is None or members.keys() != columns.keys()):
        [column] = store.key
        return {column.name: _typed(store, column, text)}
    if members is None:
        example = "{" + ", ".join(f'"{name}": ...' for name in columns) + "}"
        message = f"the key of '{store.name}' has {len(columns)} columns, and {text!r} is not a JSON object of them"
        raise UsageError(message, f"write {example}")
    return {n: _typed(store, columns[n], value) if n in columns else value for n, value in members.items()}


def read_time(text: str, option: str) -> int:
    """A time in milliseconds since the epoch. `text` is that number, or ISO text (UTC unless it says otherwise).

    Raises UsageError for text that is neither, or for milliseconds that do not fit into 64 bits.
    """
    try:
        return int(text) if _MILLISECONDS.fullmatch(text) else event_time(text)
    except ValueError:
        name = {"as_of": "--as-of", "start": "--from", "end": "--to"}[option]
        raise UsageError(f"{name} takes a time, not {text[:40]!r}", _HELP["timestamp"]) from None


def _members(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text, parse_float=Decimal)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _typed(store: StoreInfo, column: Column, value: Any) -> Any:
    try:
        return _value(value, column.type)
    except (ValueError, InvalidOperation, OverflowError):
        raise UsageError(
            f"key column '{column.name}' of '{store.name}' is {column.type}: {value!r} is not a value of it",
            _HELP.get(str(column.type)),
        ) from None


def _value(value: Any, type: DataType) -> Any:
    """The user's value that text, or a member of JSON, stands for."""
    if value is None:
        return None
    if isinstance(type, StructType):
        found = _members(value) if isinstance(value, str) else value
        if not isinstance(found, dict):
            raise ValueError
        types = {f.name: f.type for f in type.fields}
        return {name: _value(member, types[name]) if name in types else member for name, member in found.items()}
    if not isinstance(value, str):
        return Decimal(value) if isinstance(type, DecimalType) and not isinstance(value, bool) else value
    match str(type).partition("(")[0]:
        case "tinyint" | "smallint" | "int" | "bigint":
            return int(value)
        case "decimal":
            return Decimal(value)
        case "boolean":
            return {"true": True, "false": False}.get(value.lower(), value)
        case "date":
            return date.fromisoformat(value)
        case "timestamp":
            return int(value) if value.lstrip("-").isdigit() else from_iso(value)
        case "binary":
            try:
                return base64.b64decode(value, validate=True)
            except binascii.Error:
                raise ValueError from None
        case _:
            return value
