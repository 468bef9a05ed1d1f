"""First step of an aggregate over a table on whole columns.

`tests/oracle/records` has the same rules for one record, written to be read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import GroupChanges
from vsc.runtime.expressions.kernel_tools import null_rows
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.aggregate.group_changes_row import travelling
from vsc.runtime.operators.columns.flow import Flow, taken
from vsc.runtime.operators.counting import count
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.keys import KeyCodec

__all__ = ["OPERATOR"]

Groups = tuple[Mask, tuple[pa.Array, ...]]
"""Where a row belongs to a group, and the groups' key columns."""


class _GroupChanges(Step):
    """Takes the changes of a table, with the rows before them."""

    def __init__(self, site: Site, operation: GroupChanges) -> None:
        self._name, self._versioned = site.name, operation.versioned
        self._give, self._failures = site.give, site.failures
        self._group = site.evaluation(operation.group)
        self._columns = travelling(site.inputs[0], site.node.schema)
        self._keys = KeyCodec([c.type for c in site.node.schema.key])

    def process(self, flow: Flow) -> Flow:
        """One record for a change within a group; for one from a group to another two, the old group's first."""
        if self._versioned and flow.latest is not None:
            count(self._failures.metrics, self._name, Dropped.OUT_OF_ORDER, ~flow.latest)
            flow = flow.select(flow.latest)
        added = self._added(flow)
        taken_back = self._taken(flow, added)
        same = self._same(taken_back, added)
        both, leaving = np.flatnonzero(same), np.flatnonzero(taken_back[0] & ~same)
        joining = np.flatnonzero(added[0] & ~same)
        rows = np.concatenate([leaving, both, joining])
        order = np.argsort(rows, kind="stable")
        old = np.concatenate([leaving, both, np.full(len(joining), -1)])[order]
        new = np.concatenate([np.full(len(leaving), -1), both, joining])[order]
        place = np.concatenate([leaving, len(flow) + both, len(flow) + joining])[order]
        return self._sent(flow, taken_back, added, rows[order], (old, new), place)

    def _added(self, flow: Flow) -> Groups:
        found = self._group.where(flow.columns, flow.time, flow.present)
        kept = self._failures.kept(flow.at, found.failed) & flow.present
        null = null_rows(found.columns, len(flow)) & kept
        count(self._failures.metrics, self._name, Dropped.NULL_JOIN_KEY, null)
        return kept & ~null, found.columns

    def _taken(self, flow: Flow, added: Groups) -> Groups:
        """The groups of the rows before: what failed, or was null, was dealt with when it was the new row."""
        if flow.old is None:
            return np.zeros(len(flow), dtype=np.bool_), added[1]
        found = self._group.where((*flow.keys, *flow.old.values), flow.time, flow.old.present)
        return flow.old.present & ~null_rows(found.columns, len(flow)), found.columns

    def _same(self, one: Groups, other: Groups) -> Mask:
        """Where both are there, and the same."""
        both = one[0] & other[0]
        same = np.zeros(len(both), dtype=np.bool_)
        if both.any():
            rows = pa.array(both)
            pairs = zip(one[1], other[1], strict=True)
            _, numbers = self._keys.encode_columns(
                [pa.concat_arrays([a.filter(rows), b.filter(rows)]) for a, b in pairs]
            )
            half = len(numbers) // 2
            same[both] = numbers[:half] == numbers[half:]
        return same

    def _sent(
        self, flow: Flow, before: Groups, after: Groups, rows: Int64s, sides: tuple[Int64s, Int64s], place: Int64s
    ) -> Flow:
        """The records: `sides` are the places of the old and of the new row, `place` that of the group."""
        keys = taken([pa.concat_arrays([a, b]) for a, b in zip(before[1], after[1], strict=True)], place)
        old = flow.values if flow.old is None else flow.old.values
        tables: tuple[Sequence[pa.Array], ...] = ((*flow.keys, *old), flow.columns)
        travelled = [taken([tables[is_new][i]], sides[is_new])[0] for is_new, i in self._columns]
        values = (pa.array(sides[0] >= 0), pa.array(sides[1] >= 0), *travelled)
        again = np.append(False, rows[1:] == rows[:-1]) if len(rows) else np.zeros(0, dtype=np.bool_)
        at = self._give(flow.at.take(rows), again.astype(np.int64))
        there = np.ones(len(rows), dtype=np.bool_)
        return Flow(at, flow.key[rows], flow.space, flow.time[rows], there, keys, values)


OPERATOR = Operator(_GroupChanges)
