"""First step of an `explode` of a table: the changes of the elements of its arrays, under their positions.

`tests/oracle/records` has the same rules for one record, in a form that is easy to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.nodes import ExplodeChanges
from vsc.runtime.operators.columns.evaluation import Failed
from vsc.runtime.operators.columns.flow import Flow, taken
from vsc.runtime.operators.columns.moments import turns
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.rows import RowCodec

__all__ = ["OPERATOR"]


@dataclass(frozen=True, slots=True)
class _Arrays:
    """An array of each row, and the rows' other columns. `count`: how many elements each has."""

    count: Int64s
    elements: pa.Array
    values: tuple[pa.Array, ...]

    def at(self, row: Int64s, position: Int64s, there: Mask) -> tuple[Int64s, Int64s]:
        """The places of elements of these rows, and of the rows themselves; negative where it is not `there`."""
        first = np.cumsum(self.count) - self.count
        return np.where(there, first[row] + position, -1), np.where(there, row, -1)


class _ExplodeChanges(Step):
    """Takes the changes of a table, with the rows before them."""

    def __init__(self, site: Site, operation: ExplodeChanges) -> None:
        self._site, self._operation = site, operation
        self._array = site.evaluation([operation.item])
        self._names = [c.name for c in site.inputs[0].value]
        self._place = [c.name for c in site.node.schema.key].index(operation.position)
        self._rows = RowCodec([c.type for c in site.node.schema.value])

    def process(self, flow: Flow) -> Flow:
        """For each change the elements that differ, in their order, then what is removed."""
        flow = self._site.newest(flow, self._operation.versioned)
        now, failed = self._arrays(flow, flow.time, flow.present, flow.values)
        self._site.kept(flow, failed)  # such a row counts as deleted
        before = now
        if flow.old is not None:
            before, _ = self._arrays(flow, flow.old.time, flow.old.present, flow.old.values)  # handled as the new rows
        were = before.count if flow.old is not None else np.zeros(len(flow), dtype=np.int64)
        many = np.maximum(now.count, were)
        cause = np.repeat(np.arange(len(flow)), many)
        position = np.arange(len(cause)) - (np.cumsum(many) - many)[cause]
        there, was = position < now.count[cause], position < were[cause]
        new = self._values(now, *now.at(cause, position, there))
        old = self._values(before, *before.at(cause, position, was))
        sent = ~(there & was & self._equal(new, old, len(cause)))
        cause, position, there = cause[sent], position[sent], there[sent]
        keys = list(taken(flow.keys, cause))
        keys.insert(self._place, pa.array(position.astype(np.int32)))
        values = tuple(column.filter(pa.array(sent)) for column in new)
        at = self._site.give(flow.at.take(cause), turns(cause))
        return Flow(at, flow.key[cause], flow.space, flow.time[cause], there, tuple(keys), values)

    def _arrays(self, flow: Flow, time: Int64s, present: Mask, values: Sequence[pa.Array]) -> tuple[_Arrays, Failed]:
        """The arrays of rows; none of a missing row, and none of one that cannot be computed."""
        found = self._array.where((*flow.keys, *values), time, present)
        (arrays,) = found.columns
        count = pc.fill_null(pc.list_value_length(arrays), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        return _Arrays(count, pc.list_flatten(arrays), tuple(values)), found.failed

    def _values(self, arrays: _Arrays, element: Int64s, row: Int64s) -> tuple[pa.Array, ...]:
        """The value columns of the elements at these places."""
        columns = dict(zip(self._names, taken(arrays.values, row), strict=True))
        (columns[self._operation.item.name],) = taken([arrays.elements], element)
        return tuple(columns[column.name] for column in self._site.node.schema.value)

    def _equal(self, new: Sequence[pa.Array], old: Sequence[pa.Array], count: int) -> Mask:
        """Which rows are the same to the last bit."""
        one, other = self._rows.encode_columns(new, count), self._rows.encode_columns(old, count)
        equal: Mask = pc.equal(one, other).to_numpy(zero_copy_only=False)
        return equal


OPERATOR = Operator(_ExplodeChanges)
