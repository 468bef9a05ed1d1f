"""Stage 0 on rows of which Spark SQL has computed the prefix: what Python has still to do with them.

Guarantees: what `SourceTask.process` gives for the rows as they were read. No expression of the prefix is evaluated
here, but for rows in doubt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Plan, Source
from vsc.runtime.metrics import Dropped, Group, Metrics
from vsc.runtime.operators.layout import owner
from vsc.runtime.operators.source_task import drop_bad_rows, running_maximum
from vsc.runtime.operators.task import RunOptions, SourceRows, SourceTask, StageResult
from vsc.runtime.records import Batch, Int64s, Mask, Order, Origin
from vsc.runtime.spark.sql_prefix import DOUBT, PLACE, REASONS, Given, Prefix, source_column
from vsc.runtime.values import arrow_type

__all__ = ["PrefixRows", "typed"]

Outputs = tuple[tuple[str, Batch], ...]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one source partition, as `prefixed` made them; `places` is their column `PLACE`."""

    columns: pa.RecordBatch
    origin: Origin
    offsets: Int64s
    places: Int64s

    def where(self, mask: Mask) -> _Rows:
        if mask.all():
            return self
        return _Rows(self.columns.filter(pa.array(mask)), self.origin, self.offsets[mask], self.places[mask])

    def mask(self, name: str) -> Mask:
        found: Mask = self.columns.column(name).to_numpy(zero_copy_only=False)
        return found


class PrefixRows:
    """Makes records of the rows of source `source`; keeps nothing between calls. `whole`: stage 0 without a prefix."""

    def __init__(
        self,
        plan: Plan,
        source: str,
        options: RunOptions,
        prefix: Prefix,
        observe: frozenset[str],
        whole: SourceTask,
    ) -> None:
        operation = plan.node(source).operation
        assert isinstance(operation, Source)
        self._source, self._operation = source, operation
        self._prefix, self._options = prefix, options
        self._schemas = {node.name: node.schema for node in plan.nodes}
        self._rest = SourceTask(plan, options, observe, prefix.nodes)
        self._whole = whole

    def process(self, columns: pa.RecordBatch, origin: Origin, offsets: Int64s, clock: int | None) -> StageResult:
        """As `SourceTask.process`."""
        metrics = Metrics()
        rows = _Rows(columns, origin, offsets, columns.column(PLACE).to_numpy())
        doubtful = self._doubtful(rows)
        usable = self._usable(rows.where(~doubtful), metrics)
        read = self._read(rows.where(doubtful), metrics) if doubtful.any() else None
        given, clock = _ordered(usable, read, clock)
        found = self._given(usable, given[0], metrics)
        if read is not None:
            read = replace(read, order=replace(read.order, time=given[1]))
            found = _together(found, self._whole.onward(self._source, {self._source: read}, metrics))
        return StageResult(found, metrics, clock)

    def _doubtful(self, rows: _Rows) -> Mask:
        if self._prefix.carried is None:
            return np.zeros(len(rows.offsets), dtype=np.bool_)
        return rows.mask(DOUBT)

    def _usable(self, rows: _Rows, metrics: Metrics) -> _Rows:
        """The rows that have a key and an event time; the others are counted, or stop the run."""
        usable: Mask = rows.places >= 0
        if usable.all():
            return rows
        for number, reason in enumerate(REASONS):
            bad = rows.offsets[rows.places == -1 - number]
            drop_bad_rows(rows.origin, bad, reason, self._options, metrics)
        return rows.where(usable)

    def _read(self, rows: _Rows, metrics: Metrics) -> Batch:
        """The source's records of rows in doubt, as if nothing had been computed of them."""
        columns = []
        for place, declared in enumerate(self._operation.columns):
            type_ = arrow_type(declared.type)
            carried = place in (self._prefix.carried or ())
            column = rows.columns.column(source_column(place)) if carried else pa.nulls(len(rows.offsets), type_)
            columns.append(typed(column, type_))
        own = rows.places if self._operation.timestamp is None else None
        source = SourceRows(rows.origin, tuple(columns), rows.offsets, own)
        return self._whole.parsed(self._source, source, None, metrics)

    def _given(self, rows: _Rows, time: Int64s, metrics: Metrics) -> Outputs:
        """What is handed out of rows of which the prefix is computed; `time` is their place in D12's order."""
        n = len(rows.offsets)
        for name, kept, before in self._prefix.re_keyed:
            count = (n if before is None else np.count_nonzero(rows.mask(before))) - np.count_nonzero(rows.mask(kept))
            metrics.count(owner(name), Group.DROPPED_RECORDS, Dropped.NULL_JOIN_KEY, int(count))
        order = Order(time, np.zeros(n, dtype=np.int32), rows.offsets, np.zeros((n, 0), dtype=np.int64))
        done = {given.node: self._records(given, rows, order) for given in self._prefix.given}
        return self._rest.onward(self._source, done, metrics)

    def _records(self, given: Given, rows: _Rows, order: Order) -> Batch:
        schema, times = self._schemas[given.node], rows.places
        columns = [rows.columns.column(name) for name in given.columns]
        if given.kept is not None:
            kept, mask = rows.columns.column(given.kept), rows.mask(given.kept)
            columns, order, times = [column.filter(kept) for column in columns], order.take(mask), times[mask]
        types = [arrow_type(c.type) for c in (*schema.key, *schema.value)]
        exact = tuple(typed(column, type_) for column, type_ in zip(columns, types, strict=True))
        keys, present = len(schema.key), np.ones(len(times), dtype=np.bool_)
        return Batch(schema, (rows.origin,), order, times, present, exact[:keys], exact[keys:])


def _ordered(rows: _Rows, read: Batch | None, clock: int | None) -> tuple[tuple[Int64s, Int64s], int | None]:
    """The highest event time so far at each of `rows` and of the records `read`, and at the end of them all."""
    n, times = len(rows.offsets), rows.places
    sequence: Int64s | slice = slice(None)
    if read is not None:
        times = np.concatenate([times, read.timestamps])
        sequence = np.argsort(np.concatenate([rows.offsets, read.order.offset]), kind="stable")
    if not len(times):
        return (times, times), clock
    running, ordered = np.empty_like(times), running_maximum(times[sequence], clock)
    running[sequence] = ordered
    return (running[:n], running[n:]), int(ordered[-1])


def _together(some: Outputs, others: Outputs) -> Outputs:
    """The records of both, which are of the same nodes, in the order of their rows."""
    merged = []
    for (name, one), (_, other) in zip(some, others, strict=True):
        both = Batch.concat([one, other])
        merged.append((name, both.take(np.argsort(both.order.offset, kind="stable"))))
    return tuple(merged)


def typed(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The column as vsc's type for it: Spark's may differ in the names inside of it."""
    return column if column.type == wanted else column.cast(wanted)
