"""What some functions give at all: numbers in a range, texts in one case; and what a comparison with others comes to.

Not for what columns hold: nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

from vsc.compiler.expressions.constants import Constant
from vsc.plan.expressions import Call, Cast, Expr

__all__ = ["comparison", "given"]

_RANGES: Mapping[str, tuple[int, int | None]] = {
    "month": (1, 12), "quarter": (1, 4), "day": (1, 31), "dayofweek": (1, 7), "hour": (0, 23), "minute": (0, 59),
    "second": (0, 59), "length": (0, None), "size": (0, None), "abs": (0, None),
}  # fmt: skip
"""The least number that a function gives, and the greatest."""
_CASES: Mapping[str, Callable[[str], str]] = {"upper": str.upper, "lower": str.lower}


def given(expr: Expr) -> str | None:
    """What a call gives, in words; None if that is not known."""
    function = _function(expr)
    if function in _CASES:
        return f"`{function}` gives no {'lower' if function == 'upper' else 'upper'}-case letters"
    if function not in _RANGES:
        return None
    low, high = _RANGES[function]
    return f"`{function}` gives " + (f"no number below {low}" if high is None else f"{low} to {high}")


def comparison(expr: Expr, op: str, value: Constant) -> bool | None:
    """What comparing a call with a constant by `op` (``lt``, ``eq``) comes to on every row; None if it depends."""
    function = _function(expr)
    if function in _CASES and isinstance(value, str):
        other = value.isascii() and _CASES[function](value) != value
        return op == "ne" if other and op in ("eq", "ne") else None
    if function not in _RANGES or isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    low, high = _RANGES[function]
    below, above = value < low, high is not None and value > high
    match op:
        case "eq" | "ne":
            return op == "ne" if below or above else None
        case "lt" | "ge":
            return op == "ge" if value <= low else op == "lt" if above else None
        case _:
            at_end = high is not None and value >= high
            return op == "gt" if below else op == "le" if at_end else None


def _function(expr: Expr) -> str:
    inner = expr.arg if isinstance(expr, Cast) else expr
    return inner.function if isinstance(inner, Call) and not inner.is_own else ""
