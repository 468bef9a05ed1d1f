"""Types calls of functions over arrays and maps that are more than one element."""

from __future__ import annotations

from collections.abc import Mapping

from vsc.compiler.expressions.call_site import CallSite, Rule
from vsc.compiler.expressions.coercion import INTEGERS, convert, is_orderable
from vsc.compiler.expressions.operators import Operand, unify
from vsc.compiler.expressions.refusal import refuse
from vsc.plan.expressions import Call, Expr, Literal
from vsc.plan.types import BOOLEAN, INT, VOID, ArrayType, Field, MapType, StructType

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


ARRAY_RULES: Mapping[str, Rule] = {
    "array_contains": _array_contains,
    "array_distinct": _array_distinct,
    "map_entries": _map_entries,
    "map_keys": _map_keys,
    "map_values": _map_values,
    "slice": _slice,
    "sort_array": _sort_array,
}
