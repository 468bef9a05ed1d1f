"""Evaluates an expression on one record: the plan's expression becomes a tree of closures, built once.

Guarantees: Spark's results in ANSI mode, with three-valued logic, and laziness where Spark has it: ``case``, ``if``,
``coalesce``, ``and``, ``or`` and ``in`` do not look at what they do not need, so that nothing fails there. This is the
meaning of an expression; whole columns (`vsc.runtime.expressions.columns`) have to agree with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any

from vsc.plan.expressions import Call, Cast, Column, Expr, Lambda, Literal, Parameter
from vsc.plan.nodes import Schema
from vsc.plan.types import DecimalType
from vsc.runtime.expressions.casts import caster
from vsc.runtime.expressions.failure import as_failure
from vsc.runtime.expressions.forms import Argument, Lazy, in_turn
from vsc.runtime.expressions.functions import form_of
from vsc.runtime.expressions.numbers import instant

__all__ = ["Row", "RowFunction", "compile_row", "timed_input"]

Row = tuple[Any, ...]
"""The internal values of a record's columns: the key's first, then the others, in the schema's order."""

RowFunction = Callable[[Row | None, Row | None, int | None, int | None], Any]
"""``f(row0, row1, time0, time1)``: the records of the two inputs and their event times in milliseconds, or None."""


def compile_row(expr: Expr, schemas: Sequence[Schema]) -> RowFunction:
    """The function that evaluates `expr` on the records of inputs with these schemas.

    A row that is None stands for a record that is absent: all its columns are null. The result is an internal value.
    The function raises ExpressionFailure, and nothing else, where the expression has no value; `compile_row` itself
    raises ValueError if the plan names a column that its schema does not have.
    """
    found = _compiled(expr, [[column.name for column in (*s.key, *s.value)] for s in schemas])

    def evaluated(row0: Row | None, row1: Row | None, time0: int | None, time1: int | None) -> Any:
        try:
            return found((row0, row1, time0, time1))
        except Exception as error:
            raise as_failure(error) from error

    return evaluated


def _compiled(expr: Expr, names: Sequence[Sequence[str]]) -> Argument:
    """The function of a tuple of the arguments of a `RowFunction`, and of an element and its number for each lambda."""
    match expr:
        case Literal(value, type):
            constant = Decimal(value) if isinstance(type, DecimalType) and isinstance(value, str) else value
            return lambda record: constant
        case Column(number, name):
            if number >= len(names) or name not in names[number]:
                raise ValueError(f"input {number} has no column {name!r}")
            place = names[number].index(name)
            return lambda record: None if (row := record[number]) is None else row[place]
        case Parameter(place, depth):
            return itemgetter(4 + 2 * depth + place)
        case Lambda(body):
            return _compiled(body, names)
        case Cast(arg, type, safe):
            return in_turn(caster(arg.type, type, safe=safe), [_compiled(arg, names)])
        case Call("event_time"):
            return in_turn(lambda millis: instant(millis * 1000), [itemgetter(2 + timed_input(expr))])
        case Call(args=args):
            form, compiled = form_of(expr), [_compiled(arg, names) for arg in args]
            return form.row(expr, compiled) if isinstance(form, Lazy) else form.looks(form.build(expr), compiled)


def timed_input(event_time: Call) -> int:
    """The number of the input whose event time a call reads."""
    first = event_time.args[0] if event_time.args else None
    return 1 if isinstance(first, Literal) and first.value == 1 else 0
