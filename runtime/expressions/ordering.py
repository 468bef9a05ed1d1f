"""How values of a type compare: Spark's order, in which NaN is equal to itself and above all, and -0.0 is 0.0.

Inside arrays and structs null comes first and is equal to itself. Text goes by code points, binary by unsigned bytes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from vsc.plan.types import ArrayType, DataType, ScalarType, StructType

__all__ = ["comparison", "sort_key"]


def sort_key(type: DataType) -> Callable[[Any], Any] | None:
    """The function whose results Python compares as Spark compares values of `type`; None: the values themselves."""
    match type:
        case ScalarType("float" | "double"):
            return lambda value: (True, 0.0) if value != value else (False, value)
        case ArrayType(element):
            item = _nulls_first(sort_key(element))
            return lambda value: [item(x) for x in value]
        case StructType(fields):
            members = [_nulls_first(sort_key(f.type)) for f in fields]
            return lambda value: [member(x) for member, x in zip(members, value, strict=True)]
        case _:
            return None


def _nulls_first(key: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    return lambda value: (False, 0) if value is None else (True, value if key is None else key(value))


def comparison(function: str, type: DataType) -> Callable[[Any, Any], bool]:
    """The function for ``eq ne lt le gt ge`` on two values of `type`, neither null."""
    compare: Callable[[Any, Any], bool] = getattr(operator, function)  # Python calls them the same
    key = sort_key(type)
    return compare if key is None else lambda a, b: compare(key(a), key(b))
