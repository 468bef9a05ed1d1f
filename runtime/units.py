"""Guesses the unit of a column's times from the size of its numbers. Not for reading times."""

from __future__ import annotations

from vsc.plan import expressions
from vsc.plan.nodes import Item
from vsc.plan.types import BIGINT, INT, SMALLINT, TIMESTAMP, TINYINT, quoted_name

__all__ = ["PER_MILLISECOND", "YEAR_1990", "in_milliseconds", "likely_unit", "unit_help"]

YEAR_1990 = 631_152_000_000
PER_MILLISECOND = {
    "seconds": (1000, 1),
    "milliseconds": (1, 1),
    "microseconds": (1, 1000),
    "nanoseconds": (1, 1_000_000),
}
"""For each unit, the factors by which to multiply and to divide a number to get milliseconds."""


def likely_unit(lowest: int, highest: int, latest: int) -> str | None:
    """The unit in which all numbers from `lowest` to `highest` are times from 1990 to `latest` (ms); None if none is.

    No number is such a time in two units as long as `latest` is within the next thousand years.
    """
    for unit, (times, by) in PER_MILLISECOND.items():
        if lowest * times // by >= YEAR_1990 and highest * times // by <= latest:
            return unit
    return None


def unit_help(timestamp: Item, lowest: int, highest: int, latest: int) -> tuple[str, str] | None:
    """The unit that a timestamp clause has probably overlooked, and a clause that converts it.

    `lowest` and `highest` are the event times, in ms, that the clause gives. None if they are plausible, or plausible
    in no unit.
    """
    text, expr = timestamp.text, timestamp.expr
    if expr.type != TIMESTAMP:
        number = text if isinstance(expr, expressions.Column) else f"({text})"
        of_numbers, current = 1, "milliseconds"
    elif isinstance(expr, expressions.Cast) and _is_integer(expr.arg):
        number, of_numbers, current = _bigint(expr.arg), 1000, "seconds"  # Spark casts numbers as seconds
    else:
        number, of_numbers, current = f"unix_millis({text})", 1, "milliseconds"
    unit = likely_unit(lowest // of_numbers, highest // of_numbers, latest)
    if unit is None or unit == current:
        return None
    return unit, f"timestamp {in_milliseconds(number, unit)}"


def _is_integer(expr: expressions.Expr) -> bool:
    return isinstance(expr, expressions.Column) and expr.type in (TINYINT, SMALLINT, INT, BIGINT)


def _bigint(column: expressions.Expr) -> str:
    assert isinstance(column, expressions.Column)
    name = quoted_name(column.name)
    return name if column.type == BIGINT else f"cast({name} as bigint)"


def in_milliseconds(number: str, unit: str) -> str:
    """The expression that converts a number of this unit to milliseconds.

    It divides by decimals: that is exact, while the quotient of two bigints is a double.
    """
    written = {
        "seconds": f"{number} * 1000",
        "microseconds": f"cast({number} / 1000.0 as bigint)",
        "nanoseconds": f"cast({number} / 1000000.0 as bigint)",
    }
    return written.get(unit, number)
