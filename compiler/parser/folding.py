"""Computes constants where the language takes a literal: durations, sizes, options of connectors.

Whole numbers, decimals, durations and texts, with ``+ - * ||``, and whole multiples of lengths by the calendar.
Everything else has its value in expressions only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from vsc.compiler import syntax

__all__ = ["folded"]

Folded = syntax.Literal | syntax.Duration | syntax.CalendarLength
_NUMBERS: dict[str, Callable[[int | Decimal, int | Decimal], int | Decimal]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b
}  # fmt: skip
_GREATEST = 10**38
_LONGEST = 100_000


def folded(expr: syntax.Expression) -> Folded | None:
    """The literal that `expr` amounts to, at the place of `expr`; None if it does not amount to one here."""
    match expr:
        case syntax.Literal() | syntax.Duration() | syntax.CalendarLength():
            return expr
        case syntax.Constant(literal=found):
            pass
        case syntax.Unary("-", arg):
            found = _negated(folded(arg))
        case syntax.Chain(first, rest):
            found = folded(first)
            for link in rest:
                found = _bounded(_linked(found, link.op, folded(link.operand)))
        case _:
            return None
    return None if found is None else replace(found, span=expr.span)


def _bounded(value: Folded | None) -> Folded | None:
    """The value, unless nothing takes one of that size: constants made of each other grow without end."""
    match value:
        case syntax.Literal(str() as text) if len(text) > _LONGEST:
            return None
        case syntax.Literal(value=int() | Decimal() as number) if not -_GREATEST <= number <= _GREATEST:
            return None
        case syntax.Duration(milliseconds, span):
            return syntax.Duration(_clamped(milliseconds), span)
        case syntax.CalendarLength(weeks, months, span):
            return syntax.CalendarLength(_clamped(weeks), _clamped(months), span)
        case _:
            return value


def _clamped(length: int) -> int:
    """A length of time, or one that is too long as well."""
    return max(-_GREATEST, min(length, _GREATEST))


def _negated(value: Folded | None) -> Folded | None:
    match value:
        case syntax.Duration(milliseconds, span):
            return syntax.Duration(-milliseconds, span)
        case syntax.Literal(number, span) if _is_number(number):
            return syntax.Literal(-number, span)  # type: ignore[operator]
        case _:
            return None


def _linked(left: Folded | None, op: str, right: Folded | None) -> Folded | None:
    match left, right:
        case syntax.Duration(one, span), syntax.Duration(other) if op in ("+", "-"):
            return syntax.Duration(one + other if op == "+" else one - other, span)
        case (syntax.Duration(one, span), syntax.Literal(int() as times)) | (
            syntax.Literal(int() as times),
            syntax.Duration(one, span),
        ) if op == "*" and _is_number(times):
            return syntax.Duration(one * times, span)
        case (syntax.CalendarLength(weeks, months, span), syntax.Literal(int() as times)) | (
            syntax.Literal(int() as times),
            syntax.CalendarLength(weeks, months, span),
        ) if op == "*" and _is_number(times):
            return syntax.CalendarLength(weeks * times, months * times, span)
        case syntax.Literal(str() as text, span), syntax.Literal(str() as more) if op == "||":
            return syntax.Literal(text + more, span)
        case syntax.Literal(one, span), syntax.Literal(other) if _is_number(one) and _is_number(other):
            return syntax.Literal(_NUMBERS[op](one, other), span) if op in _NUMBERS else None  # type: ignore[arg-type]
        case _:
            return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)
