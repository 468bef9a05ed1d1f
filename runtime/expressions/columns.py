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

from vsc.plan.expressions import Call, Cast, Column, Expr
from vsc.plan.nodes import Schema
from vsc.runtime.expressions.failure import ColumnFailure, ExpressionFailure
from vsc.runtime.expressions.row import compile_row
from vsc.runtime.values import to_array, to_values

__all__ = ["Frame", "evaluate"]


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
    return _row_by_row(expr, inputs)


def _row_by_row(expr: Expr, inputs: Sequence[Frame]) -> pa.Array:
    function = compile_row(expr, [frame.schema for frame in inputs])
    used = _columns_of(expr)
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


def _columns_of(expr: Expr) -> set[Column]:
    match expr:
        case Column():
            return {expr}
        case Cast(arg):
            return _columns_of(arg)
        case Call(_, args):
            return set().union(*(_columns_of(arg) for arg in args))
        case _:
            return set()
