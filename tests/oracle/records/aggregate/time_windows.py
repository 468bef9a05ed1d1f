"""Tumbling and hopping windows: of fixed size, beginning `offset` after the multiples of their advance."""

from __future__ import annotations

from dataclasses import replace

from tests.oracle.records.aggregate.groups import Group, Member
from tests.oracle.records.aggregate.windows import Span, WindowedAggregate
from tests.oracle.records.expressions import Row

__all__ = ["TimeWindows"]


class TimeWindows(WindowedAggregate):
    """A record changes every window that it lies in and that is not closed, by ascending start."""

    def _update(self, key: Row, member: Member) -> None:
        for start in self._starts(member.time):
            if start <= self._closed_up_to():
                self._late += 1
                continue
            known = self._windows.get((key, start))
            group = self._calls.added(known or Group(), member)
            group = replace(group, time=max(group.time, member.time))
            self._write(key, start, group)
            self._changed(key, start, group)

    def _starts(self, time: int) -> list[int]:
        """The starts of the windows that hold `time`, ascending. The window that holds 0 begins there at the earliest,
        and there is none before it."""
        window, found = self._window, []
        start = time - (time - window.offset) % window.advance
        while start + window.advance > 0 and time < start + window.size:
            found.append(max(start, 0))
            start -= window.advance
        return found[::-1]

    def _span(self, start: int, group: Group) -> Span:
        return Span(start, self._end(start))

    def _end(self, start: int) -> int:
        return start - (start - self._window.offset) % self._window.advance + self._window.size

    def _closed_up_to(self) -> int:
        return self._closed_by(self._stream_time)

    def _closed_by(self, clock: int) -> int:
        cut_off = (-self._window.offset) % self._window.advance
        past = clock - self._clock_to_close(0)
        return past if cut_off == 0 else max(past - cut_off, min(past, self._window.advance - cut_off - 1))

    def _forgotten_up_to(self) -> int:
        # Kafka's window store shows a window until another one begins its retention (size and grace) later.
        return self._closed_by(self._highest)

    def _clock_to_close(self, place: int) -> int:
        return self._end(place) + self._window.grace
