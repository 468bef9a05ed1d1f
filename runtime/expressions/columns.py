"""Evaluates an expression over whole columns: by Arrow's kernels where they agree exactly, else row by row.

Guarantees: `evaluate` gives what `compile_row` gives for every row, and fails on the same rows. If a value fails, the
rows are halved until few are left, which are evaluated one by one: failures are rare, and the other rows stay columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.expressions import Call, Cast, Column, Expr, Parameter, parts
from vsc.plan.nodes import Schema
from vsc.plan.types import DataType
from vsc.runtime.errors import FunctionError
from vsc.runtime.expressions.cast_kernels import cast_column
from vsc.runtime.expressions.failure import ExpressionFailure, as_failure, fail
from vsc.runtime.expressions.forms import Form, Lazy, Uncertain, mapped, typed
from vsc.runtime.expressions.functions import form_of
from vsc.runtime.expressions.row import RowFunction, compile_row, timed_input
from vsc.runtime.values import arrow_type, to_array, to_values

__all__ = ["Columns", "Frame", "columns_of", "evaluate"]

Indices = npt.NDArray[np.int64]
_FEW = 256
"""How many rows are computed one by one if one of them fails."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Records of one input as columns, all of one length.

    `columns` are the key's, then the others, in the schema's order. `times` are event times in milliseconds (None: not
    known, then ``event_time`` is null). `absent` marks the rows that have no record: all their columns and times count
    as null, whatever stands there (None: no such row).
    """

    schema: Schema
    columns: Sequence[pa.Array]
    times: npt.NDArray[np.int64] | None = None
    absent: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        if self.columns:
            return len(self.columns[0])
        rows = self.times if self.times is not None else self.absent
        return 0 if rows is None else len(rows)

    def slice(self, start: int, stop: int) -> Frame:
        """The rows from `start` to `stop` (exclusive)."""
        columns = [column.slice(start, stop - start) for column in self.columns]
        times = None if self.times is None else self.times[start:stop]
        return Frame(self.schema, columns, times, None if self.absent is None else self.absent[start:stop])

    def column(self, name: str) -> pa.Array:
        """A column as an expression sees it: null where the record is absent."""
        names = [column.name for column in (*self.schema.key, *self.schema.value)]
        found = self.columns[names.index(name)]
        if self.absent is None or not self.absent.any():
            return found
        return pc.if_else(pa.array(self.absent), pa.scalar(None, found.type), found)

    def rows(self, used: set[str]) -> tuple[list[Any], list[Any]]:
        """The records (None if absent) and their times; columns that are not `used` are null."""
        count = len(self)
        columns = [
            to_values(_utf8(array, column.type), column.type) if column.name in used else [None] * count
            for column, array in zip((*self.schema.key, *self.schema.value), self.columns, strict=True)
        ]
        rows: list[Any] = list(zip(*columns, strict=True)) if columns else [()] * count
        times: list[Any] = [None] * count if self.times is None else self.times.tolist()
        for i in () if self.absent is None else np.flatnonzero(self.absent).tolist():
            rows[i] = times[i] = None
        return rows, times


def evaluate(expr: Expr, inputs: Sequence[Frame]) -> tuple[pa.Array, dict[int, str]]:
    """The values of `expr` for all rows of `inputs`, which have the same length, as an array of its Arrow type.

    Also returns the failures: the reason by row number; the value of such a row is null.
    """
    count = len(inputs[0]) if inputs else 0
    try:
        return Columns(inputs, count).array(expr), {}
    except FunctionError:
        raise
    except Exception:  # a value fails, or a kernel is not sure, or Arrow cannot hold so much: the rows decide
        function = compile_row(expr, [frame.schema for frame in inputs])
    if count <= _FEW:
        try:
            return _row_by_row(expr, function, inputs, count)
        except FunctionError:
            raise
        except Exception as error:  # a row cannot be read, or Arrow refuses a result
            if count <= 1:
                return to_array([None] * count, expr.type), dict.fromkeys(range(count), as_failure(error).reason)
    half = count // 2
    one, failed = evaluate(expr, [frame.slice(0, half) for frame in inputs])
    other, more = evaluate(expr, [frame.slice(half, count) for frame in inputs])
    return pa.concat_arrays([one, other]), {**failed, **{row + half: reason for row, reason in more.items()}}


def _row_by_row(
    expr: Expr, function: RowFunction, inputs: Sequence[Frame], count: int
) -> tuple[pa.Array, dict[int, str]]:
    used = columns_of(expr)
    sides = [frame.rows({c.name for c in used if c.input == i}) for i, frame in enumerate(inputs)]
    nothing: list[Any] = [None] * count
    (rows0, times0), (rows1, times1) = (*sides, (nothing, nothing), (nothing, nothing))[:2]
    values, failed = list(nothing), {}
    for row, record in enumerate(zip(rows0, rows1, times0, times1, strict=True)):
        try:
            values[row] = function(*record)
        except ExpressionFailure as failure:
            failed[row] = failure.reason
    return to_array(values, expr.type), failed


class Columns:
    """Evaluates expressions over the inputs, or over some of their rows, by kernels.

    Raises an exception, whichever, if a value fails or a kernel is not sure: then the rows decide, one by one.
    """

    def __init__(
        self, inputs: Sequence[Frame], length: int, rows: Indices | None = None, elements: Sequence[pa.Array] = ()
    ) -> None:
        self.inputs, self.length, self.rows = inputs, length, rows
        self.known: dict[tuple[int, str], pa.Array] = {}
        self.elements = elements
        """The parameters of the lambdas that this is the inside of: two columns for each, the outermost's first."""

    def array(self, expr: Expr) -> pa.Array:
        """The column of `expr`, of exactly its Arrow type."""
        return typed(self.value(expr), expr.type, self.length)

    def value(self, expr: Expr) -> Any:
        """The column of `expr`, or a scalar if it is constant."""
        if _is_constant(expr):
            return _constant(expr)
        match expr:
            case Column(number, name):
                if (number, name) not in self.known:
                    found = self._chosen(self.inputs[number].column(name))
                    self.known[number, name] = _utf8(found, expr.type)
                return self.known[number, name]
            case Parameter(place, depth):
                return self.elements[2 * depth + place]
            case Cast(arg, type, safe):
                return cast_column(self.array(arg), arg.type, type, safe=safe)
            case Call("event_time"):
                return self._event_time(expr)
            case Call():
                form = form_of(expr)
                return form.column(self, expr) if isinstance(form, Lazy) else self._call(form, expr)
        raise Uncertain

    def some(self, expr: Expr, rows: Indices) -> pa.Array:
        """The column of `expr` for these rows only (numbers among the rows of this object)."""
        if not len(rows):
            return pa.array([], arrow_type(expr.type))
        return self.at(rows).array(expr)

    def at(self, rows: Indices, *more: pa.Array) -> Columns:
        """These rows, each as often as it is named; `more` are the parameters of one more lambda."""
        chosen = rows if self.rows is None else self.rows[rows]
        taken = [column.take(pa.array(rows)) for column in self.elements]
        return Columns(self.inputs, len(rows), chosen, [*taken, *more])

    def by_rows(self, call: Call) -> pa.Array:
        """The column of a call that no kernel computes, row by row; Uncertain if a row fails, or of some rows only."""
        if self.rows is not None:
            raise Uncertain
        values, failed = _row_by_row(call, compile_row(call, [f.schema for f in self.inputs]), self.inputs, self.length)
        if failed:
            raise Uncertain
        return values

    def _chosen(self, column: pa.Array) -> pa.Array:
        return column if self.rows is None else column.take(pa.array(self.rows))

    def _event_time(self, expr: Call) -> pa.Array:
        number = timed_input(expr)
        frame = self.inputs[number] if number < len(self.inputs) else None
        if frame is None or frame.times is None:
            return pa.nulls(self.length, arrow_type(expr.type))
        millis = self._chosen(pa.array(frame.times, pa.int64(), mask=frame.absent))
        return pc.multiply_checked(millis, 1000).view(arrow_type(expr.type))

    def _call(self, form: Form, call: Call) -> Any:
        args = [self.value(arg) for arg in call.args]
        if form.kernel is not None:
            try:
                return form.kernel(call, args)
            except Exception:  # it is not sure, or Arrow fails on a value: each row decides for itself
                pass
        return mapped(form, call, args)


def _utf8(column: pa.Array, type: DataType) -> pa.Array:
    """The column; fails if a text in it is not UTF-8, which most kernels would not notice."""
    if "string" in str(type):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:  # it may be in a row beside this slice of nested values
            try:
                column.take(pa.array(np.arange(len(column)))).validate(full=True)
            except pa.ArrowInvalid:
                fail("INVALID_UTF8_STRING", "a text is not valid UTF-8")
    return column


def _is_constant(expr: Expr) -> bool:
    for part in parts(expr):
        if isinstance(part, Column | Parameter) or (isinstance(part, Call) and part.function == "event_time"):
            return False
    return True


def _constant(expr: Expr) -> pa.Scalar:
    return to_array([compile_row(expr, [])(None, None, None, None)], expr.type)[0]


def columns_of(expr: Expr) -> set[Column]:
    """The columns that an expression reads."""
    return {part for part in parts(expr) if isinstance(part, Column)}
