"""`reorder`: a record waits until the clock reaches its time + `within`, and goes on by (time, place).

The place: the clock of the input at it, what time has released before what comes, source, partition, offset, arrival.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import Row
from tests.oracle.records.tables import Content
from vsc.plan.nodes import Node, Reorder
from vsc.runtime.metrics import GRACE_NEEDED, Dropped

__all__ = ["Reordering"]


class _Waiting(NamedTuple):
    time: int
    place: Any
    key: Row
    value: Row | None


class Reordering:
    """The records of one node that wait."""

    def __init__(self, node: Node, operation: Reorder, context: Context, forward: RecordConsumer) -> None:
        self._node, self._name, self._within = node.name, node.owner, operation.within
        self._context, self._forward = context, forward
        self._waiting: list[_Waiting] = []
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record."""
        clock = self._context.clock
        assert clock is not None
        shown, asked = clock.shown(self._node), clock.asked(self._node)
        if shown - time > self._within:
            self._context.dropped(self._name, Dropped.OUT_OF_ORDER)
            if asked - time > self._within:
                self._context.metrics.peak(self._name, GRACE_NEEDED, asked - time)
        elif time + self._within <= shown:
            self._forward(key, value, time)
        else:
            self._arrivals += 1
            self._waiting.append(
                _Waiting(time, (clock.of_input(self._node), *self._context.place, self._arrivals), key, value)
            )
            self._waiting.sort(key=lambda one: (one.time, one.place))

    def take_all(self) -> list[_Waiting]:
        """Not by the clock of records."""
        raise NotImplementedError

    def due(self) -> int | None:
        """When the first one goes on; None if nothing waits."""
        return self._waiting[0].time + self._within if self._waiting else None

    def take_due(self) -> list[_Waiting]:
        """Removes all that goes on together with the first one."""
        due = [one for one in self._waiting if one.time == self._waiting[0].time]
        del self._waiting[: len(due)]
        return due

    def release(self, waiting: _Waiting) -> None:
        """Lets one record go on that has waited."""
        self._forward(waiting.key, waiting.value, waiting.time)

    def content(self) -> Content:
        """What waits: (key, value, time, the stream time at which it goes on)."""
        rows = [(one.key, one.value, one.time, one.time + self._within) for one in self._waiting]
        return None, len(rows), rows
