"""The operators that do not look at all their arguments: for one row, and for columns.

Over columns, an argument that can fail is evaluated only for the rows that need it, so no unneeded value fails; one
that cannot fail is evaluated for all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.expressions import Call, Cast, Column, Expr, Lambda, Literal, Parameter
from vsc.plan.functions import CALLS
from vsc.runtime.expressions.forms import Argument, Lazy, Uncertain, seeing, true_rows
from vsc.runtime.expressions.kernels import compare
from vsc.runtime.expressions.ordering import comparison
from vsc.runtime.expressions.own import on_arrays, on_row

if TYPE_CHECKING:
    from vsc.runtime.expressions.columns import Columns

__all__ = ["CASE", "COALESCE", "IN", "LOGIC", "OWN_VECTORIZED", "never_fails"]

_WIDENING = {"tinyint": 0, "smallint": 1, "int": 2, "bigint": 3, "float": 4, "double": 5}


def never_fails(expr: Expr) -> bool:
    """Whether `expr` has a value on every row; false if that is unknown."""
    match expr:
        case Literal() | Column() | Parameter():
            return True
        case Lambda(body):
            return never_fails(body)
        case Cast(arg, type, safe):
            names = (str(arg.type), str(type))
            widens = names[0] in _WIDENING and _WIDENING[names[0]] <= _WIDENING.get(names[1], -1)
            return (safe or widens or names[1] == "string") and never_fails(arg)
        case Call(function, args):
            if expr.is_own or CALLS[function].fails or not all(map(never_fails, args)):
                return False
            # what is written in quotes has been checked, but not what is computed in its place
            quoted = (arg for arg, name in zip(args, CALLS[function].parameters, strict=False) if name.startswith("'"))
            return all(isinstance(arg, Literal) for arg in quoted)


# ------------------------------------------------------------------------------------------------------- and, or, in


def _logic_row(call: Call, args: Sequence[Argument]) -> Argument:
    """Decided by the first operand that decides, null if one of the others is null."""
    decisive = call.function == "or"

    def evaluate(row: Any) -> Any:
        unknown = False
        for arg in args:
            value = arg(row)
            if value is decisive:
                return decisive
            unknown = unknown or value is None
        return None if unknown else not decisive

    return evaluate


def _logic_column(columns: Columns, call: Call) -> pa.Array:
    decisive = call.function == "or"
    combine = pc.or_kleene if decisive else pc.and_kleene
    result = columns.array(call.args[0])
    for arg in call.args[1:]:
        if never_fails(arg):
            result = combine(result, columns.array(arg))
            continue
        decided = true_rows(pc.equal(result, decisive))
        rest, done = np.flatnonzero(~decided), np.flatnonzero(decided)
        asked = combine(result.take(pa.array(rest)), columns.some(arg, rest))
        result = _scattered([asked, result.take(pa.array(done))], [rest, done])
    return result


def _in_row(call: Call, args: Sequence[Argument]) -> Argument:
    arg, *options = args
    equal = comparison("eq", call.args[0].type)

    def evaluate(row: Any) -> Any:
        value = arg(row)
        if value is None:
            return None
        unknown = False
        for option in options:
            other = option(row)
            if other is None:
                unknown = True
            elif equal(value, other):
                return True
        return None if unknown else False

    return evaluate


def _in_column(columns: Columns, call: Call) -> pa.Array:
    value, *options = call.args
    if not all(map(never_fails, options)):
        raise Uncertain
    column, found = columns.array(value), None
    for option in options:
        equal = compare("eq", value.type, column, columns.value(option))
        found = equal if found is None else pc.or_kleene(found, equal)
    return found


# ---------------------------------------------------------------------------------------------------------- branches


def _case_row(call: Call, args: Sequence[Argument]) -> Argument:
    branches, otherwise = list(zip(args[:-1:2], args[1::2], strict=True)), args[-1]

    def evaluate(row: Any) -> Any:
        for when, then in branches:
            if when(row):
                return then(row)
        return otherwise(row)

    return evaluate


def _case_column(columns: Columns, call: Call) -> pa.Array:
    branches, otherwise = list(zip(call.args[:-1:2], call.args[1::2], strict=True)), call.args[-1]
    if all(map(never_fails, call.args[1:])):
        found = columns.array(otherwise)
        for when, then in reversed(branches):
            found = pc.if_else(pc.fill_null(columns.array(when), False), columns.array(then), found)
        return found
    left = np.arange(columns.length)
    pieces, places = [], []
    for when, then in branches:
        if len(left) == 0:
            break
        chosen = true_rows(columns.array(when) if len(left) == columns.length else columns.some(when, left))
        pieces.append(columns.some(then, left[chosen]))
        places.append(left[chosen])
        left = left[~chosen]
    return _scattered([*pieces, columns.some(otherwise, left)], [*places, left])


def _coalesce_row(call: Call, args: Sequence[Argument]) -> Argument:
    return lambda row: next((value for arg in args if (value := arg(row)) is not None), None)


def _coalesce_column(columns: Columns, call: Call) -> pa.Array:
    first, *others = call.args
    if all(map(never_fails, others)):
        return pc.coalesce(*map(columns.array, call.args))
    result = columns.array(first)
    for arg in others:
        null = result.is_null().to_numpy(zero_copy_only=False)
        if not null.any():
            break
        filled, rest = np.flatnonzero(~null), np.flatnonzero(null)
        result = _scattered([result.take(pa.array(filled)), columns.some(arg, rest)], [filled, rest])
    return result


def _scattered(pieces: list[pa.Array], places: list[npt.NDArray[np.int64]]) -> pa.Array:
    """The rows of all `pieces`, each put where `places` says."""
    if len(pieces) == 1:
        return pieces[0]
    order = np.empty(sum(map(len, places)), np.int64)
    order[np.concatenate(places)] = np.arange(len(order))
    return pa.concat_arrays(pieces).take(pa.array(order))


def _own_row(call: Call, args: Sequence[Argument]) -> Argument:
    return seeing(on_row(call), args)


def _own_column(columns: Columns, call: Call) -> pa.Array:
    return on_arrays(call, [columns.array(arg) for arg in call.args], columns.length)


LOGIC = Lazy(_logic_row, _logic_column)
"""``and`` and ``or`` of two or more."""

IN = Lazy(_in_row, _in_column)

OWN_VECTORIZED = Lazy(_own_row, _own_column)
"""A function of the user's that takes arrays. Not lazy, but it needs its arguments as whole columns."""

CASE = Lazy(_case_row, _case_column)
"""``case`` and ``if``: condition, value, condition, value, ..., else."""

COALESCE = Lazy(_coalesce_row, _coalesce_column)
