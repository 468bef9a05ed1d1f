"""Values in the order of the language: what `sorted` and `min` take as `key`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from vsc.plan.types import ArrayType, DataType, StructType

__all__ = ["in_order", "rows_in_order"]


def in_order(data_type: DataType) -> Callable[[Any], Any]:
    """What Python compares (and hashes) as the language does, of a value that is not null.

    Strings by their UTF-8 bytes, false before true, NaN as the greatest number, -0.0 as 0.0, structs field by field and
    arrays element by element with null first.
    """
    match data_type:
        case StructType(fields):
            orders = [in_order(field.type) for field in fields]
            return lambda value: tuple(_or_null(order, v) for order, v in zip(orders, value, strict=True))
        case ArrayType(element):
            order = in_order(element)
            return lambda value: tuple(_or_null(order, v) for v in value)
    return _scalar


def rows_in_order(types: Sequence[DataType]) -> Callable[[Sequence[Any]], Any]:
    """The same for a key: column by column."""
    orders = [in_order(t) for t in types]
    return lambda row: [order(value) for order, value in zip(orders, row, strict=True)]


def _or_null(order: Callable[[Any], Any], value: Any) -> tuple[Any, ...]:
    return () if value is None else (order(value),)


def _scalar(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value
