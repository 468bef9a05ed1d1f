"""`suppress` (KIP-328): holds a table's changes back, so only the last of several comes out.

``window_closes``: a row is held until stream time is `wait` past its window's end, then sent once; tombstones are not
sent (the rows that they take back were not sent either). ``time_limit``: a key's newest row is held for `wait` from the
first change on. After each change all due rows come out, in the order of (time, encoded key), each with the event time
of its last change. The old row sent with it is the one that was sent before (D17).
"""

from __future__ import annotations

from tests.oracle.records.consumer import ChangeConsumer, Put
from tests.oracle.records.context import Context
from vsc.plan.nodes import Schema
from vsc.plan.nodes import Suppress as Operation
from vsc.runtime.errors import BufferFullError
from vsc.runtime.metrics import HELD_RECORDS
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.state.suppressed import Suppressed, SuppressedRow

__all__ = ["Suppress"]

_MILLISECOND = 1000


class Suppress:
    """Holds the changes of a table with `schema`, whose last key column is the window's end if it has windows."""

    def __init__(
        self,
        name: str,
        operation: Operation,
        schema: Schema,
        held: Suppressed,
        put: Put | None,
        old_wanted: bool,
        context: Context,
        forward: ChangeConsumer,
    ) -> None:
        self._name = name
        self._operation = operation
        self._windows = operation.until == "window_closes"
        self._keys = KeyCodec([c.type for c in schema.key])
        self._rows = RowCodec([c.type for c in schema.value])
        self._held = held
        self._put = put
        self._old = old_wanted
        self._context = context
        self._forward = forward

    def __len__(self) -> int:
        return self._held.count

    def process(self, kb: bytes, key: Row, new: Row | None, old: Row | None, latest: bool, time: int) -> None:
        """Takes a table's change."""
        held = self._held
        encode = self._rows.encode
        place = key[-1] // _MILLISECOND if self._windows else time
        row, before = (None if r is None else encode(r) for r in (new, old))
        (known,) = held.get_many([kb])
        if known is not None:
            place, before = known.place, known.before
        now = SuppressedRow(place, kb, row, before, time)
        held.replace([] if known is None else [known], [now], max(held.stream_time, time))
        self._context.metrics.peak(self._name, HELD_RECORDS, held.count)
        due = held.stream_time - self._operation.wait
        while (first := next(held.until(due), None)) is not None:
            self._send(first)
        self._keep_bounds()

    def take_all(self) -> list[SuppressedRow]:
        """Takes out all held rows, in the order in which they would come out; moves the clock to where all are due."""
        waiting = self._held.all()
        if waiting:
            self._held.replace([], [], max(self._held.stream_time, waiting[-1].place + self._operation.wait))
        return waiting

    def release(self, waiting: SuppressedRow) -> None:
        """Sends one row that was held."""
        self._send(waiting)

    def _keep_bounds(self) -> None:
        while (bound := self._broken_bound()) is not None:
            if self._operation.when_full == "fail":
                raise BufferFullError(
                    f"'{self._name}': its buffer holds {self._held.count} records of {self._held.bytes} bytes, more "
                    f"than {bound} allows",
                    "raise the bound, or use when_full = 'emit'" if not self._windows else "raise the bound",
                )
            self._send(self._held.all()[0])

    def _broken_bound(self) -> str | None:
        records, size = self._operation.max_records, self._operation.max_bytes
        if records is not None and self._held.count > records:
            return f"max_records = {records}"
        if size is not None and self._held.bytes > size:
            return f"max_bytes = {size}"
        return None

    def _send(self, waiting: SuppressedRow) -> None:
        self._held.replace([waiting], [], self._held.stream_time)
        if waiting.row is None and self._windows:
            return
        kb, decode = waiting.key, self._rows.decode
        new, old = (None if r is None else decode(r) for r in (waiting.row, waiting.before))
        key = self._keys.decode(kb)
        if self._put is None:
            self._forward(kb, key, new, old if self._old else None, True, waiting.timestamp)
        else:
            self._put.process(kb, key, new, self._put.newest(kb) if self._old else None, waiting.timestamp)
