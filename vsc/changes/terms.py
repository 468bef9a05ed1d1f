"""A normal form of expressions: two expressions have one *term*, a number, if they compute the same.

The order of what is compared, joined by `and` or `or`, added or multiplied makes no difference, nor do the names of the
columns on the way. A cast to a type that holds every value of the former one makes none either: types of columns are
compared where they are declared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from vsc.changes.values import holds
from vsc.plan import expressions as exprs
from vsc.plan.operations import AggregateCall
from vsc.plan.record import record
from vsc.plan.types import BOOLEAN

__all__ = ["Scope", "Terms"]

_TURNED = {"gt": "lt", "ge": "le"}
_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq", "is_null": "is_not_null",
            "is_not_null": "is_null"}  # fmt: skip
_BY_VALUE = {"and", "or", "not", "eq", "ne", "lt", "le", "in", "is_null", "is_not_null", "coalesce", "case", "greatest",
             "least", "nullif"}  # fmt: skip
"""Functions of their arguments' values, whatever type these have."""
_IN_ANY_ORDER = {"eq", "ne", "add", "multiply"}


@record
class Scope:
    """What an expression sees of an input: the term of each column, and that of its event time."""

    columns: Mapping[str, int]
    time: int


class Terms:
    """The terms of two plans: what has the same parts has the same number."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._parts: list[tuple[Any, ...]] = []

    def of(self, *parts: Any) -> int:
        """The term with these parts."""
        number = self._numbers.setdefault(parts, len(self._parts))
        if number == len(self._parts):
            self._parts.append(parts)
        return number

    def parts(self, term: int) -> tuple[Any, ...]:
        """The parts of a term."""
        return self._parts[term]

    def call(self, call: AggregateCall, scope: Scope) -> int:
        """The term of a call of an aggregate function."""
        arguments = tuple(self.expression(argument, (scope,)) for argument in call.args)
        types = tuple(map(str, call.kept_types))
        return self.of("aggregate call", call.function, call.distinct, str(call.type), types, arguments)

    def conditions(self, expr: exprs.Expr, scopes: Sequence[Scope]) -> frozenset[int]:
        """The terms that all have to be true for `expr` to be true."""
        term = self.expression(expr, scopes)
        parts = self.parts(term)
        return frozenset(parts[2]) if parts[:2] == ("call", "and") else frozenset((term,))

    def expression(self, expr: exprs.Expr, scopes: Sequence[Scope]) -> int:
        """The term of `expr`, which sees `scopes`, input by input."""
        if isinstance(expr, exprs.Column):
            return scopes[expr.input].columns[expr.name]
        if isinstance(expr, exprs.Literal):
            return self._literal(expr)
        if isinstance(expr, exprs.Parameter):
            return self.of("parameter", expr.place, expr.depth, str(expr.type))
        if isinstance(expr, exprs.Lambda):
            return self.of("lambda", expr.depth, self.expression(expr.body, scopes))
        if isinstance(expr, exprs.Cast):
            inner = self.expression(expr.arg, scopes)
            if holds(expr.type, expr.arg.type):
                return inner
            return self.of("cast", inner, str(expr.arg.type), str(expr.type), expr.safe)
        if expr.function == "event_time":
            number = expr.args[0].value if expr.args and isinstance(expr.args[0], exprs.Literal) else 0
            return scopes[int(number or 0)].time
        return self._call(expr, scopes)

    def _literal(self, literal: exprs.Literal) -> int:
        value = literal.value
        if value is None:
            return self.of("literal", str(literal.type), "null")
        if str(literal.type).startswith("decimal") or (isinstance(value, int) and not isinstance(value, bool)):
            kind = "interval" if str(literal.type) == "interval" else "number"
            return self.of("literal", kind, str(Decimal(str(value)).normalize()))
        if isinstance(value, float) and value.is_integer():
            return self.of("literal", "number", str(Decimal(value).normalize()))
        return self.of("literal", str(literal.type), repr(value))

    def _call(self, call: exprs.Call, scopes: Sequence[Scope]) -> int:
        arguments = [self.expression(argument, scopes) for argument in call.args]
        name = f"{call.function} vectorized" if call.vectorized else call.function
        if name == "not":
            return self._not(arguments[0])
        if name in _TURNED:
            name, arguments = _TURNED[name], arguments[::-1]
        name = "case" if name == "if" else name
        if name in ("and", "or"):
            inner = [self.parts(argument) for argument in arguments]
            flat = (p[2] if p[:2] == ("call", name) else (a,) for a, p in zip(arguments, inner, strict=True))
            terms = {term for terms in flat for term in terms} - {self._literal(exprs.Literal(name == "and", BOOLEAN))}
            return next(iter(terms)) if len(terms) == 1 else self.of("call", name, tuple(sorted(terms)))
        if name in _BY_VALUE:
            if name in _IN_ANY_ORDER:
                arguments.sort()
            if name == "in":
                arguments[1:] = sorted(set(arguments[1:]))
            return self.of("call", name, tuple(arguments))
        typed = [(term, str(argument.type)) for term, argument in zip(arguments, call.args, strict=True)]
        if name in _IN_ANY_ORDER and len(typed) == 2:
            typed.sort()
        return self.of("call", name, str(call.type), tuple(typed))

    def _not(self, term: int) -> int:
        parts = self.parts(term)
        if parts[:2] == ("call", "not"):
            return int(parts[2][0])
        if parts[0] != "call" or parts[1] not in _NEGATED:
            return self.of("call", "not", (term,))
        negated, arguments = _NEGATED[parts[1]], parts[2]
        if negated in _TURNED:
            negated, arguments = _TURNED[negated], arguments[::-1]
        return self.of("call", negated, arguments)
