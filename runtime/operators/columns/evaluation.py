"""The expressions of one node over whole columns, with only the columns that they read.

The result says on which rows an expression fails, and why; the other rows go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Item, Schema
from vsc.runtime.expressions import Frame, columns_of, evaluate, true_rows
from vsc.runtime.operators.columns.flow import Flow, blanked, chosen, taken
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.values import arrow_type

__all__ = ["Computed", "Evaluation", "Failed", "Side", "shifted"]

Failed = Mapping[int, NodeFailure]
"""What went wrong, by the place of the row."""


@dataclass(frozen=True, slots=True)
class Side:
    """One input of an evaluation: the columns that `Evaluation.wanted` names, event times, where no record exists."""

    columns: Sequence[pa.Array]
    times: Int64s
    absent: Mask | None = None

    def select(self, mask: Mask) -> Side:
        """The rows where `mask` is true."""
        return Side(chosen(self.columns, mask), self.times[mask], None if self.absent is None else self.absent[mask])


@dataclass(frozen=True, slots=True)
class Computed:
    """The columns of the items, null in rows that `failed`."""

    columns: tuple[pa.Array, ...]
    failed: Failed = field(default_factory=dict)


class Evaluation:
    """The items of a node. `wanted` holds, for each input, the places of the columns that the items read."""

    __slots__ = ("_items", "_node", "_schemas", "wanted")

    def __init__(self, node: str, computed: Sequence[Item], schemas: Sequence[Schema]) -> None:
        self._node, self._items = node, computed
        used = {(c.input, c.name) for item in computed for c in columns_of(item.expr)}
        self.wanted: list[list[int]] = []
        self._schemas: list[Schema] = []
        for number, schema in enumerate(schemas):
            columns = schema.key + schema.value
            wanted = [i for i, c in enumerate(columns) if (number, c.name) in used]
            if number == 0 and not wanted:
                wanted = [0]  # a column tells how many rows there are
            self.wanted.append(wanted)
            self._schemas.append(Schema((), tuple(columns[i] for i in wanted)))

    def run(self, *sides: Side, asked: Mask | None = None) -> Computed:
        """One column per item, null in rows on which an item fails; the first failing item is reported.

        Where rows are not `asked` for, nothing is evaluated, and the columns are null.
        """
        if asked is not None and not asked.all():
            some = self.run(*(side.select(asked) for side in sides))
            back = np.where(asked, np.cumsum(asked) - 1, -1)
            return Computed(taken(some.columns, back), shifted(some.failed, np.flatnonzero(asked)))
        count = len(sides[0].times)
        if not count:
            return Computed(tuple(pa.array([], arrow_type(item.expr.type)) for item in self._items))
        frames = [Frame(schema, s.columns, s.times, s.absent) for schema, s in zip(self._schemas, sides, strict=True)]
        columns: list[pa.Array] = []
        failed: dict[int, NodeFailure] = {}
        for item in self._items:
            column, failures = evaluate(item.expr, frames)
            columns.append(column)
            for row, reason in failures.items():
                failed.setdefault(row, NodeFailure(self._node, item.text, reason))
        if not failed:
            return Computed(tuple(columns))
        present = np.ones(count, dtype=np.bool_)
        present[list(failed)] = False
        return Computed(blanked(columns, present), dict(sorted(failed.items())))

    def over(self, flow: Flow) -> Computed:
        """The items over all records of a flow; a missing value counts as nulls."""
        return self.rows(flow.columns, flow.time)

    def rows(self, columns: Sequence[pa.Array], times: Int64s) -> Computed:
        """The items over all rows, given all columns of the input."""
        return self.run(Side([columns[i] for i in self.wanted[0]], times))

    def seeing(self, columns: Sequence[pa.Array], times: Int64s) -> Computed:
        """The items over all rows, given the columns that are `wanted` of the input."""
        return self.run(Side(columns, times))

    def true(self, columns: Sequence[pa.Array], times: Int64s, asked: Mask) -> tuple[Mask, Failed]:
        """Where `asked` and the first item is true (not null); it is evaluated only where `asked`."""
        computed = self.where(columns, times, asked)
        return true_rows(computed.columns[0]), computed.failed

    def where(self, columns: Sequence[pa.Array], times: Int64s, asked: Mask) -> Computed:
        """The items where `asked`, null elsewhere; they are evaluated only where `asked`."""
        return self.run(Side([columns[i] for i in self.wanted[0]], times), asked=asked)


def shifted(failed: Failed, places: Sequence[int] | np.ndarray) -> Failed:
    """The failures of chosen rows, by the rows' original places."""
    return {int(places[row]): failure for row, failure in failed.items()}
