"""A table that forgets: a row is removed once the clock is `after` past its time, and a tombstone goes on.

A change that comes so late that it would be removed at once is refused, and what is there stays.
"""

from __future__ import annotations

from tests.oracle.records.consumer import Before
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import Row
from tests.oracle.records.order import rows_in_order
from tests.oracle.records.put import TablePut
from tests.oracle.records.tables import Content
from vsc.plan.nodes import Node
from vsc.runtime.metrics import Dropped

__all__ = ["ExpiringPut"]


class ExpiringPut(TablePut):
    """In the place of the table's `put`, with the times of its rows."""

    __slots__ = ("_after", "_inner", "_node", "_old", "_order", "_stream_time", "_times")

    def __init__(self, node: Node, after: int, put: TablePut, old_wanted: bool, context: Context) -> None:
        self._node, self._after, self._inner, self._old, self._context = node.name, after, put, old_wanted, context
        self._order = rows_in_order([c.type for c in node.schema.key])
        self._times: dict[Row, int] = {}
        self._stream_time = -1
        self.newest, self._as_of = put.newest, None

    def __len__(self) -> int:
        return 0  # the table has its rows: nothing is held back

    def process(self, key: Row, new: Row | None, old: Before | None, time: int, silent: bool = False) -> None:
        """Takes a change; by Kafka's clock what is due then comes behind it."""
        self._stream_time = self._context.stream_time_after(self._node, self._stream_time, time)
        if time + self._after <= self._stream_time:
            self._context.dropped(self._node, Dropped.EXPIRED)
        else:
            self._times.pop(key, None)
            if new is not None:
                self._times[key] = time
            self._inner.process(key, new, old, time, silent)
        while not self._context.by_input and self._times and self._first() + self._after <= self._stream_time:
            for one in self.take_due():
                self.release(one)

    def take_all(self) -> list[tuple[int, Row]]:
        """The end of the input removes nothing."""
        return []

    def due(self) -> int | None:
        """When the first row is removed."""
        return self._first() + self._after if self._times else None

    def take_due(self) -> list[tuple[int, Row]]:
        """The rows that are removed together with the first, each with its time."""
        first = self._first()
        keys = sorted((key for key, time in self._times.items() if time == first), key=self._order)
        return [(first, key) for key in keys]

    def release(self, waiting: tuple[int, Row]) -> None:
        """Removes one of them."""
        time, key = waiting
        del self._times[key]
        self._inner.process(key, None, self.newest(key) if self._old else None, time + self._after)

    def content(self) -> Content:
        """Whose rows there are: (key, nothing, its time, when it is removed)."""
        every = sorted(self._times.items(), key=lambda one: (one[1], self._order(one[0])))
        rows = [(key, (), time, time + self._after) for key, time in every]
        return None if self._stream_time < 0 else self._stream_time, 0, rows

    def _first(self) -> int:
        return min(self._times.values())
