"""Whether two members of operations mean the same, and whether a type can hold all values of another."""

from __future__ import annotations

from typing import Any

from vsc.plan import Item, Window
from vsc.plan import expressions as exprs
from vsc.plan.operations import AggregateCall
from vsc.plan.types import ArrayType, DataType, DecimalType, ScalarType
from vsc.plan.words import window

__all__ = ["alike", "are_items", "holds", "shown", "wider"]

_WIDER = {
    "tinyint": {"smallint", "int", "bigint", "double"},
    "smallint": {"int", "bigint", "double"},
    "int": {"bigint", "double"},
    "float": {"double"},
}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


def alike(was: Any, now: Any) -> bool:
    """Whether two values of a member mean the same. Expressions are compared by what they compute, not by their text.

    A column's type counts only where the column is declared.
    """
    match was, now:
        case Item(), Item():
            return alike(was.expr, now.expr)
        case exprs.Column(), exprs.Column():
            return (was.input, was.name) == (now.input, now.name)
        case exprs.Call(), exprs.Call():
            same = (was.function, str(was.type), was.vectorized) == (now.function, str(now.type), now.vectorized)
            return same and _all_alike(was.args, now.args)
        case exprs.Lambda(), exprs.Lambda():
            return was.depth == now.depth and alike(was.body, now.body)
        case exprs.Cast(), exprs.Cast():
            return (was.type, was.safe) == (now.type, now.safe) and alike(was.arg, now.arg)
        case exprs.Cast(), exprs.Column() if wider(was.arg.type, was.type):
            return was.type == now.type and alike(was.arg, now)  # the column now has the type that it was cast to
        case AggregateCall(), AggregateCall():
            same = (was.function, was.distinct, was.type) == (now.function, now.distinct, now.type)
            return same and was.kept_types == now.kept_types and _all_alike(was.args, now.args)
        case Window(), Window():
            return was.shape == now.shape
        case tuple(), tuple():
            return _all_alike(was, now)
    return bool(was == now)


def are_items(was: Any, now: Any) -> bool:
    """Whether both are tuples of items."""
    return isinstance(was, tuple) and isinstance(now, tuple) and all(isinstance(one, Item) for one in (*was, *now))


def _all_alike(was: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
    return len(was) == len(now) and all(map(alike, was, now))


def shown(value: Any) -> str:
    """A member as the user wrote it."""
    match value:
        case None:
            return "not given"
        case Item() | AggregateCall():
            return f"`{' '.join(value.text.split())}`"
        case Window():
            return window(value)
        case tuple():
            return ", ".join(map(shown, value)) or "nothing"
        case bool():
            return "true" if value else "false"
    return str(value)


def holds(now: DataType, was: DataType) -> bool:
    """Whether each value of type `was` is also one of type `now`, which may be the same."""
    return was == now or wider(was, now)


def wider(was: DataType, now: DataType) -> bool:
    """Whether each value of type `was` is also a value of type `now`."""
    match was, now:
        case ScalarType(), ScalarType():
            return now.name in _WIDER.get(was.name, ())
        case ScalarType(), DecimalType():
            return was.name in _DIGITS and now.precision - now.scale >= _DIGITS[was.name]
        case DecimalType(), DecimalType():
            return now.scale >= was.scale and now.precision - now.scale >= was.precision - was.scale
        case ArrayType(), ArrayType():
            return wider(was.element, now.element)
    return False
