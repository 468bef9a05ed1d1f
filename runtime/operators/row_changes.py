"""First step of a corrected join of a table: its changes become records under the key by which rows are looked up.

`tests/oracle/records` has the same rules for one record, in a form that is easy to read.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import ROW_CHANGE, RowChanges
from vsc.runtime.expressions import null_rows
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.columns.flow import Flow, stacked, taken
from vsc.runtime.operators.columns.moments import turns
from vsc.runtime.operators.new_keys import NewKeys
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.records import Mask
from vsc.runtime.state.keys import KeyCodec

__all__ = ["OPERATOR"]


class _RowChanges(Step):
    """Takes the changes of a table, with the rows before them."""

    def __init__(self, site: Site, operation: RowChanges) -> None:
        self._site, self._left, self._versioned = site, operation.left, operation.versioned
        self._on, self._keys = site.evaluation(operation.items), KeyCodec([i.expr.type for i in operation.items])
        names = [c.name for c in (*site.inputs[0].key, *site.inputs[0].value)]
        self._kept = [names.index(c.name) for c in site.node.schema.value[len(ROW_CHANGE) :]]

    def process(self, flow: Flow) -> Flow:
        """One record for a row that stays where it is; two for one that goes elsewhere, the old place first."""
        flow = self._site.newest(flow, self._versioned)
        added = self._added(flow)
        before = self._before(flow, added)
        time = flow.time if flow.old is None else flow.old.time
        same = before.same(added, self._keys) & (time == flow.time)
        leaving, coming = np.flatnonzero(before.there & ~same), np.flatnonzero(added.there)
        rows = np.concatenate([leaving, coming])
        order = np.argsort(rows, kind="stable")
        rows, new = rows[order], order >= len(leaving)
        place = np.where(new, len(flow) + rows, rows)
        old = flow.values if flow.old is None else flow.old.values
        columns = stacked((*flow.keys, *old), flow.columns)
        values = (pa.array(~new | same[rows]), pa.array(new), *taken([columns[i] for i in self._kept], place))
        keys = taken(stacked(before.columns, added.columns), place)
        at = self._site.give(flow.at.take(rows), turns(rows) - 1)
        there = np.ones(len(rows), dtype=np.bool_)
        return Flow(at, flow.key[rows], flow.space, np.where(new, flow.time[rows], time[rows]), there, keys, values)

    def _added(self, flow: Flow) -> NewKeys:
        site, found = self._site, self._on.where(flow.columns, flow.time, flow.present)
        kept = site.kept(flow, found.failed) & flow.present
        null = self._null(found.columns, len(flow)) & kept
        site.lose(Dropped.NULL_JOIN_KEY, flow, null)
        return NewKeys(kept & ~null, found.columns)

    def _before(self, flow: Flow, added: NewKeys) -> NewKeys:
        """The keys of the rows before: failures and nulls were handled when these were the new rows."""
        if flow.old is None:
            return added.nowhere()
        old = flow.old
        found = self._on.where((*flow.keys, *old.values), old.time, old.present)
        kept = old.present.copy()
        kept[list(found.failed)] = False
        return NewKeys(kept & ~self._null(found.columns, len(flow)), found.columns)

    def _null(self, keys: tuple[pa.Array, ...], count: int) -> Mask:
        """Which keys find nothing, if that is a reason to leave their rows out."""
        return np.zeros(count, dtype=np.bool_) if self._left else null_rows(keys, count)


OPERATOR = Operator(_RowChanges)
