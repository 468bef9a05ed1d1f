"""Evaluates an expression over whole columns: by Arrow's kernels where they agree exactly, else row by row.

Guarantees: `evaluate` gives what `compile_row` gives for every row, or fails at the first row at which that fails. A
kernel that meets a value it is not sure about gives up, and the rows decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.expressions import Call, Cast, Column, Expr, Literal
from vsc.plan.nodes import Column as SchemaColumn
from vsc.plan.nodes import Schema
from vsc.plan.types import DataType
from vsc.runtime.expressions.cast_kernels import cast_column
from vsc.runtime.expressions.failure import ColumnFailure, ExpressionFailure
from vsc.runtime.expressions.kernels import KERNELS, Uncertain, full, mask_of
from vsc.runtime.expressions.row import compile_row
from vsc.runtime.values import arrow_type, to_array, to_values

__all__ = ["Frame", "columns_of", "evaluate"]

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Frame:
    """Records of one input as columns, all of one length.

    `columns` are the key's, then the others, in the schema's order. `times` are event times in milliseconds (None: not
    known, then ``event_time`` is null). `absent` marks the rows that have no record: all their columns and times count
    as null, whatever stands there (None: no such row).
    """

    schema: Schema
    columns: tuple[pa.Array, ...]
    times: npt.NDArray[np.int64] | None = None
    absent: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        if self.columns:
            return len(self.columns[0])
        rows = self.times if self.times is not None else self.absent
        return 0 if rows is None else len(rows)


def evaluate(expr: Expr, inputs: Sequence[Frame]) -> pa.Array:
    """The values of `expr` for all rows of `inputs`, which are of one length, as an array of its Arrow type.

    Raises ColumnFailure with the first row for which the expression fails.
    """
    try:
        return _Columns(inputs, len(inputs[0]) if inputs else 0).array(expr)
    except Uncertain:
        return _row_by_row(expr, inputs)


class _Columns:
    """Evaluates expressions over the inputs, or over some of their rows, by kernels.

    Raises Uncertain where a value fails or a kernel is not sure; then the rows decide, one by one and in their order.
    """

    def __init__(self, inputs: Sequence[Frame], length: int, rows: Indices | None = None) -> None:
        self.inputs, self.length, self.rows = inputs, length, rows
        self.known: dict[tuple[int, str], pa.Array] = {}

    def array(self, expr: Expr) -> pa.Array:
        """The column of `expr`, of exactly its Arrow type."""
        found = full(self.value(expr), self.length)
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        return found if found.type == arrow_type(expr.type) else found.cast(arrow_type(expr.type))

    def value(self, expr: Expr) -> Any:
        """The column of `expr`, or a scalar if it is constant."""
        if not columns_of(expr) and "event_time" not in _functions_of(expr):
            return _constant(expr)
        match expr:
            case Column():
                return self._column(expr)
            case Cast(arg, type):
                return self._cast(expr, self.array(arg), arg.type, type)
            case Call("event_time"):
                return self._event_time(expr)
            case Call(("case" | "if"), args):
                return self._case(args)
            case Call("coalesce", args):
                return self._coalesce(args)
            case Call(("and" | "or"), args):
                return self._logic(expr.function == "or", args)
            case Call():
                return self._call(expr)
        raise Uncertain

    def some(self, expr: Expr, rows: Indices) -> pa.Array:
        """The column of `expr` for these rows only (numbers among the rows of this object)."""
        chosen = rows if self.rows is None else self.rows[rows]
        return _Columns(self.inputs, len(rows), chosen).array(expr)

    def _column(self, expr: Column) -> pa.Array:
        key = (expr.input, expr.name)
        if key not in self.known:
            frame = self.inputs[expr.input]
            names = [column.name for column in (*frame.schema.key, *frame.schema.value)]
            found = frame.columns[names.index(expr.name)]
            if frame.absent is not None and frame.absent.any():
                found = pc.if_else(pa.array(frame.absent), pa.scalar(None, found.type), found)
            self.known[key] = found if self.rows is None else found.take(pa.array(self.rows))
        return self.known[key]

    def _event_time(self, expr: Call) -> pa.Array:
        first = expr.args[0] if expr.args else None
        index = first.value if isinstance(first, Literal) else 0
        frame = self.inputs[index] if isinstance(index, int) and index < len(self.inputs) else None
        if frame is None or frame.times is None:
            return to_array([None] * self.length, expr.type)
        found = pa.array(frame.times, pa.int64(), mask=frame.absent)
        millis = found if self.rows is None else found.take(pa.array(self.rows))
        try:
            return pc.multiply_checked(millis, 1000).view(arrow_type(expr.type))
        except pa.ArrowInvalid:  # an event time in another unit than milliseconds has no timestamp
            raise Uncertain from None

    def _cast(self, expr: Cast, column: pa.Array, source: DataType, target: DataType) -> Any:
        try:
            return cast_column(column, source, target)
        except Uncertain:
            return _rows_of_call(Cast(_argument(0, expr.arg), target, expr.safe), [expr.arg], [column])

    def _call(self, expr: Call) -> Any:
        if expr.function in _LAZY_ARGUMENTS and not all(never_fails(arg) for arg in expr.args[1:]):
            raise Uncertain
        args = [self.value(arg) for arg in expr.args]
        kernel = KERNELS.get(expr.function)
        if kernel is not None:
            try:
                return kernel(expr, args)
            except Uncertain:
                pass
        placed = [(i, arg) for i, arg in enumerate(expr.args) if not isinstance(args[i], pa.Scalar)]
        mirrored = tuple(
            arg if isinstance(args[i], pa.Scalar) else _argument(i, arg) for i, arg in enumerate(expr.args)
        )
        call = Call(expr.function, mirrored, expr.type)
        return _rows_of_call(call, [arg for _, arg in placed], [args[i] for i, _ in placed], [i for i, _ in placed])

    def _case(self, args: tuple[Expr, ...]) -> pa.Array:
        """Where a value can fail, each is evaluated for its own rows only: nothing fails which nobody asked for."""
        if all(never_fails(arg) for arg in args[1:]):
            found = self.array(args[-1])
            for when, then in reversed(list(zip(args[:-1:2], args[1::2], strict=True))):
                found = pc.if_else(pc.fill_null(self.array(when), False), self.array(then), found)
            return found
        left = np.arange(self.length)
        pieces, places = [], []
        for when, then in zip(args[:-1:2], args[1::2], strict=True):
            if len(left) == 0:
                break
            chosen = mask_of(self.array(when) if len(left) == self.length else self.some(when, left))
            pieces.append(self.some(then, left[chosen]))
            places.append(left[chosen])
            left = left[~chosen]
        pieces.append(self.some(args[-1], left))
        places.append(left)
        return _scattered(pieces, places)

    def _coalesce(self, args: tuple[Expr, ...]) -> pa.Array:
        if all(never_fails(arg) for arg in args[1:]):
            return pc.coalesce(*(self.array(arg) for arg in args))
        found = self.array(args[0])
        for arg in args[1:]:
            open_rows = np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False))
            if len(open_rows) == 0:
                break
            filled = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
            found = _scattered([found.take(pa.array(filled)), self.some(arg, open_rows)], [filled, open_rows])
        return found

    def _logic(self, decisive: bool, args: tuple[Expr, ...]) -> pa.Array:
        combine = pc.or_kleene if decisive else pc.and_kleene
        found = self.array(args[0])
        for arg in args[1:]:
            if never_fails(arg):
                found = combine(found, self.array(arg))
                continue
            decided = mask_of(pc.equal(found, decisive))
            rest, done = np.flatnonzero(~decided), np.flatnonzero(decided)
            other = self.some(arg, rest)
            pieces = [combine(found.take(pa.array(rest)), other), found.take(pa.array(done))]
            found = _scattered(pieces, [rest, done])
        return found


def _constant(expr: Expr) -> pa.Scalar:
    try:
        value = compile_row(expr, [])(None, None, None, None)
    except ExpressionFailure:
        raise Uncertain from None
    return to_array([value], expr.type)[0]


def _argument(place: int, expr: Expr) -> Column:
    """The column that stands for an argument that has been evaluated."""
    return Column(0, str(place), expr.type)


def _rows_of_call(expr: Expr, args: list[Expr], columns: list[pa.Array], places: list[int] | None = None) -> pa.Array:
    """One operator row by row over the columns of its arguments."""
    named = zip(places or range(len(args)), args, strict=True)
    schema = Schema((), tuple(SchemaColumn(str(place), arg.type) for place, arg in named))
    function = compile_row(expr, [schema])
    values = [to_values(column, arg.type) for column, arg in zip(columns, args, strict=True)]
    try:
        return to_array([function(row, None, None, None) for row in zip(*values, strict=True)], expr.type)
    except ExpressionFailure:
        raise Uncertain from None


def _scattered(pieces: list[pa.Array], places: list[Indices]) -> pa.Array:
    """The rows of all `pieces`, each put where `places` says."""
    if len(pieces) == 1:
        return pieces[0]
    order = np.empty(sum(map(len, places)), np.int64)
    order[np.concatenate(places)] = np.arange(len(order))
    return pa.concat_arrays(pieces).take(pa.array(order))


_LAZY_ARGUMENTS = {"in"}
"""Functions that may not look at all arguments, and have no lazy form for columns."""

_SAFE = {
    "and", "case", "coalesce", "concat", "contains", "ends_with", "eq", "ge", "get_field", "greatest", "gt", "hour",
    "if", "in", "is_not_null", "is_null", "le", "least", "length", "lower", "lt", "minute", "ne", "not", "or",
    "second", "size", "starts_with", "substring", "trim", "unix_millis", "upper",
}  # fmt: skip
_WIDENING = {"tinyint": 0, "smallint": 1, "int": 2, "bigint": 3, "float": 4, "double": 5}


def never_fails(expr: Expr) -> bool:
    """Whether `expr` has a value on every row; false where that is not known."""
    match expr:
        case Literal() | Column():
            return True
        case Cast(arg, type, safe):
            names = (str(arg.type), str(type))
            widens = names[0] in _WIDENING and _WIDENING[names[0]] <= _WIDENING.get(names[1], -1)
            return (safe or widens or names[1] == "string") and never_fails(arg)
        case Call(function, args):
            return function in _SAFE and all(map(never_fails, args))


def _functions_of(expr: Expr) -> set[str]:
    match expr:
        case Cast(arg):
            return _functions_of(arg)
        case Call(function, args):
            return {function}.union(*(_functions_of(arg) for arg in args))
        case _:
            return set()


def _row_by_row(expr: Expr, inputs: Sequence[Frame]) -> pa.Array:
    function = compile_row(expr, [frame.schema for frame in inputs])
    used = columns_of(expr)
    length = len(inputs[0]) if inputs else 0
    sides = [_rows(frame, {c.name for c in used if c.input == i}, length) for i, frame in enumerate(inputs)]
    nothing: list[Any] = [None] * length
    (rows0, times0), (rows1, times1) = (*sides, (nothing, nothing), (nothing, nothing))[:2]
    values = []
    for row, (row0, row1, time0, time1) in enumerate(zip(rows0, rows1, times0, times1, strict=True)):
        try:
            values.append(function(row0, row1, time0, time1))
        except ExpressionFailure as failure:
            raise ColumnFailure(row, failure.reason) from None
    return to_array(values, expr.type)


def _rows(frame: Frame, used: set[str], length: int) -> tuple[list[Any], list[Any]]:
    """The records (None where absent) and their times; columns that are not used stay null."""
    columns = [
        to_values(array, column.type) if column.name in used else [None] * length
        for column, array in zip((*frame.schema.key, *frame.schema.value), frame.columns, strict=True)
    ]
    rows: list[Any] = list(zip(*columns, strict=True)) if columns else [()] * length
    times: list[Any] = [None] * length if frame.times is None else frame.times.tolist()
    if frame.absent is not None:
        for i in np.flatnonzero(frame.absent).tolist():
            rows[i] = times[i] = None
    return rows, times


def columns_of(expr: Expr) -> set[Column]:
    """The columns that an expression reads."""
    match expr:
        case Column():
            return {expr}
        case Cast(arg):
            return columns_of(arg)
        case Call(_, args):
            return set().union(*(columns_of(arg) for arg in args))
        case _:
            return set()
