"""The join of two streams, record by record: what each finds, and when one without a partner comes out.

A record first moves the clock. By Kafka's clock, what is closed then comes out; by that of the input it has come out
before, at its own moment. Then the record meets its partners, each of which waits no more; without one it comes out, if
its side keeps such records: at once where the last time of a partner has passed (by the clock of the input: by more
than the grace, D32), otherwise later. Last it becomes a row of its side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row, Values
from tests.oracle.records.order import rows_in_order
from tests.oracle.records.tables import Content
from vsc.plan.nodes import Node, Schema
from vsc.plan.operations import StreamStreamJoin as Operation
from vsc.runtime.metrics import GRACE_NEEDED, Dropped, Group, Missed

__all__ = ["StreamStreamJoin"]

LEFT, RIGHT = 0, 1


class _Record(NamedTuple):
    """A record of a side. Its first member ascends where such records come out at the end of the input."""

    time: int
    side: int
    key: Row
    value: Row


class StreamStreamJoin:
    """The join at `node`; `schemas` are those of its inputs."""

    def __init__(
        self,
        node: Node,
        operation: Operation,
        schemas: Sequence[Schema],
        values: Values,
        context: Context,
        forward: RecordConsumer,
    ) -> None:
        self._node, self._name = node.name, node.owner
        self._before, self._after, self._grace = operation.before, operation.after, operation.grace
        self._patience = self._grace if context.by_input else 0
        self._keeps = {"inner": (), "left": (LEFT,), "outer": (LEFT, RIGHT)}[operation.mode]
        self._widths = [len(schema.value) for schema in schemas]
        self._order = rows_in_order([c.type for c in schemas[LEFT].key])
        self._values, self._context, self._forward = values, context, forward
        self._rows: list[_Record] = []
        self._waiting: list[_Record] = []
        self._newest = [-1, -1]
        self._time = -1

    def __len__(self) -> int:
        return len(self._waiting)

    def left(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a record of the left stream."""
        self._take(LEFT, key, value, time)

    def right(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a record of the right stream."""
        self._take(RIGHT, key, value, time)

    def _take(self, side: int, key: Row, value: Row | None, time: int) -> None:
        if None in key or value is None:
            self._context.dropped(self._name, Dropped.NULL_JOIN_KEY if None in key else Dropped.NO_VALUE)
            return
        self._time = self._context.stream_time_after(self._node, self._time, time)
        if not self._context.by_input:
            for one in self._closed():
                self._waiting.remove(one)
                self.release(one)
        record = _Record(time, side, key, value)
        hidden = self._hidden(1 - side)
        partners = [one for one in self._rows if self._meets(record, one) and one.time > hidden]
        self._count(record, hidden, bool(partners))
        for one in sorted(partners, key=lambda partner: partner.time):  # stable: then by arrival
            self._waiting = [w for w in self._waiting if (w.side, w.key, w.time) != (one.side, one.key, one.time)]
            self._send(*((record, one) if side == LEFT else (one, record)))
        if not partners and side in self._keeps:
            if self._last(record) + self._patience < self._time:
                self._alone(record)
            else:
                self._waiting.append(record)
        self._rows.append(record)
        self._newest[side] = max(self._newest[side], time)

    def _meets(self, record: _Record, other: _Record) -> bool:
        if record.key != other.key or record.side == other.side:
            return False
        left, right = (record, other) if record.side == LEFT else (other, record)
        return left.time - self._before <= right.time <= left.time + self._after

    def _hidden(self, side: int) -> int:
        """The time up to which the rows of a side are not found."""
        span = self._before + self._after + self._grace
        return self._time - span - 1 if self._context.by_input else self._newest[side] - span

    def _last(self, record: _Record) -> int:
        """The last time of a partner."""
        return record.time + (self._after if record.side == LEFT else self._before)

    def _due(self, record: _Record) -> int:
        return self._last(record) + self._grace + 1

    def _in_order(self, record: _Record) -> tuple[object, ...]:
        """Right before left, then by key."""
        return (-record.side, self._order(record.key))

    def _closed(self) -> list[_Record]:
        closed = [one for one in self._waiting if self._due(one) <= self._time]
        return sorted(closed, key=lambda one: (one.time, self._in_order(one)))

    def _count(self, record: _Record, hidden: int, joined: bool) -> None:
        metrics, late = self._context.metrics, self._time - self._last(record)
        earliest = max(0, record.time - (self._before if record.side == LEFT else self._after))
        if late > self._grace:
            metrics.peak(self._name, GRACE_NEEDED, late)
        if earliest <= hidden:
            metrics.count(self._name, Group.MISSED_LOOKUPS, Missed.OLDER_THAN_RETENTION)
        elif not joined and late > (self._patience if record.side in self._keeps else self._grace):
            metrics.count(self._name, Group.MISSED_LOOKUPS, Missed.LATE)

    def _alone(self, record: _Record) -> None:
        self._send(*((record, None) if record.side == LEFT else (None, record)))

    def _send(self, left: _Record | None, right: _Record | None) -> None:
        there = [one for one in (left, right) if one is not None]
        rows = [None if one is None else one.key + one.value for one in (left, right)]
        times = [None if one is None else one.time for one in (left, right)]
        try:
            result = self._values(rows[0], rows[1], times[0], times[1])
        except NodeFailure as failure:
            self._context.failed(failure)
            return
        self._forward(there[0].key, result, max(one.time for one in there))

    # ---------------------------------------------------------------------------------------------------- who waits

    def release(self, waiting: _Record) -> None:
        """Lets a record come out that has waited."""
        self._context.metrics.count(self._name, Group.MISSED_LOOKUPS, Missed.NO_RECORD)
        self._alone(waiting)

    def take_all(self) -> list[_Record]:
        """Removes all that waits, in the order in which it would come out."""
        waiting, self._waiting = self._waiting, []
        return sorted(waiting, key=lambda one: (one.time, self._in_order(one)))

    def due(self) -> int | None:
        """When the first one comes out; None if nothing waits."""
        return min(map(self._due, self._waiting), default=None)

    def take_due(self) -> list[_Record]:
        """Removes all that comes out together with the first one."""
        first = self.due()
        due = [one for one in self._waiting if self._due(one) == first]
        self._waiting = [one for one in self._waiting if self._due(one) != first]
        return sorted(due, key=self._in_order)

    def content(self) -> Content:
        """The rows that can be found, then those that wait: (key, columns of both sides, time, until when, side)."""
        width, span = self._before + self._after + 1, self._before + self._after + self._grace
        rows = [one for one in self._rows if one.time > self._newest[one.side] - span]
        rows.sort(key=lambda one: (one.side, one.time // width, self._order(one.key)))
        waiting = sorted(self._waiting, key=lambda one: (one.side, one.time, self._order(one.key)))
        found = [self._shown(one, one.time + span + 1) for one in rows]
        found += [self._shown(one, self._due(one)) for one in waiting]
        return None if self._time < 0 else self._time, len(waiting), found

    def _shown(self, record: _Record, due: int) -> tuple[object, ...]:
        sides: list[Row] = [(None,) * width for width in self._widths]
        sides[record.side] = record.value
        return record.key, sides[LEFT] + sides[RIGHT], record.time, due, record.side
