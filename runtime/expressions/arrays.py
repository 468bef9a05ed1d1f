"""Functions over arrays and maps, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vsc.plan.expressions import Call, Literal
from vsc.plan.types import ArrayType, DataType, MapType, ScalarType, StructType
from vsc.runtime.expressions.calendar import DAY
from vsc.runtime.expressions.failure import fail, short
from vsc.runtime.expressions.ordering import sort_key

__all__ = ["contains", "distinct", "map_of", "maps_joined", "section", "sequence", "sorting"]

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


_MOST_ELEMENTS = 10_000_000


def sequence(call: Call) -> _Function:
    """``sequence``: from `start` by `step` up to `stop`, or down; a step in time is in milliseconds."""
    kind = str(_element_of(call.type))

    def numbers(start: int, stop: int, step: int | None = None) -> list[int]:
        by = _step(kind, start <= stop, step)
        if not (by > 0 and start <= stop) and not (by < 0 and start >= stop) and not (by == 0 and start == stop):
            fail("INVALID_SEQUENCE_BOUNDARIES", f"no sequence leads from {start} to {stop} by {by}")
        if by and (stop - start) // by >= _MOST_ELEMENTS:
            fail("VALUE_TOO_LONG", f"the sequence has more than {_MOST_ELEMENTS:,} elements")
        return list(range(start, stop + (1 if by > 0 else -1), by)) if by else [start]

    return numbers


def _step(kind: str, rising: bool, step: int | None) -> int:
    """The step in units of the elements: one, a day of times, or a duration in milliseconds."""
    if step is None:
        return (1 if rising else -1) * (DAY if kind == "timestamp" else 1)
    if kind == "timestamp":
        return step * 1000
    if kind != "date":
        return step
    days, rest = divmod(step * 1000, DAY)
    if rest:
        fail("INVALID_SEQUENCE_STEP", "the step of a sequence of dates is not a number of days")
    return days


def _element_of(type: DataType) -> DataType:
    assert isinstance(type, ArrayType)
    return type.element


def map_of(call: Call) -> _Function:
    """The map of keys and values in turn; fails on a key that is null or there twice."""
    entry = _entry_of(call.type)

    def of(pairs: Any) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        seen: set[Any] = set()
        for key, value in pairs:
            if key is None:
                fail("NULL_MAP_KEY", "a key of a map is null")
            known, kept = entry(key)
            if known in seen:
                fail("DUPLICATED_MAP_KEY", f"the key {short(key)} is in the map twice")
            seen.add(known)
            found[kept] = value
        return found

    return of


def _entry_of(type: DataType) -> _Function:
    """The function of a key that gives what it is equal by, and the key as it is kept."""
    assert isinstance(type, MapType)
    order, plain = sort_key(type.key) or _same, _without_negative_zero(type.key)
    return lambda key: (_hashable(order(key)), plain(key))


def maps_joined(call: Call) -> _Function:
    """``map_concat``."""
    of = map_of(call)
    return lambda *maps: of(entry for one in maps for entry in one.items())
