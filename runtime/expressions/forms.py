"""The parts of the catalogue's records (`vsc.runtime.expressions.functions`): how a call is evaluated.

A `Form` is a function of argument values, with a kernel for whole columns if one agrees exactly; `mapped` evaluates
forms without a kernel over columns. A `Lazy` operator does not look at all its arguments, and has its own evaluation
for rows and for columns. Rows are opaque here: an argument is a function of a row, whatever a row is.

Also here: what kernels need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.expressions import Call, Expr, Literal
from vsc.plan.types import DataType
from vsc.runtime.records import Mask
from vsc.runtime.values import arrow_type, to_array, to_values

if TYPE_CHECKING:
    from vsc.runtime.expressions.columns import Columns

__all__ = [
    "Argument",
    "Form",
    "Kernel",
    "Lazy",
    "Uncertain",
    "all_of",
    "constant",
    "divisor_first",
    "fits",
    "full",
    "in_turn",
    "length_of",
    "mapped",
    "null_rows",
    "numbers",
    "seeing",
    "stepwise",
    "true_rows",
    "typed",
    "with_nulls_of",
]

Argument = Callable[[Any], Any]
"""The value of an argument, given a row."""

Function = Callable[..., Any]

Kernel = Callable[[Call, list[Any]], Any]
"""``kernel(call, arguments) -> column``: the arguments are columns, or scalars if they are constant, but not all. It
raises an exception where a value fails (Arrow's own will do), Uncertain where one might not come out as it does for a
single row."""


class Uncertain(Exception):
    """Whole columns give no sure answer: the rows decide."""


# ---------------------------------------------------------------------------------------- how a row looks at arguments


def in_turn(function: Function, args: Sequence[Argument]) -> Argument:
    """Null as soon as an argument is null; those after it are not looked at."""
    if len(args) == 1:
        (only,) = args
        return lambda row: None if (a := only(row)) is None else function(a)
    if len(args) == 2:
        left, right = args
        return lambda row: None if (a := left(row)) is None or (b := right(row)) is None else function(a, b)

    def evaluate(row: Any) -> Any:
        values = []
        for arg in args:
            if (value := arg(row)) is None:
                return None
            values.append(value)
        return function(*values)

    return evaluate


def all_of(function: Function, args: Sequence[Argument]) -> Argument:
    """Null if an argument is null; all are looked at."""
    return lambda row: None if None in (values := [arg(row) for arg in args]) else function(*values)


def seeing(function: Function, args: Sequence[Argument]) -> Argument:
    """The function sees nulls."""
    return lambda row: function(*[arg(row) for arg in args])


def divisor_first(function: Function, args: Sequence[Argument]) -> Argument:
    """As `in_turn`, but from the right: Spark looks at the divisor first."""
    left, right = args
    return lambda row: None if (b := right(row)) is None or (a := left(row)) is None else function(a, b)


def stepwise(function: Function, args: Sequence[Argument]) -> Argument:
    """A function of two from left to right; null as soon as an argument is null, those after it are not looked at."""
    if len(args) == 2:
        return in_turn(function, args)
    first, *others = args

    def evaluate(row: Any) -> Any:
        value = first(row)
        for arg in others:
            if value is None or (other := arg(row)) is None:
                return None
            value = function(value, other)
        return value

    return evaluate


# ------------------------------------------------------------------------------------------------------------- forms


@dataclass(frozen=True, slots=True)
class Form:
    """`build` makes the function of argument values for one call in a plan: types and constants are looked at once.

    `looks` is one of the ways above in which a row looks at the arguments: unless that is `seeing`, the call is null if
    an argument is, and the function is not called.
    """

    build: Callable[[Call], Function]
    kernel: Kernel | None = None
    looks: Callable[[Function, Sequence[Argument]], Argument] = in_turn


@dataclass(frozen=True, slots=True)
class Lazy:
    """An operator that does not look at all its arguments: for a row, and for columns (which may raise as a kernel)."""

    row: Callable[[Call, Sequence[Argument]], Argument]
    column: Callable[[Columns, Call], pa.Array]


def mapped(form: Form, call: Call, args: Sequence[Any]) -> pa.Array:
    """The form row by row over its evaluated arguments, of which at least one is a column."""
    columns = [(i, arg) for i, arg in enumerate(args) if not isinstance(arg, pa.Scalar)]
    place = {i: itemgetter(number) for number, (i, _) in enumerate(columns)}
    picks = [place[i] if i in place else _always(arg, call.args[i]) for i, arg in enumerate(args)]
    evaluate = form.looks(form.build(call), picks)
    rows = zip(*(to_values(column, call.args[i].type) for i, column in columns), strict=True)
    return to_array([evaluate(row) for row in rows], call.type)


def _always(scalar: pa.Scalar, expr: Expr) -> Argument:
    (value,) = to_values(full(scalar, 1), expr.type)
    return lambda row: value


# -------------------------------------------------------------------------------------------------- tools of kernels


def length_of(args: list[Any]) -> int:
    """How many rows there are."""
    return next(len(arg) for arg in args if not isinstance(arg, pa.Scalar))


def numbers(column: pa.Array) -> npt.NDArray[Any]:
    """The values of a column without nulls or with anything in their place."""
    filled = column.fill_null(pa.scalar(0, column.type)) if column.null_count else column
    found: npt.NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return found


def full(column: Any, length: int) -> pa.Array:
    """`column` as an array; a constant is repeated `length` times."""
    if not isinstance(column, pa.Scalar):
        return column
    # Arrow cannot repeat a list zero times.
    return pa.repeat(column, length) if length else pa.array([], column.type)


def typed(column: Any, type: DataType, length: int) -> pa.Array:
    """As `full`, of exactly the Arrow type of `type`."""
    found, wanted = full(column, length), arrow_type(type)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    return found if found.type == wanted else found.cast(wanted)


def true_rows(column: pa.Array) -> Mask:
    """Which rows of a boolean column are true; null is not."""
    found: Mask = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return found


def null_rows(columns: Sequence[pa.Array], rows: int) -> Mask:
    """Where one of the columns is null."""
    null = np.zeros(rows, dtype=np.bool_)
    for column in columns:
        if column.null_count:
            null |= column.is_null().to_numpy(zero_copy_only=False)
    return null


def with_nulls_of(values: npt.NDArray[Any], type: pa.DataType, *columns: pa.Array) -> pa.Array:
    """The values as a column, null where one of `columns` is."""
    nulls = null_rows(columns, len(values))
    return pa.array(values, type, mask=nulls if nulls.any() else None)


def constant(expr: Expr) -> Any:
    """The value of a constant argument; Uncertain if it is not one, or null."""
    if isinstance(expr, Literal) and expr.value is not None:
        return expr.value
    raise Uncertain


def fits(texts: pa.Array, regex: str) -> bool:
    """Whether every non-null text matches `regex` completely."""
    return bool(pc.all(pc.match_substring_regex(texts, rf"\A(?:{regex})\z"), min_count=0).as_py())
