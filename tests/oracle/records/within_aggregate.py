"""What came before each record, record by record: a left one is given the calls over the right ones that count for it.

A record first moves the clock, and what is due has come out before, at its own moment. A right one then is there. A
left one goes out at once if nothing waits, or if it comes too late to; otherwise it waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.oracle.records.aggregate.groups import Calls, Group, Member
from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row, items
from tests.oracle.records.order import rows_in_order
from tests.oracle.records.tables import Content
from vsc.plan.nodes import Node, Schema
from vsc.plan.operations import Aggregate, WithinAggregate
from vsc.runtime.metrics import GRACE_NEEDED, Dropped, Missed
from vsc.runtime.metrics import Group as Counted

__all__ = ["Within"]


class _Record(NamedTuple):
    """A record of a side."""

    time: int
    key: Row
    value: Row


class Within:
    """The join at `node`; `schemas` are those of its inputs."""

    def __init__(
        self,
        node: Node,
        operation: WithinAggregate,
        schemas: Sequence[Schema],
        context: Context,
        forward: RecordConsumer,
    ) -> None:
        self._node, self._name, self._operation = node.name, node.owner, operation
        self._right, self._of_itself = node.inputs[1], node.inputs[0] == node.inputs[1]
        self._calls = Calls(node, Aggregate("stream", schemas[1], operation.calls, (), None, False))
        self._items = items(node.owner, operation.items, [schemas[0], Schema((), operation.call_columns)])
        self._widths = [len(schema.value) for schema in schemas]
        self._order = rows_in_order([c.type for c in schemas[0].key])
        self._context, self._forward = context, forward
        self._rows: list[_Record] = []
        self._waiting: list[_Record] = []
        self._time = -1
        self._newest = -1

    def __len__(self) -> int:
        return len(self._waiting)

    def left(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a record of the left stream."""
        if (record := self._taken(key, value, time)) is None:
            return
        operation, metrics = self._operation, self._context.metrics
        if max(time - operation.before, 0) < self._time - operation.span:
            metrics.count(self._name, Counted.MISSED_LOOKUPS, Missed.OLDER_THAN_RETENTION)
        late = self._time - time - operation.after
        if operation.waits and late > operation.grace:
            metrics.count(self._name, Counted.MISSED_LOOKUPS, Missed.LATE)
            metrics.peak(self._name, GRACE_NEEDED, late)
        if operation.waits and late <= operation.grace:
            self._waiting.append(record)
        else:
            self._send(record, self._time - operation.span)

    def right(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a record of the right stream."""
        if (record := self._taken(key, value, time)) is None:
            return
        try:
            self._calls.args(key + record.value, time)
        except NodeFailure as failure:
            self._context.failed(failure)
            return
        self._newest = max(self._newest, time)
        self._note_late(time)
        if time >= self._time - self._operation.span:
            self._rows.append(record)

    def _note_late(self, time: int) -> None:
        """Notes a right record that comes when left ones for which it counts may be gone."""
        operation, clock = self._operation, self._context.clock
        if clock is None:
            return
        behind = clock.ahead_of(self._node) - time - operation.strictly_before
        passed = clock.soonest_ahead_of(self._node, self._right) - time
        late = behind > operation.grace if operation.waits else passed > 0
        counted = self._of_itself and operation.waits and self._time - time > operation.after + operation.grace
        if late and not counted and self._name not in self._context.repeated:
            self._context.metrics.late(self._name, 1)
            self._context.metrics.peak(self._name, GRACE_NEEDED, max(behind, 1))

    def _taken(self, key: Row, value: Row | None, time: int) -> _Record | None:
        if None in key or value is None:
            self._context.dropped(self._name, Dropped.NULL_JOIN_KEY if None in key else Dropped.NO_VALUE)
            return None
        self._time = self._context.stream_time_after(self._node, self._time, time)
        return _Record(time, key, value)

    def _send(self, record: _Record, limit: int | None) -> None:
        operation, time = self._operation, record.time
        last = time - 1 if operation.strictly_before else time + operation.after
        own = [one for one in self._rows if one.key == record.key and one.time <= last]
        own.sort(key=lambda one: one.time)  # stable: then in the order in which they came
        if limit is not None:
            own = [one for one in own if one.time >= limit]
        if not any(one.time >= time - operation.before for one in own):
            self._context.metrics.count(self._name, Counted.MISSED_LOOKUPS, Missed.NO_RECORD)
            if not operation.left:
                return
        try:
            results = tuple(
                self._calls.value(number, self._group(own, time - over)) for number, over in enumerate(operation.overs)
            )
            row = self._items(record.key + record.value, results, time, None)
        except NodeFailure as failure:
            self._context.failed(failure)
            return
        self._forward(record.key, row, time)

    def _group(self, rows: Sequence[_Record], first: int) -> Group:
        members = (
            Member(self._calls.args(one.key + one.value, one.time), one.time, place)
            for place, one in enumerate(rows) if one.time >= first
        )  # fmt: skip
        return Group(own=tuple(members))

    # ---------------------------------------------------------------------------------------------------- who waits

    def _due(self, record: _Record) -> int:
        return record.time + self._operation.after + self._operation.grace + 1

    def release(self, waiting: _Record) -> None:
        """Lets a record come out that has waited."""
        self._send(waiting, None)

    def take_all(self) -> list[_Record]:
        """Removes all that waits, in the order in which it would come out."""
        waiting, self._waiting = self._waiting, []
        return sorted(waiting, key=lambda one: (one.time, self._order(one.key)))

    def due(self) -> int | None:
        """When the first one comes out; None if nothing waits."""
        return min(map(self._due, self._waiting), default=None)

    def take_due(self) -> list[_Record]:
        """Removes all that comes out together with the first one."""
        first = self.due()
        due = [one for one in self._waiting if self._due(one) == first]
        self._waiting = [one for one in self._waiting if self._due(one) != first]
        return sorted(due, key=lambda one: self._order(one.key))

    def content(self) -> Content:
        """The rows that can be found, then those that wait: (key, columns of both sides, time, until when, side)."""
        operation = self._operation
        width = operation.before + operation.after + 1
        rows = [one for one in self._rows if one.time >= self._time - operation.span]
        rows.sort(key=lambda one: (one.time // width, self._order(one.key)))
        waiting = sorted(self._waiting, key=lambda one: (one.time, self._order(one.key)))
        nothing: list[Row] = [(None,) * width for width in self._widths]
        found: list[tuple[object, ...]] = [
            (one.key, nothing[0] + one.value, one.time, one.time + operation.span + 1, 1) for one in rows
        ]
        found += [(one.key, one.value + nothing[1], one.time, self._due(one), 0) for one in waiting]
        return None if self._time < 0 else self._time, len(waiting), found
