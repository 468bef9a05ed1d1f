"""Session windows: a group's records with no gap between them longer than the window's."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tests.oracle.records.aggregate.windows import Span, WindowedAggregate
from vsc.runtime.metrics import LONGEST_SESSION
from vsc.runtime.operators.aggregate.calls import Group
from vsc.runtime.operators.evaluate import Row

__all__ = ["SessionWindows"]

_NUMBER = struct.Struct(">Q")


class SessionWindows(WindowedAggregate):
    """A record makes one session of itself and the sessions that it reaches.

    These are taken back (a tombstone each, at its end), also where the new session has the very same bounds, except
    for a session of one moment that a record of that moment joins. A window's place in time is its end.
    """

    def _update(self, kb: bytes, key: Row, args: Sequence[tuple[object, ...]], time: int) -> None:
        state = self._state
        found = self._reached(kb, time)
        span = Span(min([time, *(s.start for s, _ in found)]), max([time, *(s.end for s, _ in found)]))
        if span.end <= self._closed_up_to():
            self._late += 1
            return
        joined = span == (time, time)
        if not joined:
            for one, group in found:
                self._take_back(kb, key, one, group)
        merged = self._merged(kb, span, found)
        self._calls.add(merged, args, state.arrive(time), state.kv, self._scope(kb, span.start))
        merged.time = span.end
        self._write(kb, span, merged, fresh=not (found and joined))
        self._context.metrics.peak(self._name, LONGEST_SESSION, span.end - span.start)
        if not self._final:
            # Kafka sends it without an old row, even where a record of the same moment joins a session of one moment.
            self._sent.append(self._result(kb, key, span, merged, None)._replace(sure=True))

    def _reached(self, kb: bytes, time: int) -> list[tuple[Span, Group]]:
        """The group's sessions that a record at `time` belongs to, by time: those that are closed are gone (D16)."""
        state, gap, closed = self._state, self._window.size, self._closed_up_to()
        rows = state.groups + kb
        found = []
        for row, data in state.kv.scan(rows, rows + _NUMBER.pack(time + gap + 1), reverse=True):
            group = self._calls.decode(data)
            if group.time < time - gap or group.time <= closed:
                break
            found.append((Span(_NUMBER.unpack_from(row, len(rows))[0], group.time), group))
        found.reverse()
        return found

    def _take_back(self, kb: bytes, key: Row, span: Span, group: Group) -> None:
        """Removes a session that has become part of another one; its entries stay for the one that takes them over."""
        if not self._final:
            before = self._before(kb, key, span, group)
            self._sent.append(self._tombstone(kb, key, span, before))
        state = self._state
        state.kv.write((), [state.index(span.end, span.start, kb), state.groups + kb + _NUMBER.pack(span.start)])
        state.open -= 1

    def _merged(self, kb: bytes, span: Span, found: list[tuple[Span, Group]]) -> Group:
        """What the sessions hold together, with entries where those of the new session are."""
        state, scope = self._state, self._scope(kb, span.start)
        first = bool(found) and found[0][0].start == span.start
        merged = found[0][1] if first else self._calls.empty()
        for one, group in found[1:] if first else found:
            others = self._scope(kb, one.start)
            self._calls.merge(merged, group, state.kv, scope, others)
            if self._calls.has_entries:
                state.clear(others)
        return merged

    def _closed_up_to(self) -> int:
        return self._state.stream_time - self._window.size - self._window.grace - 1

    def _forgotten_up_to(self) -> int:
        return self._closed_up_to()

    def _clock_to_close(self, place: int) -> int:
        return place + self._window.size + self._window.grace + 1

    def _span_at(self, place: int, start: int) -> Span:
        return Span(start, place)

    def _place(self, span: Span) -> int:
        return span.end
