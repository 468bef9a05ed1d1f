"""Typed expressions, as the compiler hands them to the runtime.

Everything that Spark SQL would decide while it analyses a query has been decided here: every node carries its
type, implicit casts are `Cast` nodes, overloads are resolved. What is left to run time is values: ANSI overflow,
a failing cast, a division by zero.

An expression sees one or two *inputs*, numbered 0 (the only or the left one) and 1 (the right one of a join).
"""

from __future__ import annotations

from vsc.plan.record import record
from vsc.plan.types import DataType

__all__ = ["Call", "Cast", "Column", "Expr", "Literal"]

Value = None | bool | int | float | str


@record
class Literal:
    """A constant.

    `value` by type: ``void`` None; ``boolean`` bool; integers int; ``double`` float; ``string`` str; ``decimal``
    its digits as str (``"1.50"``); ``interval`` milliseconds as int. Other types have no literal: they are casts.
    """

    value: Value
    type: DataType


@record
class Column:
    """A column of an input, key or value, by its name in that input's schema (see `vsc.plan.nodes.Schema`)."""

    input: int
    name: str
    type: DataType


@record
class Cast:
    """``cast(arg as type)``, explicit or implied by ANSI coercion; `safe`: ``try_cast``, null instead of an error."""

    arg: Expr
    type: DataType
    safe: bool = False


@record
class Call:
    """An operator or a function of `vsc.plan.functions`, by its name, its arguments already of the right types.

    ``add``, ``subtract`` and ``multiply`` of more than two go from left to right, each step of the call's type;
    ``case`` has arguments condition, value, condition, value, ..., else (always given, a null literal if need be).
    ``between`` and the simple ``case x when`` are lowered to others, so is ``nullif``. ``event_time`` has no argument
    for the record itself, or one integer literal, the number of an input.
    """

    function: str
    args: tuple[Expr, ...]
    type: DataType


Expr = Literal | Column | Cast | Call
