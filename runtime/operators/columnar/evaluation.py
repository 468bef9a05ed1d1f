"""The expressions of one node over whole columns, given only the columns that they read.

An expression that fails on any row makes the whole batch one for the record-by-record engine (`NotColumnar`), which
knows what to do with the record that failed, and with those before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vsc.plan.expressions import Call, Cast, Column, Expr
from vsc.plan.nodes import Item, Schema
from vsc.runtime.expressions import ColumnFailure, Frame, evaluate
from vsc.runtime.operators.columnar.flow import Flow, NotColumnar
from vsc.runtime.operators.columns import true_rows
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.values import arrow_type

__all__ = ["Evaluation", "Side"]


@dataclass(frozen=True, slots=True)
class Side:
    """One input of an evaluation: the columns that `Evaluation.wanted` names, event times, where there is no record."""

    columns: Sequence[pa.Array]
    times: Int64s
    absent: Mask | None = None


class Evaluation:
    """The items of a node. `wanted` holds, for each input, the places of the columns that the items read."""

    __slots__ = ("_exprs", "_schemas", "_types", "wanted")

    def __init__(self, items: Sequence[Item], schemas: Sequence[Schema]) -> None:
        self._exprs = [item.expr for item in items]
        self._types = [arrow_type(item.expr.type) for item in items]
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

    def run(self, *sides: Side) -> tuple[pa.Array, ...]:
        """One column an item; raises NotColumnar if an item fails on any row."""
        if not len(sides[0].times):
            return tuple(pa.array([], t) for t in self._types)
        frames = [
            Frame(schema, tuple(side.columns), side.times, side.absent)
            for schema, side in zip(self._schemas, sides, strict=True)
        ]
        try:
            return tuple(self._one(expr, frames) for expr in self._exprs)
        except ColumnFailure as failure:
            raise NotColumnar from failure

    def _one(self, expr: Expr, frames: Sequence[Frame]) -> pa.Array:
        if isinstance(expr, Column):  # most items are: they are handed on as they are
            frame = frames[expr.input]
            names = [c.name for c in frame.schema.key + frame.schema.value]
            return frame.columns[names.index(expr.name)]
        return evaluate(expr, frames)

    def over(self, flow: Flow) -> tuple[pa.Array, ...]:
        """The items over all records of a flow; a missing value counts as nulls."""
        return self.rows(flow.columns, flow.time)

    def rows(self, columns: Sequence[pa.Array], times: Int64s) -> tuple[pa.Array, ...]:
        """The items over all rows, given all columns of the input."""
        return self.run(Side([columns[i] for i in self.wanted[0]], times))

    def true(self, columns: Sequence[pa.Array], times: Int64s, asked: Mask) -> Mask:
        """Where `asked` and the first item is true (null is not); it is not evaluated for other rows."""
        if asked.all():
            return true_rows(self.rows(columns, times)[0])
        chosen = pa.array(asked)
        found = np.zeros(len(asked), dtype=np.bool_)
        some = [columns[i].filter(chosen) for i in self.wanted[0]]
        found[asked] = true_rows(self.run(Side(some, times[asked]))[0])
        return found

    def where(self, columns: Sequence[pa.Array], times: Int64s, asked: Mask) -> tuple[pa.Array, ...]:
        """The items where `asked`, null elsewhere; they are not evaluated for other rows."""
        if asked.all():
            return self.rows(columns, times)
        chosen = pa.array(asked)
        some = self.run(Side([columns[i].filter(chosen) for i in self.wanted[0]], times[asked]))
        places = pa.array(np.cumsum(asked) - 1, mask=~asked)
        return tuple(column.take(places) for column in some)


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
