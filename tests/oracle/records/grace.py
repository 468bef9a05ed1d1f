"""The grace buffer in front of a stream-table join (KIP-923): a record waits until stream time is `grace` past it.

Records come out in the order of (event time, key, arrival), after each record that was taken in. One that is too late
to wait is joined at once, and moves nothing. The buffer's clock is the highest time that it has taken in (D11). What
comes out is caused by the record that moved the clock: it carries that one's order, and its own time.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import Row
from tests.oracle.records.order import rows_in_order
from tests.oracle.records.tables import Content
from vsc.plan.nodes import Schema
from vsc.runtime.metrics import Dropped

__all__ = ["GoingOn", "GraceBuffer"]


class _Join(Protocol):
    def takes(self, key: Row, value: Row | None) -> bool: ...

    def join(self, key: Row, value: Row, time: int) -> None: ...


class GoingOn:
    """Stands for a join that is a node of its own: what has waited goes on to it. `left`: one without key, too."""

    def __init__(self, name: str, left: bool, context: Context, forward: RecordConsumer) -> None:
        self._name, self._left, self._context, self.join = name, left, context, forward

    def takes(self, key: Row, value: Row | None) -> bool:
        """Whether a record waits, or goes on at once."""
        if value is None:
            self._context.dropped(self._name, Dropped.NO_VALUE)
        elif None in key and not self._left:
            self._context.dropped(self._name, Dropped.NULL_JOIN_KEY)
        else:
            return True
        return False


class _Waiting(NamedTuple):
    time: int
    key: Row
    value: Row


class GraceBuffer:
    """Holds the stream records of one join, node `name`. `schema` is the stream's."""

    def __init__(self, name: str, grace: int, schema: Schema, join: _Join, context: Context) -> None:
        self._name, self._grace, self._join, self._context = name, grace, join, context
        self._order = rows_in_order([c.type for c in schema.key])
        self._waiting: list[_Waiting] = []
        self._stream_time = -1

    def __len__(self) -> int:
        return len(self._waiting)

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record; one without value is dropped, and moves nothing (D14).

        Nor does one without key, which is joined at once (D26).
        """
        if not self._join.takes(key, value):
            return
        assert value is not None
        if self._is_late(time) or None in key:
            self._join.join(key, value, time)
            return
        self._stream_time = self._context.stream_time_after(self._name, self._stream_time, time)
        self._waiting.append(_Waiting(time, key, value))
        self._waiting.sort(key=lambda one: (one.time, self._order(one.key)))  # stable: then by arrival
        if self._context.by_input:
            return  # what else is due has come out before, or does at its own place
        while self._waiting and self._waiting[0].time <= self._stream_time - self._grace:
            self.release(self._waiting.pop(0))

    def _is_late(self, time: int) -> bool:
        """Whether a record does not wait: by the clock of the input that shows so much with it, too."""
        if self._context.by_input:
            return time <= self._context.stream_time_after(self._name, self._stream_time, time) - self._grace
        return time < self._stream_time - self._grace

    def take_all(self) -> list[_Waiting]:
        """Removes all that waits, in the order in which it would come out.

        The buffer's clock stays where the records have moved it.
        """
        waiting, self._waiting = self._waiting, []
        return waiting

    def due(self) -> int | None:
        """When the first one comes out; None if nothing waits."""
        return self._waiting[0].time + self._grace if self._waiting else None

    def take_due(self) -> list[_Waiting]:
        """Removes all that comes out together with the first one."""
        due = [one for one in self._waiting if one.time == self._waiting[0].time]
        del self._waiting[: len(due)]
        return due

    def release(self, waiting: _Waiting) -> None:
        """Joins one record that has waited."""
        self._join.join(waiting.key, waiting.value, waiting.time)

    def content(self) -> Content:
        """What waits: (key, value, time, the stream time at which it comes out)."""
        rows = [(one.key, one.value, one.time, one.time + self._grace) for one in self._waiting]
        return None if self._stream_time < 0 else self._stream_time, len(rows), rows
