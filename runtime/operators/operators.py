"""The operators on whole columns: each takes the flow of its input and gives its own.

`tests/oracle/records` has the same for one record, and says more. Nothing here writes state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.nodes import Explode, Filter, Map, Node, Plan, Rekey, StreamGlobalJoin, StreamTableJoin
from vsc.runtime.metrics import RETENTION_NEEDED, Dropped, Group, Metrics
from vsc.runtime.operators.columns.evaluation import Evaluation, Side
from vsc.runtime.operators.columns.failures import Failures
from vsc.runtime.operators.columns.flow import Flow, Old, blanked, chosen, taken
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.columns.moments import Give, turns
from vsc.runtime.operators.layout import owner
from vsc.runtime.operators.places import element_place, kept_columns
from vsc.runtime.operators.tables.lookups import Lookup, TableRows
from vsc.runtime.operators.tables.store import MISSED, Reasons, TableColumns
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.values import arrow_type

__all__ = [
    "ExplodeColumns",
    "JoinColumns",
    "RekeyColumns",
    "StreamFilterColumns",
    "StreamMapColumns",
    "TableColumnsOperator",
    "count",
    "null_rows",
]


def count(metrics: Metrics, node: str, reason: Dropped, bad: Mask) -> None:
    """Counts the records where `bad` is true as dropped."""
    metrics.count(owner(node), Group.DROPPED_RECORDS, reason, int(np.count_nonzero(bad)))


def null_rows(columns: Sequence[pa.Array], rows: int) -> Mask:
    """Where one of the columns is null."""
    null = np.zeros(rows, dtype=np.bool_)
    for column in columns:
        if column.null_count:
            null |= column.is_null().to_numpy(zero_copy_only=False)
    return null


class StreamFilterColumns:
    """`filter` of a stream."""

    def __init__(self, plan: Plan, node: Node, operation: Filter, failures: Failures) -> None:
        self._holds = Evaluation(node.name, [operation.predicate], [plan.node(node.inputs[0]).schema])
        self._failures = failures

    def process(self, flow: Flow) -> Flow:
        """Keeps the records for which the predicate is true; in one without value the value columns are null."""
        true, failed = self._holds.true(flow.columns, flow.time, np.ones(len(flow), dtype=np.bool_))
        return flow.select(self._failures.kept(flow.at, failed) & true)


class StreamMapColumns:
    """`map` of a stream."""

    def __init__(self, plan: Plan, node: Node, operation: Map, failures: Failures) -> None:
        self._items = Evaluation(node.name, operation.items, [plan.node(node.inputs[0]).schema])
        self._failures = failures

    def process(self, flow: Flow) -> Flow:
        """Computes the value columns; a record without value stays one."""
        found = self._items.where(flow.columns, flow.time, flow.present)
        return flow.with_rows(flow.present, found.columns).select(self._failures.kept(flow.at, found.failed))


class ExplodeColumns:
    """`explode`: one record for each element of an array."""

    def __init__(self, plan: Plan, node: Node, operation: Explode, give: Give, failures: Failures) -> None:
        before = plan.node(node.inputs[0]).schema
        self._name, self._give, self._failures = node.name, give, failures
        self._array = Evaluation(node.name, [operation.item], [before])
        self._place = element_place(before, operation.item.name)

    def process(self, flow: Flow) -> Flow:
        """A null or an empty array gives no record; a record without value is dropped and counted."""
        count(self._failures.metrics, self._name, Dropped.NO_VALUE, ~flow.present)
        flow = flow.select(flow.present)
        found = self._array.over(flow)
        kept = self._failures.kept(flow.at, found.failed)
        flow, (arrays,) = flow.select(kept), chosen(found.columns, kept)
        causes = pc.list_parent_indices(arrays).to_numpy(zero_copy_only=False).astype(np.int64)
        many, keys = taken(flow.values, causes), taken(flow.keys, causes)
        values = (*many[: self._place], pc.list_flatten(arrays), *many[self._place + 1 :])
        at, there = self._give(flow.at.take(causes), turns(causes)), np.ones(len(causes), dtype=np.bool_)
        return Flow(at, flow.key[causes], flow.space, flow.time[causes], there, keys, values)


class RekeyColumns:
    """`rekey`: what it gives leaves the stage."""

    def __init__(self, plan: Plan, node: Node, operation: Rekey, failures: Failures) -> None:
        before = plan.node(node.inputs[0]).schema
        self._name, self._failures, self._metrics = node.name, failures, failures.metrics
        self._items = Evaluation(node.name, operation.items, [before])
        self._kept = kept_columns(before, node.schema)

    def process(self, flow: Flow) -> Flow:
        """Drops and counts records without value and those with a null in their new key."""
        count(self._metrics, self._name, Dropped.NO_VALUE, ~flow.present)
        flow = flow.select(flow.present)
        found = self._items.over(flow)
        kept = self._failures.kept(flow.at, found.failed)
        null = null_rows(found.columns, len(flow))
        count(self._metrics, self._name, Dropped.NULL_JOIN_KEY, null & kept)
        columns = flow.columns
        return replace(flow, keys=found.columns, values=tuple(columns[i] for i in self._kept)).select(kept & ~null)


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
    failures: Failures

    def process(self, flow: Flow) -> Flow:
        """The changes of this table that those of its input (or a stream's records) give."""
        found = self._apply(flow, flow.present, flow.values)
        kept = self.failures.kept(flow.at, found.failed)
        flow, found = flow.select(kept), found.select(kept)
        present = found.present
        changed = flow.with_rows(present, found.values)
        if self.store is None:
            old = self._old(flow) if self.old or self.dedupe else None
            changed = replace(changed, old=old)
            return changed.select(self._sent_on(present, old)) if self.dedupe else changed
        if self.dedupe:
            changed = changed.select(self.store.needed(changed))
        accepted = self.store.put(changed)
        changed = replace(changed, old=None, latest=self.store.latest(changed) if self.latest else None)
        if self.old or self.dedupe:
            changed = replace(changed, old=self.store.before(changed))
        count(self.failures.metrics, self.name, Dropped.EXPIRED, ~accepted)
        return changed.select(accepted & self._sent_on(changed.present, changed.old) if self.dedupe else accepted)

    def _apply(self, flow: Flow, present: Mask, values: tuple[pa.Array, ...]) -> TableRows:
        if self.rows is not None:
            found = self.rows.where(flow.keys + values, flow.time, present)
            return TableRows.of(present, flow.time, found.columns, found.failed)
        if self.predicate is None:
            return TableRows.of(present, flow.time, values)
        true, failed = self.predicate.true(flow.keys + values, flow.time, present)
        kept = present & ~true if self.deletes else true
        return TableRows.of(kept, flow.time, blanked(values, kept), failed)

    def _old(self, flow: Flow) -> Old | None:
        """What this table's function makes of the rows before the changes."""
        if flow.old is None:
            return None
        found = self._apply(flow, flow.old.present, flow.old.values)
        present = found.present.copy()
        present[list(found.failed)] = False  # it failed, and was dealt with, when it was the new row
        return Old(present, found.values)

    def _sent_on(self, present: Mask, old: Old | None) -> Mask:
        return present if old is None else present | old.present


class JoinColumns:
    """Stream-table join without grace, also with a global table.

    `look_up` looks into the table, `space` holds its keys. The key of a global table is computed by the join's `on`.
    """

    def __init__(
        self,
        plan: Plan,
        node: Node,
        operation: StreamTableJoin | StreamGlobalJoin,
        look_up: Lookup,
        space: KeySpace,
        failures: Failures,
    ) -> None:
        stream, table = (plan.node(name) for name in node.inputs)
        self._name, self._left, self._look_up, self._space = node.name, operation.left, look_up, space
        self._failures, self._metrics = failures, failures.metrics
        self._table = table.schema
        self._items = Evaluation(node.name, operation.items, [stream.schema, table.schema])
        self._on: Evaluation | None = None
        if isinstance(operation, StreamGlobalJoin):
            self._on = Evaluation(node.name, operation.on, [stream.schema])

    def process(self, flow: Flow) -> Flow:
        """The results: with the records' own keys and times."""
        count(self._metrics, self._name, Dropped.NO_VALUE, ~flow.present)
        flow = flow.select(flow.present)
        if self._on is None:
            return self._joined(flow, flow)
        found = self._on.over(flow)
        kept = self._failures.kept(flow.at, found.failed)
        null = null_rows(found.columns, len(flow)) & kept
        there = kept & ~null
        keys, asking = chosen(found.columns, there), flow.select(there)
        joined = self._joined(asking, replace(asking, key=self._space.columns(keys, len(asking)), keys=keys))
        if not null.any():
            return joined
        if not self._left:
            count(self._metrics, self._name, Dropped.NULL_JOIN_KEY, null)
            return joined
        return Flow.merged([joined, self._alone(flow.select(null), chosen(found.columns, null))])

    def _joined(self, flow: Flow, asking: Flow) -> Flow:
        """The results of records; `asking` are the same with the key that is looked up."""
        rows = self._look_up(asking)
        kept = self._failures.kept(flow.at, rows.failed)
        self._count(rows.missed[kept], rows.needed)
        if not self._left:
            kept &= rows.present
        flow, rows = flow.select(kept), rows.select(kept)
        return self._made(flow, chosen(asking.keys, kept), rows.values, rows.time, rows.present)

    def _alone(self, flow: Flow, keys: tuple[pa.Array, ...]) -> Flow:
        """The results of records that have no partner, since there is no key."""
        values = tuple(pa.nulls(len(flow), arrow_type(c.type)) for c in self._table.value)
        return self._made(flow, keys, values, flow.time, np.zeros(len(flow), dtype=np.bool_))

    def _made(
        self, flow: Flow, keys: tuple[pa.Array, ...], values: tuple[pa.Array, ...], valid_from: Int64s, found: Mask
    ) -> Flow:
        """The results of records; `keys` and `values` are the partners', where one was `found`."""
        stream, table = self._items.wanted
        width, columns = len(self._table.key), flow.columns
        shown = {i: keys[i] for i in table if i < width}
        if shown and not found.all():
            shown = dict(zip(shown, blanked(list(shown.values()), found), strict=True))
        right = [shown[i] if i < width else values[i - width] for i in table]
        absent = None if found.all() else ~found
        results = self._items.run(Side([columns[i] for i in stream], flow.time), Side(right, valid_from, absent))
        return flow.with_rows(flow.present, results.columns).select(self._failures.kept(flow.at, results.failed))

    def _count(self, missed: Reasons, needed: int) -> None:
        counts = np.bincount(missed, minlength=len(MISSED)).tolist()
        for reason, n in zip(MISSED[1:], counts[1:], strict=True):
            assert reason is not None
            self._metrics.count(self._name, Group.MISSED_LOOKUPS, reason, n)
        if needed >= 0:
            self._metrics.peak(self._name, RETENTION_NEEDED, needed)
