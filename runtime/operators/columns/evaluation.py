"""The expressions of one node over whole columns, given only the columns that they read.

Where one fails on a row, the batch is computed row by row, and the result says which rows failed and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.plan.expressions import Call, Cast, Column, Expr
from vsc.plan.nodes import Item, Schema
from vsc.runtime.expressions import ColumnFailure, Frame, evaluate
from vsc.runtime.operators.columns.expressions import true_rows
from vsc.runtime.operators.columns.failures import Failed, shifted
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.evaluate import items
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.values import arrow_type, to_array, to_values

_FEW = 256
"""How many rows are computed one by one where an item fails on one of them."""

__all__ = ["Computed", "Evaluation", "Side"]


@dataclass(frozen=True, slots=True)
class Side:
    """One input of an evaluation: the columns that `Evaluation.wanted` names, event times, where there is no record."""

    columns: Sequence[pa.Array]
    times: Int64s
    absent: Mask | None = None

    def slice(self, start: int, end: int) -> Side:
        """The rows from `start` on and before `end`."""
        absent = None if self.absent is None else self.absent[start:end]
        return Side([column.slice(start, end - start) for column in self.columns], self.times[start:end], absent)


@dataclass(frozen=True, slots=True)
class Computed:
    """The columns of the items, null in rows that `failed`."""

    columns: tuple[pa.Array, ...]
    failed: Failed = field(default_factory=dict)


class Evaluation:
    """The items of a node. `wanted` holds, for each input, the places of the columns that the items read."""

    __slots__ = ("_exprs", "_items", "_node", "_schemas", "_types", "wanted")

    def __init__(self, node: str, computed: Sequence[Item], schemas: Sequence[Schema]) -> None:
        self._node, self._items = node, computed
        self._exprs = [item.expr for item in computed]
        self._types = [arrow_type(item.expr.type) for item in computed]
        used: set[tuple[int, str]] = set()
        for expr in self._exprs:
            _collect(expr, used)
        self.wanted: list[list[int]] = []
        self._schemas: list[Schema] = []
        for number, schema in enumerate(schemas):
            columns = schema.key + schema.value
            wanted = [i for i, c in enumerate(columns) if (number, c.name) in used]
            if number == 0 and not wanted:
                wanted = [0]  # a column tells how many rows there are
            self.wanted.append(wanted)
            keys = tuple(columns[i] for i in wanted if i < len(schema.key))
            self._schemas.append(Schema(keys, tuple(columns[i] for i in wanted if i >= len(schema.key))))

    def run(self, *sides: Side) -> Computed:
        """One column an item, null in rows on which an item fails."""
        count = len(sides[0].times)
        if not count:
            return Computed(tuple(pa.array([], t) for t in self._types))
        frames = [
            Frame(schema, tuple(side.columns), side.times, side.absent)
            for schema, side in zip(self._schemas, sides, strict=True)
        ]
        try:
            return Computed(tuple(self._one(expr, frames) for expr in self._exprs))
        except ColumnFailure:
            return self._row_by_row(sides, count) if count <= _FEW else self._by_halves(sides, count)

    def _by_halves(self, sides: Sequence[Side], count: int) -> Computed:
        """The same, in two parts: rows that fail are few, and the others go on as columns."""
        half = count // 2
        one, other = self.run(*(s.slice(0, half) for s in sides)), self.run(*(s.slice(half, count) for s in sides))
        columns = zip(one.columns, other.columns, strict=True)
        failed = {**one.failed, **{row + half: failure for row, failure in other.failed.items()}}
        return Computed(tuple(pa.concat_arrays([_one(a), _one(b)]) for a, b in columns), failed)

    def _row_by_row(self, sides: Sequence[Side], count: int) -> Computed:
        """The same, record by record: for a batch in which an item fails."""
        function = items(self._node, self._items, self._schemas)
        nothing: list[Any] = [None] * count
        rows = [_rows(side, schema) for side, schema in zip(sides, self._schemas, strict=True)]
        (rows0, times0), (rows1, times1) = (*rows, (nothing, nothing))[:2]
        absent = (None,) * len(self._exprs)
        results, failed = [], {}
        for row, (row0, row1, time0, time1) in enumerate(zip(rows0, rows1, times0, times1, strict=True)):
            try:
                results.append(function(row0, row1, time0, time1))
            except NodeFailure as failure:
                results.append(absent)
                failed[row] = failure
        columns = zip(*results, strict=True)
        return Computed(tuple(to_array(c, i.expr.type) for c, i in zip(columns, self._items, strict=True)), failed)

    def _one(self, expr: Expr, frames: Sequence[Frame]) -> pa.Array:
        if isinstance(expr, Column):  # most items are: they are handed on as they are
            frame = frames[expr.input]
            names = [c.name for c in frame.schema.key + frame.schema.value]
            return frame.columns[names.index(expr.name)]
        return evaluate(expr, frames)

    def over(self, flow: Flow) -> Computed:
        """The items over all records of a flow; a missing value counts as nulls."""
        return self.rows(flow.columns, flow.time)

    def rows(self, columns: Sequence[pa.Array], times: Int64s) -> Computed:
        """The items over all rows, given all columns of the input."""
        return self.run(Side([columns[i] for i in self.wanted[0]], times))

    def true(self, columns: Sequence[pa.Array], times: Int64s, asked: Mask) -> tuple[Mask, Failed]:
        """Where `asked` and the first item is true (null is not); it is not evaluated for other rows."""
        computed = self.where(columns, times, asked)
        return true_rows(computed.columns[0]), computed.failed

    def where(self, columns: Sequence[pa.Array], times: Int64s, asked: Mask) -> Computed:
        """The items where `asked`, null elsewhere; they are not evaluated for other rows."""
        if asked.all():
            return self.rows(columns, times)
        chosen = pa.array(asked)
        some = self.run(Side([columns[i].filter(chosen) for i in self.wanted[0]], times[asked]))
        back = pa.array(np.cumsum(asked) - 1, mask=~asked)
        return Computed(tuple(c.take(back) for c in some.columns), shifted(some.failed, np.flatnonzero(asked)))


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _rows(side: Side, schema: Schema) -> tuple[list[Any], list[Any]]:
    """The rows of a side, None where there is none, and their times."""
    types = [c.type for c in schema.key + schema.value]
    columns = [to_values(column, type_) for column, type_ in zip(side.columns, types, strict=True)]
    rows: list[Any] = list(zip(*columns, strict=True)) if columns else [()] * len(side.times)
    times: list[Any] = side.times.tolist()
    if side.absent is not None:
        for row in np.flatnonzero(side.absent).tolist():
            rows[row] = times[row] = None
    return rows, times


def _collect(expr: Expr, used: set[tuple[int, str]]) -> None:
    match expr:
        case Column(number, name):
            used.add((number, name))
        case Cast(arg):
            _collect(arg, used)
        case Call():
            for arg in expr.args:
                _collect(arg, used)
        case _:
            pass
