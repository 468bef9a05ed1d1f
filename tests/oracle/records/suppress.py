"""`suppress` (KIP-328): holds a table's changes back, so only the last of several comes out.

``window_closes``: a row is held until stream time is `wait` past its window's end, then sent once; tombstones are not
sent (the rows that they take back were not sent either). ``time_limit``: a key's newest row is held for `wait` from the
first change on. After each change all due rows come out, in the order of (time, key), each with the event time of its
last change. The old row sent with it is the one that was sent before (D17).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.oracle.records.consumer import Before, ChangeConsumer, Put
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import Row
from tests.oracle.records.order import rows_in_order
from tests.oracle.records.tables import Content
from vsc.plan.nodes import Schema
from vsc.plan.nodes import Suppress as Operation
from vsc.runtime.errors import BufferFullError
from vsc.runtime.metrics import HELD_RECORDS

__all__ = ["Held", "Suppress"]

_MILLISECOND = 1000


class Held(NamedTuple):
    """What is held for a key: where it stands in time, its newest row and that row's event time, and the row that the
    key had when it came in (each None: a tombstone, or none)."""

    place: int
    key: Row
    row: Row | None
    before: Before | None
    time: int


Size = Callable[[Row, "Row | None", "Row | None"], int]
"""How many bytes a held row counts: its key, the row, the row before. That is a matter of how rows are stored."""


class Suppress:
    """Holds the changes of a table with `schema`, whose last key column is the window's end if it has windows.

    `held` is what it holds, by key.
    """

    def __init__(
        self,
        name: str,
        operation: Operation,
        schema: Schema,
        held: dict[Row, Held],
        size: Size,
        put: Put | None,
        old_wanted: bool,
        context: Context,
        forward: ChangeConsumer,
    ) -> None:
        self._name = name
        self._operation = operation
        self._windows = operation.until == "window_closes"
        self._order = rows_in_order([c.type for c in schema.key])
        self._held = held
        self._size = size
        self._stream_time = -1
        self._put = put
        self._old = old_wanted
        self._context = context
        self._forward = forward

    def __len__(self) -> int:
        return len(self._held)

    def process(self, key: Row, new: Row | None, old: Before | None, latest: bool, time: int) -> None:
        """Takes a table's change."""
        known = self._held.get(key)
        if known is not None:
            self._held[key] = known._replace(row=new, time=time)
        else:
            self._held[key] = Held(key[-1] // _MILLISECOND if self._windows else time, key, new, old, time)
        self._stream_time = self._context.stream_time_after(self._name, self._stream_time, time)
        self._context.metrics.peak(self._name, HELD_RECORDS, len(self._held))
        own, due = self._held[key], self._stream_time - self._operation.wait
        if self._context.by_input:  # what has waited comes out at its own place, in its order
            if known is None and own.place <= due:
                self._send(own)
            return
        while self._held and self._first().place <= due:
            self._send(self._first())
        while (bound := self._broken_bound()) is not None:
            if self._operation.when_full == "fail":
                raise BufferFullError(
                    f"'{self._name}': its buffer holds {len(self._held)} records of {self._bytes()} bytes, more "
                    f"than {bound} allows",
                    "raise the bound, or use when_full = 'emit'" if not self._windows else "raise the bound",
                )
            self._send(self._first())

    def take_all(self) -> list[Held]:
        """The held rows, in the order in which they would come out; moves the clock to where all are due."""
        waiting = self._in_order()
        if waiting:
            self._stream_time = max(self._stream_time, waiting[-1].place + self._operation.wait)
        return waiting

    def due(self) -> int | None:
        """When the first row comes out; None if nothing is held."""
        return self._first().place + self._operation.wait if self._held else None

    def take_due(self) -> list[Held]:
        """All that comes out together with the first row, which is held until it does."""
        waiting = self._in_order()
        return [held for held in waiting if held.place == waiting[0].place]

    def release(self, waiting: Held) -> None:
        """Sends one row that was held."""
        self._send(waiting)

    def content(self) -> Content:
        """What is held: (key, row, time, the stream time at which it comes out)."""
        rows = [(h.key, h.row, h.time, h.place + self._operation.wait) for h in self._in_order()]
        return None if self._stream_time < 0 else self._stream_time, len(rows), rows

    def _in_order(self) -> list[Held]:
        return sorted(self._held.values(), key=lambda held: (held.place, self._order(held.key)))

    def _first(self) -> Held:
        return self._in_order()[0]

    def _bytes(self) -> int:
        return sum(self._size(held.key, held.row, held.before) for held in self._held.values())

    def _broken_bound(self) -> str | None:
        records, size = self._operation.max_records, self._operation.max_bytes
        if records is not None and len(self._held) > records:
            return f"max_records = {records}"
        if size is not None and self._bytes() > size:
            return f"max_bytes = {size}"
        return None

    def _send(self, held: Held) -> None:
        del self._held[held.key]
        if held.row is None and self._windows:
            return
        if self._put is None:
            self._forward(held.key, held.row, held.before if self._old else None, True, held.time)
        else:
            before = self._put.newest(held.key) if self._old else None
            self._put.process(held.key, held.row, before, held.time)
