"""Tumbling and hopping windows: of fixed size, beginning at the multiples of their advance."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.records.aggregate.windows import Span, WindowedAggregate
from vsc.runtime.operators.evaluate import Row

__all__ = ["TimeWindows"]


class TimeWindows(WindowedAggregate):
    """A record changes every window that it lies in and that is not closed, by ascending start."""

    def _update(self, kb: bytes, key: Row, args: Sequence[tuple[object, ...]], time: int) -> None:
        window, closed = self._window, self._closed_up_to()
        advance = window.advance
        at = self._state.arrive(time)
        first = max(0, time - window.size + advance) // advance * advance
        for start in range(first, time + 1, advance):
            if start <= closed:
                self._late += 1
                continue
            span = Span(start, start + window.size)
            found = self._read(kb, start)
            before = self._before(kb, key, span, found)
            group = found or self._calls.empty()
            self._calls.add(group, args, at, self._state.kv, self._scope(kb, start))
            group.time = max(group.time, time)
            self._write(kb, span, group, fresh=found is None)
            self._changed(kb, key, span, group, before)

    def _closed_up_to(self) -> int:
        return self._state.stream_time - self._window.grace - self._window.size

    def _forgotten_up_to(self) -> int:
        # Kafka's window store shows a window until another one begins its retention (size and grace) later.
        return self._state.highest - self._window.grace - self._window.size

    def _clock_to_close(self, place: int) -> int:
        return place + self._window.size + self._window.grace

    def _span_at(self, place: int, start: int) -> Span:
        return Span(start, start + self._window.size)
