"""Session windows in a batch. A window's place in time is its end.

For one record: `tests/oracle/records/aggregate/windows/sessions.py`.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator

from vsc.runtime.metrics import LONGEST_SESSION
from vsc.runtime.operators.aggregate.functions.calls import Group
from vsc.runtime.operators.aggregate.windows.moving import Args, KeyWindows, MovingWindows, Number
from vsc.runtime.operators.columns.flow import Flow

__all__ = ["SessionColumns"]

_START = struct.Struct(">Q")


class SessionColumns(MovingWindows):
    """A record merges with the sessions that it reaches into one session; the merged ones are taken back."""

    _longest = -1

    def _take(self, key: KeyWindows, time: int, args: Args) -> None:
        state, gap, starts, groups = self._state, self._size, key.starts, key.groups
        closed = max(self._closed_up_to(self._now), state.closed)
        reach = max(time - gap, closed + 1)
        first = last = bisect_right(starts, time + gap)
        while first and groups[first - 1].time >= reach:
            first -= 1
        start = end = time
        if first < last:
            start, end = min(time, starts[first]), max(time, groups[last - 1].time)
        if end <= closed:
            self._late.append(self._row)
            return
        merged = self._changed(key, first, last, start, end, time, args)
        state.stream_time = self._now
        fresh = first == last
        if last - first > 1 or (not fresh and (starts[first] != start or groups[first].time != end)):
            fresh = True
            state.open -= last - first
        starts[first:last], groups[first:last] = [start], [merged]
        if fresh:
            self._opened(end)

    def _changed(self, key: KeyWindows, first: int, last: int, start: int, end: int, time: int, args: Args) -> Group:
        """The session that a record makes; sends the changes."""
        kb = key.kb
        if not self._final and (start < end or first == last):
            for at in range(first, last):
                self._take_back(kb, key.starts[at], key.groups[at])
        merged = self._merged(key, first, last, start)
        self._calls.add(merged, args, self._state.arrive(time), self._kv, self._scope(kb, start))
        merged.time = end
        self._longest = max(self._longest, end - start)
        if not self._final:
            self._sent.append((self._row, kb, start, end, self._result(kb, start, end, merged), None, True, end))
        return merged

    def _take_back(self, kb: bytes, start: int, group: Group) -> None:
        before = self._result(kb, start, group.time, group) if self._olds else None
        self._sent.append((self._row, kb, start, group.time, None, before, False, group.time))

    def _merged(self, key: KeyWindows, first: int, last: int, start: int) -> Group:
        """The merged group of the sessions, with its entries moved to those of the new session."""
        starts, groups, calls = key.starts, key.groups, self._calls
        if first < last and starts[first] == start:
            merged, first = groups[first].copy(), first + 1
        else:
            merged = calls.empty()
        for at in range(first, last):
            scope, others = self._scope(key.kb, start), self._scope(key.kb, starts[at])
            calls.merge(merged, groups[at], self._kv, scope, others)
            if self._entries:
                self._state.clear(others)
        return merged

    def _stored(self, kb: bytes, first: int, last: int) -> Iterator[tuple[int, Group]]:
        reach = max(first - self._size, self._state.closed + 1)
        for start, group in self._scan(kb, 0, last + self._size):
            if group.time < reach:
                return
            yield start, group

    def _forgotten_up_to(self, clock: int, highest: int) -> int:
        unseen = self._unseen_up_to()
        return self._closed_up_to(clock) if unseen is None else unseen

    def _rank(self, start: int, kb: bytes) -> bytes:
        return _START.pack(start) + kb

    def _place(self, start: int, group: Group) -> int:
        return group.time

    def _ends(self, place: Number, start: Number) -> Number:
        return place

    def _tell(self, flow: Flow) -> None:
        super()._tell(flow)
        if self._longest >= 0:
            self._site.peak(LONGEST_SESSION, self._longest)
