"""Types literals: the narrowest type that holds a number as it is written."""

from __future__ import annotations

from decimal import Decimal
from math import isinf

from vsc.compiler.expressions.refusal import refuse
from vsc.compiler.source import Span
from vsc.plan.expressions import Expr, Literal
from vsc.plan.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, VOID, DecimalType

__all__ = ["literal"]


def literal(value: bool | int | Decimal | float | str | None, span: Span) -> Expr:
    """The plan of a literal. Raises Refused for a number that no type holds."""
    match value:
        case None:
            return Literal(None, VOID)
        case bool():
            return Literal(value, BOOLEAN)
        case str():
            return Literal(value, STRING)
        case float():
            if isinf(value):
                raise refuse("VSC020", span, "the number is too large for a double", "the largest is about 1.8e308")
            return Literal(value, DOUBLE)
        case Decimal():
            return _decimal(value, span)
        case _:
            if -(2**31) <= value < 2**31:
                return Literal(value, INT)
            if -(2**63) <= value < 2**63:
                return Literal(value, BIGINT)
            return _decimal(Decimal(value), span)


def _decimal(value: Decimal, span: Span) -> Expr:
    value = abs(value) if value == 0 else value  # decimals have no negative zero
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale)
    if precision > 38:
        message = f"the number has {precision} digits; a decimal holds at most 38"
        raise refuse("VSC020", span, message, "write it with an exponent")
    return Literal(format(value, "f"), DecimalType(precision, scale))
