"""First step of an aggregate over a table: its changes become records keyed by the group that each row belongs to.

`tests/oracle/records` has the same rules for one record, in a form that is easy to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import GroupChanges
from vsc.runtime.operators.aggregate.groups.travelled import travelling
from vsc.runtime.operators.aggregate.windows.of_rows import RowWindows
from vsc.runtime.operators.columns.flow import Flow, stacked, taken
from vsc.runtime.operators.columns.moments import turns
from vsc.runtime.operators.new_keys import NewKeys, keys_of_changes
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.keys import KeyCodec

__all__ = ["OPERATOR"]


class _GroupChanges(Step):
    """Takes the changes of a table, with the rows before them."""

    def __init__(self, site: Site, operation: GroupChanges) -> None:
        self._site, self._versioned, self._complete = site, operation.versioned, operation.complete
        self._group = site.evaluation(operation.group)
        self._columns = travelling(site.inputs[0], operation)
        self._window = None if operation.window is None else RowWindows(site, operation.window)
        self._steady = operation.steady
        self._keys = KeyCodec([item.expr.type for item in operation.group])

    def process(self, flow: Flow) -> Flow:
        """One record for a change within a group; two for a change between groups, the old group's first."""
        flow = self._site.newest(flow, self._versioned)
        taken_back, added = keys_of_changes(self._site, flow, self._group, nulls=False)
        same = taken_back.same(added, self._keys)
        if self._window is not None:
            return self._in_windows(self._window, flow, taken_back, added, same)
        before = flow.time if flow.old is None or not self._steady else flow.old.time
        same &= before == flow.time
        both, leaving = np.flatnonzero(same), np.flatnonzero(taken_back.there & ~same)
        joining = np.flatnonzero(added.there & ~same)
        rows = np.concatenate([leaving, both, joining])
        order = np.argsort(rows, kind="stable")
        old = np.concatenate([leaving, both, np.full(len(joining), -1)])[order]
        new = np.concatenate([np.full(len(leaving), -1), both, joining])[order]
        place = np.concatenate([leaving, len(flow) + both, len(flow) + joining])[order]
        rows = rows[order]
        found = self._sent(flow, taken_back, added, rows, (old, new), place)
        return replace(found, time=np.where(new < 0, before[rows], found.time)) if self._steady else found

    def _in_windows(self, windows: RowWindows, flow: Flow, taken_back: NewKeys, added: NewKeys, same: Mask) -> Flow:
        """The changes for each window of the rows: the old group's first, in the order of the windows."""
        row, number, old, new = windows.of(flow, taken_back.there, added.there)
        before = flow.time if flow.old is None else flow.old.time
        both = old & new & (same & (before == flow.time))[row]
        leaving, joining = np.flatnonzero(old & ~both), np.flatnonzero(new)
        pairs = np.concatenate([leaving, joining])
        order = np.lexsort((number[pairs], np.repeat([0, 1], [len(leaving), len(joining)]), row[pairs]))
        pairs, joins = pairs[order], order >= len(leaving)
        rows = row[pairs]
        sides = np.where(joins & ~both[pairs], -1, rows), np.where(joins, rows, -1)
        place = np.where(joins, len(flow) + rows, rows)
        found = self._sent(flow, taken_back, added, rows, sides, place, windows.bounds(number[pairs]))
        return replace(found, time=np.where(joins, flow.time[rows], before[rows]))

    def _sent(
        self, flow: Flow, before: NewKeys, after: NewKeys, rows: Int64s, sides: tuple[Int64s, Int64s], place: Int64s,
        bounds: tuple[pa.Array, ...] = (),
    ) -> Flow:  # fmt: skip
        """The records: `sides` are the places of the old and the new row, `place` is the place of the group,
        `bounds` are the bounds of the windows."""
        keys = (*taken(stacked(before.columns, after.columns), place), *bounds)
        old = flow.values if flow.old is None else flow.old.values
        tables: tuple[Sequence[pa.Array], ...] = ((*flow.keys, *old), flow.columns)
        travelled = [taken([tables[is_new][i]], sides[is_new])[0] for is_new, i in self._columns]
        values = (pa.array(sides[0] >= 0), pa.array(sides[1] >= 0), *travelled, *self._validity(flow, rows))
        at = self._site.give(flow.at.take(rows), turns(rows) - 1)
        there = np.ones(len(rows), dtype=np.bool_)
        return Flow(at, flow.key[rows], flow.space, flow.time[rows], there, keys, values)

    def _validity(self, flow: Flow, rows: Int64s) -> tuple[pa.Array, ...]:
        """The columns of `VALIDITY`, if the aggregate's history is complete."""
        if not self._complete:
            return ()
        assert flow.until is not None
        since = flow.time if flow.old is None else flow.old.time
        return pa.array(since[rows]), pa.array(flow.until[rows])


OPERATOR = Operator(_GroupChanges)
