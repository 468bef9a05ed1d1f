"""Evaluates an expression on one record: the plan's expression becomes a tree of closures, built once.

Guarantees: Spark's results in ANSI mode, with three-valued logic, and laziness where Spark has it: ``case``, ``if``,
``coalesce``, ``and``, ``or`` and ``in`` do not look at what they do not need, so that nothing fails there. This is the
meaning of an expression; whole columns (`vsc.runtime.expressions.columns`) have to agree with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from vsc.plan.expressions import Call, Cast, Column, Expr, Literal
from vsc.plan.nodes import Schema
from vsc.plan.types import DecimalType
from vsc.runtime.expressions.casts import caster
from vsc.runtime.expressions.failure import ExpressionFailure
from vsc.runtime.expressions.functions import BUILDERS, instant
from vsc.runtime.expressions.hashing import SEED, hasher
from vsc.runtime.expressions.numbers import binary
from vsc.runtime.expressions.ordering import comparison, sort_key

__all__ = ["FUNCTIONS", "Row", "RowFunction", "compile_row", "literal_value"]

Row = tuple[Any, ...]
"""The internal values of a record's columns: the key's first, then the others, in the schema's order."""

RowFunction = Callable[[Row | None, Row | None, int | None, int | None], Any]
"""``f(row0, row1, time0, time1)``: the records of the two inputs and their event times in milliseconds, or None."""


def compile_row(expr: Expr, schemas: Sequence[Schema]) -> RowFunction:
    """The function that evaluates `expr` on the records of inputs with these schemas.

    A row that is None stands for a record that is absent: all its columns are null. The result is an internal value.
    The function raises ExpressionFailure where ANSI mode has an error; `compile_row` itself raises ValueError if the
    plan names a column that its schema does not have.
    """
    return _Compiler(schemas).compile(expr)


class _Compiler:
    def __init__(self, schemas: Sequence[Schema]) -> None:
        self.places = [{column.name: i for i, column in enumerate((*schema.key, *schema.value))} for schema in schemas]

    def compile(self, expr: Expr) -> RowFunction:
        match expr:
            case Literal():
                value = literal_value(expr)
                return lambda row0, row1, time0, time1: value
            case Column():
                return self._column(expr)
            case Cast():
                return self._cast(expr)
            case Call("event_time", args):
                return _event_time(args)
            case Call(function, args) if function in _LAZY:
                return _LAZY[function](expr, [self.compile(arg) for arg in args])
            case Call(function, args):
                compiled = [self.compile(arg) for arg in args]
                if function in _STEPWISE and len(args) > 2:
                    return _stepwise(BUILDERS[function](expr), compiled)
                return _strict(BUILDERS[function](expr), compiled, eager=function == "concat")

    def _column(self, expr: Column) -> RowFunction:
        if expr.input >= len(self.places) or expr.name not in self.places[expr.input]:
            raise ValueError(f"input {expr.input} has no column {expr.name!r}")
        place = self.places[expr.input][expr.name]
        if expr.input == 0:
            return lambda row0, row1, time0, time1: None if row0 is None else row0[place]
        return lambda row0, row1, time0, time1: None if row1 is None else row1[place]

    def _cast(self, expr: Cast) -> RowFunction:
        arg, cast = self.compile(expr.arg), caster(expr.arg.type, expr.type, safe=expr.safe)

        def evaluate(row0: Row | None, row1: Row | None, time0: int | None, time1: int | None) -> Any:
            value = arg(row0, row1, time0, time1)
            return None if value is None else cast(value)

        return evaluate


def literal_value(expr: Literal) -> Any:
    """The internal value of a constant."""
    return Decimal(expr.value) if isinstance(expr.type, DecimalType) and expr.value is not None else expr.value


def _event_time(args: tuple[Expr, ...]) -> RowFunction:
    if args and isinstance(args[0], Literal) and args[0].value == 1:
        return lambda row0, row1, time0, time1: None if time1 is None else instant(time1 * 1000)
    return lambda row0, row1, time0, time1: None if time0 is None else instant(time0 * 1000)


# ------------------------------------------------------------------------------------------------- strict functions


def _strict(function: Callable[..., Any], args: list[RowFunction], *, eager: bool) -> RowFunction:
    """Null as soon as an argument is null; those behind it are not looked at, unless `eager` or in calls of many."""
    if len(args) == 1:
        (only,) = args

        def unary(row0: Row | None, row1: Row | None, time0: int | None, time1: int | None) -> Any:
            a = only(row0, row1, time0, time1)
            return None if a is None else function(a)

        return unary
    if len(args) == 2 and not eager:
        left, right = args

        def two(row0: Row | None, row1: Row | None, time0: int | None, time1: int | None) -> Any:
            a = left(row0, row1, time0, time1)
            if a is None:
                return None
            b = right(row0, row1, time0, time1)
            return None if b is None else function(a, b)

        return two

    def many(row0: Row | None, row1: Row | None, time0: int | None, time1: int | None) -> Any:
        values = [arg(row0, row1, time0, time1) for arg in args]
        return None if None in values else function(*values)

    return many


def _stepwise(function: Callable[[Any, Any], Any], args: list[RowFunction]) -> RowFunction:
    """From left to right; null as soon as an argument is null, those behind it are not looked at."""
    first, *others = args

    def evaluate(row0: Row | None, row1: Row | None, time0: int | None, time1: int | None) -> Any:
        value = first(row0, row1, time0, time1)
        for arg in others:
            other = None if value is None else arg(row0, row1, time0, time1)
            if other is None:
                return None
            value = function(value, other)
        return value

    return evaluate


def _divisor_first(call: Call, args: list[RowFunction]) -> RowFunction:
    """``/`` and ``%``: Spark looks at the divisor first; ``try_divide`` is null where the division fails."""
    function = call.function.removeprefix("try_")
    operation, safe = binary(function, call.type), call.function != function
    dividend, divisor = args

    def evaluate(row0: Row | None, row1: Row | None, time0: int | None, time1: int | None) -> Any:
        b = divisor(row0, row1, time0, time1)
        a = None if b is None else dividend(row0, row1, time0, time1)
        if a is None:
            return None
        try:
            return operation(a, b)
        except ExpressionFailure:
            if safe:
                return None
            raise

    return evaluate


# ---------------------------------------------------------------------------------------- functions that see nulls


def _logic(call: Call, args: list[RowFunction]) -> RowFunction:
    """``and``, ``or`` of any number: decided by the first operand that decides, null if one of the others is null."""
    decisive = call.function == "or"

    def evaluate(row0: Row | None, row1: Row | None, time0: int | None, time1: int | None) -> Any:
        unknown = False
        for arg in args:
            value = arg(row0, row1, time0, time1)
            if value is decisive:
                return decisive
            unknown = unknown or value is None
        return None if unknown else not decisive

    return evaluate


def _is_null(call: Call, args: list[RowFunction]) -> RowFunction:
    wanted, (arg,) = call.function == "is_null", args
    return lambda row0, row1, time0, time1: (arg(row0, row1, time0, time1) is None) is wanted


def _in(call: Call, args: list[RowFunction]) -> RowFunction:
    arg, *options = args
    equal = comparison("eq", call.args[0].type)

    def evaluate(row0: Row | None, row1: Row | None, time0: int | None, time1: int | None) -> Any:
        value = arg(row0, row1, time0, time1)
        if value is None:
            return None
        unknown = False
        for option in options:
            other = option(row0, row1, time0, time1)
            if other is None:
                unknown = True
            elif equal(value, other):
                return True
        return None if unknown else False

    return evaluate


def _case(call: Call, args: list[RowFunction]) -> RowFunction:
    """``case`` and ``if``: condition, value, condition, value, ..., else."""
    branches, otherwise = list(zip(args[:-1:2], args[1::2], strict=True)), args[-1]

    def evaluate(row0: Row | None, row1: Row | None, time0: int | None, time1: int | None) -> Any:
        for when, then in branches:
            if when(row0, row1, time0, time1):
                return then(row0, row1, time0, time1)
        return otherwise(row0, row1, time0, time1)

    return evaluate


def _coalesce(call: Call, args: list[RowFunction]) -> RowFunction:
    def evaluate(row0: Row | None, row1: Row | None, time0: int | None, time1: int | None) -> Any:
        for arg in args:
            value = arg(row0, row1, time0, time1)
            if value is not None:
                return value
        return None

    return evaluate


def _extreme(call: Call, args: list[RowFunction]) -> RowFunction:
    key = sort_key(call.type)
    choose = max if call.function == "greatest" else min

    def evaluate(row0: Row | None, row1: Row | None, time0: int | None, time1: int | None) -> Any:
        values = [value for arg in args if (value := arg(row0, row1, time0, time1)) is not None]
        return choose(values, key=key) if values else None

    return evaluate


def _array(call: Call, args: list[RowFunction]) -> RowFunction:
    return lambda row0, row1, time0, time1: [arg(row0, row1, time0, time1) for arg in args]


def _struct(call: Call, args: list[RowFunction]) -> RowFunction:
    return lambda row0, row1, time0, time1: tuple([arg(row0, row1, time0, time1) for arg in args])


def _hash(call: Call, args: list[RowFunction]) -> RowFunction:
    parts = [(arg, hasher(expr.type)) for arg, expr in zip(args, call.args, strict=True)]

    def evaluate(row0: Row | None, row1: Row | None, time0: int | None, time1: int | None) -> Any:
        seed = SEED
        for arg, one in parts:
            seed = one(arg(row0, row1, time0, time1), seed)
        return seed

    return evaluate


_LAZY: dict[str, Callable[[Call, list[RowFunction]], RowFunction]] = {
    "and": _logic,
    "array": _array,
    "case": _case,
    "coalesce": _coalesce,
    "divide": _divisor_first,
    "greatest": _extreme,
    "if": _case,
    "in": _in,
    "is_not_null": _is_null,
    "is_null": _is_null,
    "least": _extreme,
    "modulo": _divisor_first,
    "or": _logic,
    "struct": _struct,
    "try_divide": _divisor_first,
    "xxhash64": _hash,
}

_STEPWISE = {"add", "multiply", "subtract"}

FUNCTIONS = frozenset({*BUILDERS, *_LAZY, "event_time"})
"""Every operator and function that can be evaluated."""
