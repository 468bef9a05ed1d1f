"""Why Spark cannot read a record of a JSON file: it marks the record, and does not say which column it was."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from vsc.plan.nodes import Column
from vsc.plan.types import ArrayType, DataType, DecimalType, MapType, StructType
from vsc.runtime.expressions.calendar import parse_date, parse_timestamp
from vsc.runtime.values import INTEGER_BITS

__all__ = ["json_problem", "shown"]

_SHOWN = 80


def json_problem(record: str, columns: Sequence[Column]) -> str:
    """What is wrong with a record that Spark could not read as `columns`."""
    try:
        found: Any = json.loads(record)
    except (ValueError, RecursionError):
        return f"{shown(record)} is not JSON"
    if not isinstance(found, dict):
        return f"{shown(record)} is not a JSON object"
    for column in columns:
        value = found.get(column.name)
        if not _fits(value, column.type):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            return f"column '{column.name}' ({column.type}) cannot hold {shown(text)}"
    return f"{shown(record)} does not fit the declared columns"


def shown(text: str) -> str:
    """A text of the data in a message: quoted, and cut where it is long."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def _fits(value: Any, type: DataType) -> bool:
    """Whether Spark can take `value` for one of `type`; in doubt it can."""
    if value is None:
        return True
    match type:
        case ArrayType(element):
            return isinstance(value, list) and all(_fits(one, element) for one in value)
        case MapType(_, of):
            return isinstance(value, dict) and all(_fits(one, of) for one in value.values())
        case StructType(fields):
            return isinstance(value, dict) and all(_fits(value.get(f.name), f.type) for f in fields)
        case DecimalType(precision, scale):
            return _is_number(value) and abs(value) < 10 ** (precision - scale)
    return _fits_scalar(value, str(type))


def _fits_scalar(value: Any, name: str) -> bool:
    if name in INTEGER_BITS:
        high = 1 << (INTEGER_BITS[name] - 1)
        return type(value) is int and -high <= value < high
    match name:
        case "boolean":
            return isinstance(value, bool)
        case "float" | "double":
            return _is_number(value) or value in ("NaN", "Infinity", "-Infinity", "+INF", "INF", "-INF")
        case "timestamp":
            return _is_number(value) or (isinstance(value, str) and parse_timestamp(value) is not None)
        case "date":
            return _is_number(value) or (isinstance(value, str) and parse_date(value) is not None)
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
