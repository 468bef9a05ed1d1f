"""Primary-key join of two tables on whole columns: what each side's changes give, then the join's own store.

`tests/oracle/records` has the same for one record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from vsc.plan.nodes import TableTableJoin
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.columns.failures import Failures
from vsc.runtime.operators.columns.flow import Flow, Old
from vsc.runtime.operators.operators import count
from vsc.runtime.operators.tables.lookups import Lookup, Pairs, TableRows
from vsc.runtime.operators.tables.store import TableColumns
from vsc.runtime.records import Mask

__all__ = ["TableJoinColumns"]


@dataclass(frozen=True, slots=True)
class TableJoinColumns:
    """`left` and `right` look into the sides. `store`: the join's own, if it has one.

    `old` and `latest`: whether somebody asks for the result before a change, and whether a change is the newest one of
    the store (a join without one is never versioned, so nobody does).
    """

    name: str
    operation: TableTableJoin
    pairs: Pairs
    left: Lookup
    right: Lookup
    store: TableColumns | None
    old: bool
    latest: bool
    failures: Failures

    def process(self, left: Flow | None, right: Flow | None) -> Flow:
        """The changes of the result that those of the sides give; at least one of them has some."""
        parts = [self._side(flow, flow is left) for flow in (left, right) if flow is not None]
        changed = Flow.merged(parts)
        return changed if self.store is None else self._kept(self.store, changed)

    def _kept(self, store: TableColumns, changed: Flow) -> Flow:
        accepted = store.put(changed)
        count(self.failures.metrics, self.name, Dropped.EXPIRED, ~accepted)
        return replace(changed, latest=store.latest(changed) if self.latest else None).select(accepted)

    def _side(self, flow: Flow, is_left: bool) -> Flow:
        operation = self.operation
        versioned = operation.left_versioned if is_left else operation.right_versioned
        if versioned and flow.latest is not None:
            count(self.failures.metrics, self.name, Dropped.OUT_OF_ORDER, ~flow.latest)
            flow = flow.select(flow.latest)
        other = self.right(flow) if is_left else self.left(flow)
        kept = self.failures.kept(flow.at, other.failed)
        sends = kept & self._sends(flow, other, is_left)
        flow, other = flow.select(sends), other.select(sends)
        result = self._pair(flow, TableRows.of(flow.present, flow.time, flow.values), other, is_left)
        kept = self.failures.kept(flow.at, result.failed)
        flow, other, result = flow.select(kept), other.select(kept), result.select(kept)
        old = None
        if self.old:
            before = flow.old
            own = (
                TableRows.none_like(flow.values, flow.time)
                if before is None
                else TableRows.of(before.present, flow.time, before.values)
            )
            rows = self._pair(flow, own, other, is_left)
            old = Old(rows.present, rows.values)
        time = np.where(other.present, np.maximum(flow.time, other.time), flow.time)
        return replace(flow, time=time, present=result.present, values=result.values, old=old, latest=None)

    def _pair(self, flow: Flow, own: TableRows, other: TableRows, is_left: bool) -> TableRows:
        return self.pairs.rows(flow.keys, own, other) if is_left else self.pairs.rows(flow.keys, other, own)

    def _sends(self, flow: Flow, other: TableRows, is_left: bool) -> Mask:
        """Where a change gives anything at all; a tombstone after which and before which there is nothing does not."""
        mode = self.operation.mode
        if mode == "inner" or (mode == "left" and not is_left):
            return other.present
        known = other.present | flow.present
        return known if flow.old is None else known | flow.old.present
