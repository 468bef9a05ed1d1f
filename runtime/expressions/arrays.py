"""Functions over arrays and maps, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vsc.plan.expressions import Call, Literal
from vsc.plan.types import ArrayType, DataType, ScalarType, StructType
from vsc.runtime.expressions.failure import fail
from vsc.runtime.expressions.ordering import sort_key

__all__ = ["contains", "distinct", "section", "sorting"]

_Function = Callable[..., Any]


def _element(call: Call) -> DataType:
    """The type of the elements of the first argument."""
    array = call.args[0].type
    assert isinstance(array, ArrayType)
    return array.element


def _same(value: Any) -> Any:
    return value


def sorting(call: Call) -> _Function:
    """``sort_array``: equal elements keep their order; null is the least."""
    key, order = sort_key(_element(call)), call.args[1]
    falling = isinstance(order, Literal) and order.value is False

    def sort(items: list[Any], ascending: bool) -> list[Any]:
        nulls = [None] * items.count(None)
        values = sorted([item for item in items if item is not None], key=key, reverse=falling)
        return values + nulls if falling else nulls + values

    return sort


def distinct(call: Call) -> _Function:
    """``array_distinct``: the first of equal elements stays, with 0.0 for each -0.0."""
    element = _element(call)
    key, plain = sort_key(element) or _same, _without_negative_zero(element)

    def of(items: list[Any]) -> list[Any]:
        found: dict[Any, Any] = {}
        for item in items:
            found.setdefault(None if item is None else _hashable(key(item)), item)
        return [None if item is None else plain(item) for item in found.values()]

    return of


def _without_negative_zero(type: DataType) -> _Function:
    """The function that makes 0.0 of -0.0 in values of `type`."""
    match type:
        case ScalarType("float" | "double"):
            return lambda value: value + 0.0
        case ArrayType(element):
            item = _without_negative_zero(element)
            return lambda value: [None if x is None else item(x) for x in value]
        case StructType(fields):
            members = [_without_negative_zero(f.type) for f in fields]
            return lambda value: tuple(
                None if x is None else member(x) for member, x in zip(members, value, strict=True)
            )
        case _:
            return _same


def _hashable(key: Any) -> Any:
    """A sort key as a key of a dict."""
    return tuple(map(_hashable, key)) if isinstance(key, list | tuple) else key


def contains(call: Call) -> _Function:
    """``array_contains``: null if no element is equal, but one is null."""
    key = sort_key(_element(call)) or _same

    def found(items: list[Any], value: Any) -> bool | None:
        wanted = key(value)
        if any(item is not None and key(item) == wanted for item in items):
            return True
        return None if None in items else False

    return found


def section(items: list[Any], start: int, length: int) -> list[Any]:
    """``slice``: from `start`, counted from 1 or, negative, from the end; fewer elements where there are no more."""
    if start == 0:
        fail("INVALID_PARAMETER_VALUE.START", "the start 0 is invalid: slice counts from 1")
    if length < 0:
        fail("INVALID_PARAMETER_VALUE.LENGTH", f"the length {length} of a slice is negative")
    first = start - 1 if start > 0 else len(items) + start
    return items[first : first + length] if first >= 0 else []
