"""First step of a corrected join of a table: its changes become records under the key by which rows are looked up.

`tests/oracle/records` has the same rules for one record, in a form that is easy to read.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import ROW_CHANGE, RowChanges
from vsc.runtime.operators.columns.flow import Flow, stacked, taken
from vsc.runtime.operators.columns.moments import turns
from vsc.runtime.operators.new_keys import keys_of_changes
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
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
        before, added = keys_of_changes(self._site, flow, self._on, nulls=self._left)
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


OPERATOR = Operator(_RowChanges)
