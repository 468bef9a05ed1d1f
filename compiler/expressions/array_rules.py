"""Types calls of functions over arrays and maps that are more than one element."""

from __future__ import annotations

from collections.abc import Mapping

from vsc.compiler.expressions.call_site import CallSite, Rule
from vsc.compiler.expressions.coercion import INTEGERS, convert, is_orderable
from vsc.compiler.expressions.operators import Operand, unify
from vsc.compiler.expressions.refusal import refuse
from vsc.plan.expressions import Call, Expr, Literal
from vsc.plan.types import (
    BOOLEAN,
    DATE,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    VOID,
    ArrayType,
    DataType,
    Field,
    MapType,
    StructType,
)

__all__ = ["ARRAY_RULES", "entries_of"]


def _array(call: CallSite) -> ArrayType:
    """The type of the first argument."""
    found = call.type(0)
    if not isinstance(found, ArrayType):
        raise call.wrong(0, "an array")
    return found


def _map(call: CallSite) -> MapType:
    """The type of the first argument."""
    found = call.type(0)
    if not isinstance(found, MapType):
        raise call.wrong(0, "a map")
    return found


def _sort_array(call: CallSite) -> Expr:
    array = _array(call)
    if not is_orderable(array.element):
        raise call.wrong(0, "an array of values that can be compared")
    ascending = Literal(True, BOOLEAN)
    if len(call) == 2:
        given = call.args[1].expr
        if not isinstance(given, Literal) or not isinstance(given.value, bool):
            help = "write `sort_array(x, false)` for the greatest first"
            raise refuse("VSC225", call.args[1].span, "the order of `sort_array` must be `true` or `false`", help)
        ascending = given
    return call.result((call.args[0].expr, ascending), array)


def _array_distinct(call: CallSite) -> Expr:
    array = _array(call)
    if not is_orderable(array.element) and array.element != VOID:
        raise call.wrong(0, "an array of values that can be compared")
    return call.result((call.args[0].expr,), array)


def _slice(call: CallSite) -> Expr:
    array = _array(call)
    for i in (1, 2):
        if call.type(i) not in (*INTEGERS[:3], VOID):
            raise call.wrong(i, "an int")
    numbers = tuple(convert(call.args[i].expr, INT) for i in (1, 2))
    return call.result((call.args[0].expr, *numbers), array)


def _array_contains(call: CallSite) -> Expr:
    array, value = _array(call), call.args[1]
    if value.type == VOID:
        raise call.wrong(1, "a value", "no array contains null: write `exists(x, e -> e is null)`")
    element = Operand(Literal(None, array.element), call.args[0].span)
    type = unify((element, value), f"`{call.name}`", call.span)[1].type
    if not is_orderable(type):
        raise call.wrong(1, "a value that can be compared")
    return call.result((convert(call.args[0].expr, ArrayType(type)), convert(value.expr, type)), BOOLEAN)


def _map_keys(call: CallSite) -> Expr:
    return call.result((call.args[0].expr,), ArrayType(_map(call).key))


def _map_values(call: CallSite) -> Expr:
    return call.result((call.args[0].expr,), ArrayType(_map(call).value))


def _map_entries(call: CallSite) -> Expr:
    _map(call)
    return entries_of(call.args[0].expr)


def entries_of(map: Expr) -> Expr:
    """The array of the entries of a map."""
    assert isinstance(map.type, MapType)
    entry = StructType((Field("key", map.type.key), Field("value", map.type.value)))
    return Call("map_entries", (map,), ArrayType(entry))


def _reverse(call: CallSite) -> Expr:
    if isinstance(call.type(0), ArrayType):
        return call.result((call.args[0].expr,), call.type(0))
    return call.result((call.implied(0, STRING),), STRING)


def _sequence(call: CallSite) -> Expr:
    start, stop = unify(call.args[:2], "`sequence`", call.span)
    element = start.type
    if element not in (*INTEGERS, DATE, TIMESTAMP):
        raise call.wrong(0, "whole numbers, dates or timestamps")
    if len(call) == 2:
        return call.result((start, stop), ArrayType(element))
    step = call.args[2]
    if element in (DATE, TIMESTAMP):
        if step.type != INTERVAL:
            raise call.wrong(2, "a duration", "write the step as a duration: `1 day`")
        return call.result((start, stop, step.expr), ArrayType(element))
    start, stop, by = unify(call.args, "`sequence`", call.span)
    if by.type not in INTEGERS:
        raise call.wrong(2, "a whole number")
    return call.result((start, stop, by), ArrayType(by.type))


def _map_of(call: CallSite) -> Expr:
    if len(call) % 2:
        message = f"`map` takes keys and values in turn, not {len(call)} arguments"
        raise refuse("VSC222", call.span, message, f"write `{call.form}`")
    keys, values = (unify(call.args[first::2], "`map`", call.span) for first in (0, 1))
    _check_key(call, keys[0].type)
    pairs = (part for pair in zip(keys, values, strict=True) for part in pair)
    return call.result(tuple(pairs), MapType(keys[0].type, values[0].type))


def _check_key(call: CallSite, key: DataType) -> None:
    if not is_orderable(key) or "array<" in str(key) or key == VOID:
        raise call.wrong(0, "keys without arrays and maps")


def _map_concat(call: CallSite) -> Expr:
    maps = unify(call.args, "`map_concat`", call.span)
    if not isinstance(maps[0].type, MapType):
        raise call.wrong(0, "maps")
    return call.result(tuple(maps), maps[0].type)


def _map_from_entries(call: CallSite) -> Expr:
    entry = _array(call).element
    if not isinstance(entry, StructType) or len(entry.fields) != 2:
        raise call.wrong(0, "an array of structs of a key and a value")
    key, value = (field.type for field in entry.fields)
    _check_key(call, key)
    return call.result((call.args[0].expr,), MapType(key, value))


ARRAY_RULES: Mapping[str, Rule] = {
    "array_contains": _array_contains,
    "array_distinct": _array_distinct,
    "map": _map_of,
    "map_concat": _map_concat,
    "map_entries": _map_entries,
    "map_from_entries": _map_from_entries,
    "map_keys": _map_keys,
    "map_values": _map_values,
    "reverse": _reverse,
    "sequence": _sequence,
    "slice": _slice,
    "sort_array": _sort_array,
}
