"""Computes how a `suppress` with bounds holds the keys of one batch, in spans: a loop, because every change counts.

The due rows come out where the clock passes their time, and at each change the first ones in order until the bounds are
kept again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from vsc.plan.nodes import Suppress
from vsc.runtime.errors import BufferFullError
from vsc.runtime.operators.clock import Timing
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.suppress.spans import Spans
from vsc.runtime.state.suppressed import FAR, Suppressed, SuppressedRow, byte_size

__all__ = ["Buffer"]


@dataclass(slots=True)
class _Span:
    """A span, as in `Spans`, with the lengths of its newest row and of the row before it."""

    place: int
    key: bytes
    first: int
    last: int
    row: int
    before: int
    end: int = -1

    @property
    def size(self) -> int:
        """What the held row counts."""
        return byte_size(self.key, self.row, self.before)


class Buffer:
    """What `held` holds at each change of a batch. `rows` are those of its rows that are changed or come out.

    `stored` are the held rows of the batch's keys; the others are read when they come out.
    """

    def __init__(
        self, name: str, operation: Suppress, held: Suppressed, stored: Iterable[SuppressedRow], timing: Timing
    ) -> None:
        self._name, self._operation, self._timing = name, operation, timing
        self._clock = [*timing.clock.tolist(), timing.now]
        self._count, self._bytes = held.count, held.bytes
        self.rows: list[SuppressedRow] = []
        self._known: list[_Span] = []
        self._begun: list[_Span] = []
        self._now: dict[bytes, _Span] = {}
        for row in stored:
            self._take_in(row)
        self._heap: list[tuple[int, bytes]] = []
        self._coming = held.until(FAR)
        self._next = next(self._coming, None)

    def change(self, event: int, place: int, key: bytes, row: int, before: int) -> None:
        """Holds a change, given the lengths of its row and of the row before; emits what no longer fits."""
        self._emit_due(event)
        span = self._now.get(key)
        if span is None:
            span = self._now[key] = _Span(place, key, event, event, row, before)
            self._begun.append(span)
            heappush(self._heap, (place, key))
            self._count += 1
        else:
            self._bytes -= span.size
            span.last, span.row = event, row
        self._bytes += span.size
        self._emit_due(event + 1)
        while (first := self._first()) is not None and self._full():
            self._release(first, event)

    def end(self) -> None:
        """Emits what is due after the last change."""
        self._emit_due(FAR)

    def spans(self, space: KeySpace) -> Spans:
        """The spans of all changes."""
        spans = [*self._known, *self._begun]
        fields = [(s.place, s.first, s.last, self._timing.never if s.end < 0 else s.end) for s in spans]
        place, first, last, end = np.array(fields, dtype=np.int64).reshape(-1, 4).T
        return Spans(space.encoded([span.key for span in spans]), place, first, last, end)

    def _emit_due(self, before: int) -> None:
        """Emits what is due before as many changes as this."""
        latest = self._clock[min(before, len(self._clock) - 1)] - self._operation.wait
        while (first := self._first()) is not None and first.place <= latest:
            due = np.array([first.place + self._operation.wait], dtype=np.int64)
            own = None if first.first < 0 else np.array([first.first], dtype=np.int64)
            event = self._timing.passes(due, own)
            if event[0] >= self._timing.never or self._timing.seen(event, due)[0] > before:
                return
            self._release(first, int(event[0]))

    def _first(self) -> _Span | None:
        """The span that comes out next."""
        stored = self._next
        if stored is not None and (not self._heap or (stored.place, stored.key) < self._heap[0]):
            return self._now.get(stored.key) or self._take_in(stored)
        return self._now[self._heap[0][1]] if self._heap else None

    def _take_in(self, row: SuppressedRow) -> _Span:
        span = self._now[row.key] = _Span(row.place, row.key, -1, -1, len(row.row or b""), len(row.before or b""))
        self._known.append(span)
        self.rows.append(row)
        return span

    def _release(self, span: _Span, event: int) -> None:
        if span.first < 0:
            self._next = next(self._coming, None)
        else:
            heappop(self._heap)
        del self._now[span.key]
        span.end = event
        self._count -= 1
        self._bytes -= span.size

    def _full(self) -> bool:
        """Whether a bound is exceeded. Raises BufferFullError if that ends the run."""
        operation = self._operation
        if operation.max_records is not None and self._count > operation.max_records:
            bound = f"max_records = {operation.max_records}"
        elif operation.max_bytes is not None and self._bytes > operation.max_bytes:
            bound = f"max_bytes = {operation.max_bytes}"
        else:
            return False
        if operation.when_full == "fail":
            raise BufferFullError(
                f"'{self._name}': its buffer holds {self._count} records of {self._bytes} bytes, more than {bound} "
                "allows",
                "raise the bound, or use when_full = 'emit'" if operation.until == "time_limit" else "raise the bound",
            )
        return True
