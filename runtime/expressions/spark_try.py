"""An expression that may fail, in a form that Spark SQL can compute on every row, and where that form is not enough.

Spark fails a whole query where an expression fails on a row. So each part that may fail gets a form that gives null
instead, and a condition which tells that it did so: the row is *in doubt*. On such a row the whole expression may still
have a value, if it does not need the part; who wants to know asks the runtime's own evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from vsc.plan.expressions import Call, Cast, Expr, Literal
from vsc.plan.types import BIGINT, BOOLEAN, DATE, INT, TIMESTAMP, DataType, DecimalType, ScalarType
from vsc.runtime.expressions.spark_exact import can_fail

__all__ = ["Tried", "tried"]

_FORMS = {
    "add": "try_add", "subtract": "try_subtract", "multiply": "try_multiply", "divide": "try_divide",
    "modulo": "try_mod",
}  # fmt: skip
_PARSED = {"to_timestamp": TIMESTAMP, "to_date": DATE}


@dataclass(frozen=True, slots=True)
class Tried:
    """`expr` has a value on every row; where none of the conditions `doubts` is true, it is that of the original."""

    expr: Expr
    doubts: tuple[Expr, ...]


def tried(expr: Expr) -> Tried | None:
    """The form of `expr` that cannot fail; None where there is none of some part of it."""
    doubts: list[Expr] = []
    found = _tried(expr, doubts)
    return None if found is None else Tried(found, tuple(dict.fromkeys(doubts)))


def _tried(expr: Expr, doubts: list[Expr]) -> Expr | None:
    """`expr` in its form; adds to `doubts`."""
    if not isinstance(expr, Cast | Call):
        return expr
    args: list[Expr] = []
    for part in (expr.arg,) if isinstance(expr, Cast) else expr.args:
        own: list[Expr] = []
        found = _tried(part, own)
        if found is None:
            return None
        doubts += [_all([*_asked(expr, args), doubt]) for doubt in own]
        args.append(found)
    whole = replace(expr, arg=args[0]) if isinstance(expr, Cast) else replace(expr, args=tuple(args))
    if not can_fail(whole):
        return whole
    form = _form(whole, tuple(args))
    if form is not None:
        doubts.append(
            _all([_is("is_null", form), *(_is("is_not_null", a) for a in args if not isinstance(a, Literal))])
        )
    return form


def _asked(expr: Call | Cast, before: list[Expr]) -> list[Expr]:
    """When the value of the argument behind those `before` is needed at all; what is guarded is not in doubt."""
    match expr:
        case Call("case" | "if"):
            passed = [_not(condition) for condition in before[: len(before) // 2 * 2 : 2]]
            return [*passed, before[-1]] if len(before) % 2 else passed
        case Call("and"):
            return [Call("coalesce", (b, Literal(True, BOOLEAN)), BOOLEAN) for b in before]
        case Call("or"):
            return [_not(b) for b in before]
        case Call("coalesce"):
            return [_is("is_null", b) for b in before]
    return []


def _form(expr: Cast | Call, args: tuple[Expr, ...]) -> Expr | None:
    """`expr`, of which only the outermost call can fail, in a form that gives null where it does."""
    match expr:
        case Cast(arg, (ScalarType() | DecimalType()) as type):
            return Cast(arg, type, safe=True)
        case Call(function, _, type) if function in _FORMS:
            return Call(_FORMS[function], args, type)
        case Call(function, (arg,)) if function in _PARSED:
            return Cast(arg, _PARSED[function], safe=True)
        case Call("negate", (arg,), type):
            return _negative(arg, type)
        case Call("abs", (arg,), type):
            return Call("case", (Call("lt", (arg, _number(0, type)), BOOLEAN), _negative(arg, type), arg), type)
        case Call("timestamp_millis", (arg,)) if arg.type == BIGINT:
            return Call("timestamp_micros", (Call("try_multiply", (arg, _number(1000, BIGINT)), BIGINT),), TIMESTAMP)
    return None


def _negative(arg: Expr, type: DataType) -> Expr:
    return Call("try_subtract", (_number(0, type), arg), type)


def _number(value: int, type: DataType) -> Expr:
    return Cast(Literal(value, INT), type)


def _is(function: str, arg: Expr) -> Expr:
    return Call(function, (arg,), BOOLEAN)


def _not(condition: Expr) -> Expr:
    """Where `condition` is false or null."""
    return _is("not", Call("coalesce", (condition, Literal(False, BOOLEAN)), BOOLEAN))


def _all(conditions: list[Expr]) -> Expr:
    return conditions[0] if len(conditions) == 1 else Call("and", tuple(conditions), BOOLEAN)
