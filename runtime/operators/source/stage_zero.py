"""Stage 0: turns rows of a source partition into records: checked, timed, ordered, and sent downstream.

Guarantees: a row without key, without usable event time or that could not be read is lost, and counted with its reason.
The others carry D12's order, for which the task keeps the running maximum of event time in the source partition. It
works on whole columns.

It does not read: a connector (or the test driver) passes the columns in.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Node, Plan, Schema, Source
from vsc.plan.types import TIMESTAMP
from vsc.runtime.errors import BadRowError
from vsc.runtime.expressions import true_rows
from vsc.runtime.metrics import BadRow, Dropped
from vsc.runtime.operators.columns.evaluation import Computed, Evaluation
from vsc.runtime.operators.columns.flow import Flow, blanked
from vsc.runtime.operators.columns.keyspace import KeySpaces
from vsc.runtime.operators.context import RunOptions, expression_error
from vsc.runtime.operators.dead_letters import Message
from vsc.runtime.operators.result import StageResult
from vsc.runtime.operators.source.event_times import EventTimes
from vsc.runtime.operators.source.losses import SourceLosses
from vsc.runtime.operators.source.rows import Broken, SourceRows
from vsc.runtime.operators.stage_nodes import StageNodes
from vsc.runtime.records import Int64s, Mask, Order
from vsc.runtime.state.kv import MemoryKV
from vsc.runtime.times import time_text

__all__ = ["SourceRows", "StageZero"]

_NO_BOUNDS: Mapping[str, int] = {}

_WHY = {
    Dropped.UNREADABLE: "cannot be read",
    Dropped.NULL_KEY: "has a null key column",
    Dropped.NULL_TIMESTAMP: "has no event time",
    Dropped.NEGATIVE_TIMESTAMP: "has a negative event time",
}


class StageZero:
    """Stage 0 of a plan: sources, and the stateless nodes after them. Keeps nothing between calls.

    `observe` names the nodes whose records the caller wants besides those that later stages read. `latest`: by source,
    the latest event time in ms that its rows may have; a source that is not in it has no bound.
    """

    def __init__(
        self,
        plan: Plan,
        options: RunOptions,
        observe: frozenset[str] = frozenset(),
        latest: Mapping[str, int] = _NO_BOUNDS,
    ) -> None:
        self._options, self._latest = options, latest
        self._sources = {node.name: node for node in plan.sources}
        self._nodes = StageNodes(plan, plan.stages[0], MemoryKV(), options.on_error, observe)

    def process(self, source: str, rows: SourceRows, clock: int | None = None) -> StageResult:
        """The records that `rows` of source node `source` cause.

        `clock` is the result's `clock` of the previous call for the same source partition and epoch, or None. Raises
        BadRowError or ExpressionError if the options do not say to drop such rows.
        """
        node, spaces = self._sources[source], KeySpaces()
        losses = SourceLosses(self._nodes.letters, node, rows)
        flow, order, seen = self._parsed(node, rows, clock, losses, spaces)
        if len(flow):
            clock = int(order.time[-1])
        result = self._nodes.process({source: flow}, spaces, (rows.origin,), order, losses)
        return StageResult(result.batches, result.metrics, clock, seen)

    # ------------------------------------------------------------------------------------------------- rows to records

    def _parsed(
        self, node: Node, rows: SourceRows, clock: int | None, losses: SourceLosses, spaces: KeySpaces
    ) -> tuple[Flow, Order, EventTimes | None]:
        """The records of source `node`, their order, and the times of its rows; the arguments are those of `process`.

        Nothing in stage 0 uses keys, so they get no numbers.
        """
        source = node.source
        declared = [c.name for c in source.columns]
        keys = [declared.index(c.name) for c in node.schema.key]
        if rows.unreadable is not None:
            rows = self._drop(rows, rows.unreadable, Dropped.UNREADABLE, losses)
        if any(rows.columns[i].null_count for i in keys):
            null = np.zeros(len(rows), dtype=np.bool_)
            for i in keys:
                null |= rows.columns[i].is_null().to_numpy(zero_copy_only=False)
            rows = self._drop(rows, null, Dropped.NULL_KEY, losses)
        rows, times = self._timed(node, source, rows, losses)
        seen = EventTimes.of(times)
        rows, times = self._bounded(node.name, rows, times, losses)
        rows, times, present = self._present(node, source, rows, times, losses)
        running: Int64s = np.maximum.accumulate(times)
        running = running if clock is None else np.maximum(running, clock)
        nothing = np.zeros((len(rows), 0), dtype=np.int64)
        order = Order(running, np.zeros(len(rows), dtype=np.int32), rows.offsets, nothing)
        values = [rows.columns[declared.index(c.name)] for c in node.schema.value]
        keyed = tuple(rows.columns[i] for i in keys)
        at, number = self._nodes.routes.enter(node.name, np.arange(len(rows))), np.zeros(len(rows), dtype=np.int64)
        flow = Flow(at, number, spaces.of(node.schema), times, present, keyed, blanked(values, present))
        return flow, order, seen

    def _timed(self, node: Node, source: Source, rows: SourceRows, losses: SourceLosses) -> tuple[SourceRows, Int64s]:
        """The rows that have an event time, and that time in ms."""
        if source.timestamp is None:
            if rows.record_time is None:
                raise ValueError(f"source '{node.name}' has no timestamp clause, and its rows no time of their own")
            times, null = rows.record_time, np.zeros(len(rows), dtype=np.bool_)
        else:
            own = np.zeros(len(rows), dtype=np.bool_)
            if rows.deleted is not None and rows.record_time is not None:
                own = rows.deleted
            schema = Schema((), source.columns)
            clock = np.zeros(len(rows), dtype=np.int64)  # the clause cannot read it
            computed = Evaluation(node.name, [source.timestamp], [schema]).where(rows.columns, clock, ~own)
            times, null = _milliseconds(computed.columns[0], source.timestamp.expr.type == TIMESTAMP)
            if rows.record_time is not None:
                times, null = np.where(own, rows.record_time, times), null & ~own
            if computed.failed:
                kept = self._kept(computed, rows, losses)
                rows, times, null = rows.filter(kept), times[kept], null[kept]
        rows, times = self._drop(rows, null, Dropped.NULL_TIMESTAMP, losses), times[~null]
        negative = times < 0
        return self._drop(rows, negative, Dropped.NEGATIVE_TIMESTAMP, losses, times), times[~negative]

    def _present(
        self, node: Node, source: Source, rows: SourceRows, times: Int64s, losses: SourceLosses
    ) -> tuple[SourceRows, Int64s, Mask]:
        """The rows, their times, and which of them have a value."""
        present = np.ones(len(rows), dtype=np.bool_) if rows.deleted is None else ~rows.deleted
        if source.delete_when is None:
            return rows, times, present
        schema = Schema((), source.columns)
        computed = Evaluation(node.name, [source.delete_when], [schema]).where(rows.columns, times, present)
        present = present & ~true_rows(computed.columns[0])
        if computed.failed:
            kept = self._kept(computed, rows, losses)
            rows, times, present = rows.filter(kept), times[kept], present[kept]
        return rows, times, present

    def _kept(self, computed: Computed, rows: SourceRows, losses: SourceLosses) -> Mask:
        """Which rows are left: those on which a clause fails are counted or raise ExpressionError, as options say."""
        failed = computed.failed
        if failed and self._options.on_error == "fail":
            row, failure = next(iter(failed.items()))
            raise expression_error(failure, rows.origin, int(rows.offsets[row]))
        bad = np.zeros(len(rows), dtype=np.bool_)
        bad[list(failed)] = True
        losses.lose(Dropped.EXPRESSION_FAILED, rows, bad, lambda row: failed[row].told)
        return ~bad

    def _bounded(self, name: str, rows: SourceRows, times: Int64s, losses: SourceLosses) -> tuple[SourceRows, Int64s]:
        """The rows whose time is not too far in the future, and their times."""
        latest = self._latest.get(name)
        if latest is None or not len(times) or int(times.max()) <= latest:
            return rows, times
        ahead, bound = times > latest, time_text(latest)
        why = lambda row: f"has the event time {time_text(int(times[row]))}, later than {bound}"  # noqa: E731
        return self._drop(rows, ahead, Dropped.IN_THE_FUTURE, losses, times, why), times[~ahead]

    def _drop(
        self,
        rows: SourceRows,
        bad: Mask,
        reason: Dropped,
        losses: SourceLosses,
        times: Int64s | None = None,
        why: Message | None = None,
    ) -> SourceRows:
        """Drops the `bad` rows as lost, or raises BadRowError for the first one, as the options say."""
        if not bad.any():
            return rows
        why = why or _why(reason, rows.broken if reason is Dropped.UNREADABLE else None)
        place = int(bad.argmax())
        first = BadRow(rows.origin.part, int(rows.offsets[place]), why(place))
        if self._options.on_bad_row == "fail":
            raise BadRowError(
                f"source '{rows.origin.source}': {first} ({reason.value})",
                "fix the row, or run with --on-bad-row drop",
            )
        losses.lose(reason, rows, bad, why, times)
        losses.metrics.example(rows.origin.source, reason, first)
        return rows.filter(~bad)


def _why(reason: Dropped, broken: Broken | None) -> Message:
    """What is wrong with a row."""
    if broken is None:
        return lambda row: _WHY[reason]
    return lambda row: _WHY[reason] if (found := broken(row)[0]) is None else f"{_WHY[reason]}: {found}"


def _milliseconds(column: pa.Array, is_timestamp: bool) -> tuple[Int64s, Mask]:
    """Event times in ms (a timestamp is floored), and where the time is missing."""
    null: Mask = column.is_null().to_numpy(zero_copy_only=False)
    numbers = column.view(pa.int64()) if is_timestamp else column.cast(pa.int64())
    times: Int64s = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    return (np.floor_divide(times, 1000) if is_timestamp else times), null
