"""Whether Spark SQL, its optimizer included, evaluates an expression exactly as the plan means it.

The values agree wherever there are any (that is tested, expression by expression). What is left is failure: Spark may
leave out a part that fails where its value is not needed (``size(array(1 / n))``, ``1 / n > 0 or true``). So a part
that can fail may only stand where Spark cannot do without it.
"""

from __future__ import annotations

from vsc.plan.expressions import Call, Cast, Column, Expr, Literal
from vsc.plan.types import ArrayType, DataType, MapType, StructType
from vsc.runtime.expressions.columns import never_fails

__all__ = ["can_fail", "exact_in_spark", "has_map"]

_SURE = frozenset({"array", "day", "event_time", "md5", "month", "replace", "struct", "try_divide", "xxhash64", "year"})
"""Functions that never fail, besides those that whole columns know of."""

_STRICT = {
    "abs", "add", "ceil", "concat", "contains", "date_add", "date_trunc", "datediff", "divide", "ends_with", "floor",
    "hour", "length", "like", "lower", "md5", "minute", "modulo", "multiply", "negate", "replace", "round", "second",
    "sha2", "split", "starts_with", "substring", "subtract", "timestamp_millis", "to_date", "to_timestamp", "trim",
    "try_divide", "unix_millis", "upper", "xxhash64",
}  # fmt: skip
"""Functions that Spark cannot compute, and does not replace, without their arguments."""

_COMPARISONS = {"eq", "ge", "gt", "le", "lt", "ne"}


def can_fail(expr: Expr) -> bool:
    """Whether there may be rows on which `expr` has no value."""
    return not never_fails(expr, _SURE)


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
