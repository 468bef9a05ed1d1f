"""The operators on whole columns: each takes the flow of its input and gives its own.

Same meaning as the record-by-record operators of the same names, which say more. Nothing here writes state or decides
what to do about an expression that fails: that raises `NotColumnar`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Filter, Map, Node, Plan, Rekey, StreamTableJoin
from vsc.runtime.metrics import RETENTION_NEEDED, Dropped, Group, Metrics
from vsc.runtime.operators.columnar.evaluation import Evaluation, Side
from vsc.runtime.operators.columnar.flow import Flow, Old, blanked, taken
from vsc.runtime.operators.columnar.lookups import Link
from vsc.runtime.operators.columnar.tables import MISSED, Partners, TableColumns
from vsc.runtime.operators.layout import owner
from vsc.runtime.operators.rekey import kept_columns
from vsc.runtime.records import Int64s, Mask

__all__ = ["JoinColumns", "RekeyColumns", "StreamFilterColumns", "StreamMapColumns", "TableColumnsOperator", "count"]


def count(metrics: Metrics, node: str, reason: Dropped, bad: Mask) -> None:
    """Counts the records where `bad` is true as dropped."""
    metrics.count(owner(node), Group.DROPPED_RECORDS, reason, int(np.count_nonzero(bad)))


class StreamFilterColumns:
    """`filter` of a stream."""

    def __init__(self, plan: Plan, node: Node, operation: Filter) -> None:
        self._holds = Evaluation([operation.predicate], [plan.node(node.inputs[0]).schema])

    def process(self, flow: Flow) -> Flow:
        """Keeps the records for which the predicate is true; in one without value the value columns are null."""
        return flow.select(self._holds.true(flow.columns, flow.time, np.ones(len(flow), dtype=np.bool_)))


class StreamMapColumns:
    """`map` of a stream."""

    def __init__(self, plan: Plan, node: Node, operation: Map) -> None:
        self._items = Evaluation(operation.items, [plan.node(node.inputs[0]).schema])

    def process(self, flow: Flow) -> Flow:
        """Computes the value columns; a record without value stays one."""
        return flow.with_rows(flow.present, self._items.where(flow.columns, flow.time, flow.present))


class RekeyColumns:
    """`rekey`: what it gives leaves the stage."""

    def __init__(self, plan: Plan, node: Node, operation: Rekey, metrics: Metrics) -> None:
        before = plan.node(node.inputs[0]).schema
        self._name, self._metrics = node.name, metrics
        self._items = Evaluation(operation.items, [before])
        self._kept = kept_columns(before, node.schema)

    def process(self, flow: Flow) -> Flow:
        """Drops and counts records without value and those with a null in their new key."""
        count(self._metrics, self._name, Dropped.NO_VALUE, ~flow.present)
        flow = flow.select(flow.present)
        keys = self._items.over(flow)
        null = np.zeros(len(flow), dtype=np.bool_)
        for column in keys:
            if column.null_count:
                null |= column.is_null().to_numpy(zero_copy_only=False)
        count(self._metrics, self._name, Dropped.NULL_JOIN_KEY, null)
        columns = flow.columns
        return replace(flow, keys=keys, values=tuple(columns[i] for i in self._kept)).select(~null)


@dataclass(frozen=True, slots=True)
class TableColumnsOperator:
    """Any operator that makes a table: its function, then its own store, if it has one.

    `rows` computes the changed rows, None leaves them (`materialize`, a source table); `predicate` makes rows
    tombstones where it is not true (`filter`), or where it is true with `deletes` (`to_table`). `dedupe` is D7's,
    `old` whether somebody asks for the rows before the changes, `latest` whether they are the newest.
    """

    name: str
    predicate: Evaluation | None
    deletes: bool
    rows: Evaluation | None
    store: TableColumns | None
    dedupe: bool
    old: bool
    latest: bool
    metrics: Metrics

    def process(self, flow: Flow) -> Flow:
        """The changes of this table that those of its input (or a stream's records) give."""
        present, values = self._apply(flow, flow.present, flow.values)
        changed = flow.with_rows(present, values)
        if self.store is None:
            old = self._old(flow) if self.old or self.dedupe else None
            changed = replace(changed, old=old)
            return changed.select(self._sent_on(present, old)) if self.dedupe else changed
        accepted = self.store.put(changed)
        changed = replace(changed, old=None, latest=self.store.latest(changed) if self.latest else None)
        if self.old or self.dedupe:
            changed = replace(changed, old=self.store.before(changed))
        count(self.metrics, self.name, Dropped.EXPIRED, ~accepted)
        return changed.select(accepted & self._sent_on(present, changed.old) if self.dedupe else accepted)

    def _apply(self, flow: Flow, present: Mask, values: tuple[pa.Array, ...]) -> tuple[Mask, tuple[pa.Array, ...]]:
        if self.rows is not None:
            return present, self.rows.where(flow.keys + values, flow.time, present)
        if self.predicate is None:
            return present, values
        true = self.predicate.true(flow.keys + values, flow.time, present)
        kept = present & ~true if self.deletes else true
        return kept, blanked(values, kept)

    def _old(self, flow: Flow) -> Old | None:
        """What this table's function makes of the rows before the changes."""
        if flow.old is None:
            return None
        return Old(*self._apply(flow, flow.old.present, flow.old.values))

    def _sent_on(self, present: Mask, old: Old | None) -> Mask:
        return present if old is None else present | old.present


class JoinColumns:
    """Stream-table join without grace. `chain`: the filters and maps from the store (exclusive) to the table."""

    def __init__(
        self,
        plan: Plan,
        node: Node,
        operation: StreamTableJoin,
        chain: list[Node],
        store: TableColumns,
        metrics: Metrics,
    ) -> None:
        stream, table = (plan.node(name) for name in node.inputs)
        self._name, self._operation, self._store, self._metrics = node.name, operation, store, metrics
        self._key_width = len(table.schema.key)
        self._items = Evaluation(operation.items, [stream.schema, table.schema])
        self._chain = [Link(plan, node) for node in chain]

    def process(self, flow: Flow) -> Flow:
        """The results: with the records' own keys and times."""
        count(self._metrics, self._name, Dropped.NO_VALUE, ~flow.present)
        flow = flow.select(flow.present)
        partners = self._store.look_up(flow, self._operation.as_of)
        missed = partners.missed
        if self._chain:
            values, missed = self._through_chain(flow, partners)
        self._count(missed, partners.needed)
        found = missed == 0
        position = partners.position
        if not self._operation.left and not found.all():
            flow, position = flow.select(found), position[found]
            partners = replace(partners, valid_from=partners.valid_from[found])
            if self._chain:
                values = taken(values, np.flatnonzero(found))
            found = found[found]
        if not self._chain:
            values = self._partner_values(partners, position)
        return flow.with_rows(flow.present, self._results(flow, values, partners.valid_from, found))

    def _partner_values(self, partners: Partners, position: Int64s) -> tuple[pa.Array, ...]:
        return partners.pool.take(position)

    def _through_chain(self, flow: Flow, partners: Partners) -> tuple[tuple[pa.Array, ...], np.ndarray]:
        """The joined table's rows made of the store's; a row that a filter refuses counts as a tombstone."""
        missed = partners.missed.copy()
        values = partners.pool.take(partners.position)
        tombstone = MISSED.index(next(m for m in MISSED if m is not None and m.value == "tombstone"))
        for link in self._chain:
            asked = missed == 0
            there, values = link.apply(flow.keys, values, partners.valid_from, asked)
            missed[asked & ~there] = tombstone
        return blanked(values, missed == 0), missed

    def _results(
        self, flow: Flow, values: tuple[pa.Array, ...], valid_from: Int64s, found: Mask
    ) -> tuple[pa.Array, ...]:
        stream, table = self._items.wanted
        columns = flow.columns
        keys = {i: flow.keys[i] for i in table if i < self._key_width}
        if keys and not found.all():
            keys = dict(zip(keys, blanked(list(keys.values()), found), strict=True))
        right = [keys[i] if i < self._key_width else values[i - self._key_width] for i in table]
        absent = None if found.all() else ~found
        return self._items.run(Side([columns[i] for i in stream], flow.time), Side(right, valid_from, absent))

    def _count(self, missed: np.ndarray, needed: int) -> None:
        counts = np.bincount(missed, minlength=len(MISSED)).tolist()
        for reason, n in zip(MISSED[1:], counts[1:], strict=True):
            assert reason is not None
            self._metrics.count(self._name, Group.MISSED_LOOKUPS, reason, n)
        if needed >= 0:
            self._metrics.peak(self._name, RETENTION_NEEDED, needed)
