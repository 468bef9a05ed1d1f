"""Tumbling and hopping windows: of fixed size, beginning at the multiples of their advance."""

from __future__ import annotations

from dataclasses import replace

from tests.oracle.records.aggregate.groups import Group, Member
from tests.oracle.records.aggregate.windows import WindowedAggregate
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
            self._changed(key, start, group, self._before(key, start, known))

    def _starts(self, time: int) -> list[int]:
        """The starts of the windows that hold `time`, ascending; none is before 0."""
        start, found = time // self._window.advance * self._window.advance, []
        while start >= 0 and time < start + self._window.size:
            found.append(start)
            start -= self._window.advance
        return found[::-1]

    def _closed_up_to(self) -> int:
        return self._stream_time - self._window.grace - self._window.size

    def _forgotten_up_to(self) -> int:
        # Kafka's window store shows a window until another one begins its retention (size and grace) later.
        return self._highest - self._window.grace - self._window.size

    def _clock_to_close(self, place: int) -> int:
        return place + self._window.size + self._window.grace
