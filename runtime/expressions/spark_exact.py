"""Whether Spark SQL, its optimizer included, evaluates an expression exactly as the plan means it.

The values agree wherever there are any (that is tested, expression by expression). What is left is failure: Spark may
leave out a part that fails where its value is not needed (``size(array(1 / n))``, ``1 / n > 0 or true``). So a part
that can fail may only stand where Spark cannot do without it.
"""

from __future__ import annotations

from collections.abc import Sequence

from vsc.plan.expressions import Call, Cast, Column, Expr, Literal
from vsc.plan.types import ArrayType, DataType, DecimalType, MapType, StructType
from vsc.runtime.expressions.columns import never_fails

__all__ = ["can_fail", "exact_in_spark", "has_map"]

_SURE = {
    "array", "day", "event_time", "md5", "month", "replace", "struct", "timestamp_micros", "try_add", "try_divide",
    "try_mod", "try_multiply", "try_subtract", "xxhash64", "year",
}  # fmt: skip
"""Functions that never fail, besides those that whole columns know of; some are only made, by `tried`."""

_STRICT = {
    "abs", "add", "ceil", "concat", "contains", "date_add", "date_trunc", "datediff", "divide", "ends_with", "floor",
    "hour", "length", "like", "lower", "md5", "minute", "modulo", "multiply", "negate", "replace", "round", "second",
    "sha2", "split", "starts_with", "substring", "subtract", "timestamp_millis", "to_date", "to_timestamp", "trim",
    "try_divide", "unix_millis", "upper", "xxhash64",
}  # fmt: skip
"""Functions that Spark cannot compute, and does not replace, without their arguments."""

_COMPARISONS = {"eq", "ge", "gt", "le", "lt", "ne"}
_FLOATING = {"float", "double"}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""How many decimal digits an integer type needs."""


def can_fail(expr: Expr) -> bool:
    """Whether there may be rows on which `expr` has no value."""
    return not never_fails(expr, _is_sure)


def _is_sure(expr: Call | Cast) -> bool:
    """Whether a call or a cast has a result for all arguments, by its types."""
    match expr:
        case Cast(arg, type):
            to_floating = isinstance(arg.type, DecimalType) and str(type) in _FLOATING
            return to_floating or _has_room("cast", type, [arg.type])
        case Call(("add" | "subtract" | "multiply" | "negate" | "abs") as function, args):
            types = [arg.type for arg in args]
            return {str(t) for t in (expr.type, *types)} <= _FLOATING or _has_room(function, expr.type, types)
        case Call(("divide" | "modulo") as function, (_, by)):
            fits = str(expr.type) in _FLOATING or (function == "modulo" and str(expr.type) in _DIGITS)
            return fits and _is_number_but_zero(by)
        case Call(function):
            return function in _SURE


def _is_number_but_zero(expr: Expr) -> bool:
    while isinstance(expr, Cast):
        expr = expr.arg
    return isinstance(expr, Literal) and expr.value is not None and float(expr.value) != 0


def _has_room(function: str, result: DataType, types: Sequence[DataType]) -> bool:
    """Whether a decimal type, which has 38 digits at most, has a place for each digit of the function's results."""
    given = [places for places in map(_places, types) if places is not None]
    if not isinstance(result, DecimalType) or len(given) < len(types):
        return False
    before, behind = [places[0] for places in given], [places[1] for places in given]
    room = result.precision - result.scale
    if function == "multiply":
        return room >= sum(before) and result.scale >= sum(behind)
    return room >= max(before) + (function in ("add", "subtract")) and result.scale >= max(behind)


def _places(type_: DataType) -> tuple[int, int] | None:
    """How many digits a whole or decimal number of the type has before its point, and behind it."""
    if isinstance(type_, DecimalType):
        return type_.precision - type_.scale, type_.scale
    digits = _DIGITS.get(str(type_))
    return None if digits is None else (digits, 0)


def exact_in_spark(expr: Expr) -> bool:
    """Whether Spark SQL gives `expr` its values, and fails on exactly the rows on which it has none.

    Provided that the value is looked at: a column that nobody reads is not computed at all.
    """
    if has_map(expr.type):
        return False  # a map cannot be hashed: nothing could look at its value
    if not can_fail(expr):
        return True
    match expr:
        case Literal() | Column():
            return True
        case Cast(arg):
            return exact_in_spark(arg)
        case Call(function, args) if function in _STRICT:
            return all(map(exact_in_spark, args))
        case Call(function, (left, right)) if function in _COMPARISONS:
            return left != right and exact_in_spark(left) and exact_in_spark(right)
        case Call(("and" | "or"), args):
            return not any(map(can_fail, args[:-1])) and exact_in_spark(args[-1])
        case Call(("case" | "if"), args):
            return not any(map(can_fail, args[:-1:2])) and all(map(exact_in_spark, (*args[1::2], args[-1])))
        case Call("coalesce", args):
            return all(map(exact_in_spark, args))
        case _:
            return False


def has_map(type_: DataType) -> bool:
    """Whether a type is a map, or has one inside."""
    match type_:
        case MapType():
            return True
        case ArrayType(element):
            return has_map(element)
        case StructType(fields):
            return any(has_map(field.type) for field in fields)
        case _:
            return False
