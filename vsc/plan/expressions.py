"""Typed expressions, as the compiler hands them to the runtime.

Everything that Spark SQL decides while it analyses a query is already decided: every node carries its type, implicit
casts are `Cast` nodes, overloads are resolved. Only errors that depend on values are left to run time: ANSI overflow,
a failing cast, a division by zero.

An expression sees one or two *inputs*, numbered 0 (the only or the left one) and 1 (the right one of a join); in a
lambda, its parameters as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from vsc.plan.record import record
from vsc.plan.types import INT, ArrayType, DataType, MapType

__all__ = [
    "LAMBDAS",
    "Call",
    "Cast",
    "Column",
    "Expr",
    "Lambda",
    "Literal",
    "Parameter",
    "inside",
    "parameters_of",
    "parts",
    "with_columns",
]

Value = None | bool | int | float | str


@record
class Literal:
    """A constant.

    The Python type of `value`: None for ``void``, bool for ``boolean``, int for integers, float for ``double``, str for
    ``string``, str with the digits for ``decimal`` (``"1.50"``), int in milliseconds for ``interval``. Other types have
    no literals: their constants are casts.
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
    """``cast(arg as type)``, explicit or implied by ANSI coercion. `safe`: ``try_cast``, null instead of an error."""

    arg: Expr
    type: DataType
    safe: bool = False


@record
class Call:
    """A call, by name, of an operator or function of `vsc.plan.functions`. Its arguments already have the right types.

    ``add``, ``subtract`` and ``multiply`` with more than two arguments go from left to right; each step has the call's
    type. ``case`` has the arguments condition, value, condition, value, ..., else; the else is always there, as a null
    literal if the user wrote none. ``between``, the simple ``case x when`` and ``nullif`` are lowered to other calls.
    ``event_time`` has no argument for the record itself, or one integer literal, the number of an input.

    A function of the user's is called by its reference, ``module:name``; `vectorized` as it is declared.
    """

    function: str
    args: tuple[Expr, ...]
    type: DataType
    vectorized: bool = False

    @property
    def is_own(self) -> bool:
        """Whether it calls a function of the user's."""
        return ":" in self.function


@record
class Parameter:
    """A parameter of a lambda, at `place` 0 or 1: `parameters_of` says what it is.

    `depth` is how many lambdas are around that lambda.
    """

    place: int
    depth: int
    type: DataType


@record
class Lambda:
    """What a call does with each element of its first argument: no expression of its own.

    `body` may refer to its parameters, and to those of lambdas around it; its own `depth` is how many.
    """

    body: Expr
    depth: int

    @property
    def type(self) -> DataType:
        """The type of its results."""
        return self.body.type


Expr = Literal | Column | Cast | Call | Parameter | Lambda

LAMBDAS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("exists", "filter", "forall", "transform", "transform_values"), (1,)),
    **dict.fromkeys(("aggregate", "reduce"), (2, 3)),
}
"""The calls that take lambdas, and which of their arguments these are."""


def parameters_of(function: str, argument: int, types: Sequence[DataType]) -> tuple[DataType, ...] | None:
    """What the lambda of a call is given, by the types of the arguments before it; None if they are wrong.

    An element of an array and its number from 0; of ``transform_values`` a key and its value; of ``reduce`` what there
    is so far and an element, or what there is in the end.
    """
    match function, types[0]:
        case "transform_values", MapType(key, value):
            return key, value
        case "aggregate" | "reduce", ArrayType(element):
            return (types[1], element)[: 4 - argument]
        case "exists" | "filter" | "forall" | "transform", ArrayType(element):
            return element, INT
    return None


def inside(expr: Expr) -> tuple[Expr, ...]:
    """The expressions that an expression is made of."""
    match expr:
        case Cast(arg):
            return (arg,)
        case Call(args=args):
            return args
        case Lambda(body):
            return (body,)
        case _:
            return ()


def parts(expr: Expr) -> Iterator[Expr]:
    """The expression and all expressions in it, in no particular order. Not recursive: it may be nested deeply."""
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(inside(part))


def with_columns(expr: Expr, changed: Callable[[Column], Column]) -> Expr:
    """`expr` with each column as `changed` gives it."""
    match expr:
        case Column():
            return changed(expr)
        case Cast(arg):
            return replace(expr, arg=with_columns(arg, changed))
        case Call(args=args):
            return replace(expr, args=tuple(with_columns(arg, changed) for arg in args))
        case Lambda(body):
            return replace(expr, body=with_columns(body, changed))
        case _:
            return expr
