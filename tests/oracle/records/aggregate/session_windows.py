"""Session windows: a group's records with no gap between them longer than the window's."""

from __future__ import annotations

from dataclasses import replace

from tests.oracle.records.aggregate.groups import Group, Member
from tests.oracle.records.aggregate.windows import Span, WindowedAggregate
from tests.oracle.records.expressions import Row
from vsc.runtime.metrics import LONGEST_SESSION

__all__ = ["SessionWindows"]


class SessionWindows(WindowedAggregate):
    """A record makes one session of itself and the sessions that it reaches.

    These are taken back (a tombstone each, at its end), also where the new session has the very same bounds, except
    for a session of one moment that a record of that moment joins. A window's place in time is its end.
    """

    def _update(self, key: Row, member: Member) -> None:
        time = member.time
        found = self._reached(key, time)
        start = min([time, *(start for start, _ in found)])
        end = max([time, *(group.time for _, group in found)])
        if end <= self._closed_up_to():
            self._late += 1
            return
        merged = Group()
        joined = found[0][1] if found and start == end else None
        for own_start, group in found:
            if joined is None:
                self._taken_back(key, own_start, group)
            del self._windows[key, own_start]
            merged = group if len(found) == 1 else self._calls.merged(merged, group)
        merged = replace(self._calls.added(merged, member), time=end)
        self._write(key, start, merged)
        self._context.metrics.peak(self._name, LONGEST_SESSION, end - start)
        # Kafka sends it without an old row, even where a record of the same moment joins a session of one moment (D28).
        again = self._context.by_input and joined is not None
        self._changed(key, start, merged, replaces=again)

    def _reached(self, key: Row, time: int) -> list[tuple[int, Group]]:
        """The group's sessions that a record at `time` belongs to, by time: those that are closed are gone (D16).

        A session is (its start, what is in it); its end is the time of its result.
        """
        gap, closed = self._window.size, self._closed_up_to()
        own = sorted((start, group) for (owner, start), group in self._windows.items() if owner == key)
        return [(s, g) for s, g in own if s <= time + gap and g.time >= time - gap and g.time > closed]

    def _closed_up_to(self) -> int:
        return self._stream_time - self._window.size - self._window.grace - 1

    def _forgotten_up_to(self) -> int:
        return self._closed_up_to()

    def _clock_to_close(self, place: int) -> int:
        return place + self._window.size + self._window.grace + 1

    def _span(self, start: int, group: Group) -> Span:
        return Span(start, group.time)

    def _place(self, start: int, group: Group) -> int:
        return group.time
