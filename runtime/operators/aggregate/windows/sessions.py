"""Session windows in a batch. A window's place in time is its end.

For one record: `tests/oracle/records/aggregate/session_windows.py`.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile
from typing import Any

from vsc.runtime.metrics import LONGEST_SESSION
from vsc.runtime.operators.aggregate.groups.derived import AnyGroup
from vsc.runtime.operators.aggregate.groups.state import WindowKey
from vsc.runtime.operators.aggregate.windows.moving import Args, KeyWindows, MovingWindows, Number
from vsc.runtime.operators.clock import Timing
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.records import END_OF_TIME

__all__ = ["SessionColumns"]

_START = struct.Struct(">Q")


class SessionColumns(MovingWindows):
    """A record merges with the sessions that it reaches into one session; the merged ones are taken back.

    A closed session leaves its group at once, as an open one may come to begin at the same time. Its row in the index
    stays until no node sees its result any more.
    """

    _longest = -1

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._passed: list[tuple[WindowKey, bool]] = []
        self._again = self._site.batch.clock is not None
        """Whether a session of one moment is the old row of what a record of its moment makes of it (D28)."""
        lasting = self._site.lasting()
        self._closing_for_good = END_OF_TIME if lasting is None else self._closed_up_to(lasting)

    def _take(self, key: KeyWindows, time: int, args: Args) -> None:
        state, gap, starts, groups = self._state, self._size, key.starts, key.groups
        if groups and groups[0].time <= (last := self._left_before(time)):
            self._drop(key, last)
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

    def _changed(self, key: KeyWindows, first: int, last: int, start: int, end: int, time: int, args: Args) -> AnyGroup:
        """The session that a record makes; sends the changes."""
        kb, joins = key.kb, first < last and start == end  # a record of its moment joins a session of one moment
        again = joins and self._again
        if not self._final and not joins:
            for at in range(first, last):
                self._take_back(kb, key.starts[at], key.groups[at])
        merged = self._merged(key, first, last, start)
        self._calls.add(merged, args, self._state.arrive(time), self._kv, self._scope(kb, start))
        merged.time = end
        self._longest = max(self._longest, end - start)
        if not self._final:
            result = self._result(kb, start, end, merged)
            self._sent.append((self._row, kb, start, end, result, again, end))
        return merged

    def _take_back(self, kb: bytes, start: int, group: AnyGroup) -> None:
        self._sent.append((self._row, kb, start, group.time, None, True, group.time))

    def _merged(self, key: KeyWindows, first: int, last: int, start: int) -> AnyGroup:
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

    def _stored(self, kb: bytes, first: int, last: int) -> Iterator[tuple[int, AnyGroup]]:
        reach = max(first - self._size, self._state.closed + 1)
        for start, group in self._scan(kb, 0, last + self._size):
            if group.time < reach:
                return
            yield start, group

    def _left_before(self, time: int) -> int:
        """The place in time up to which windows leave their groups before a record of this time."""
        state = self._state
        clock = self._now if self._now > time else state.stream_time  # it may have moved before the record
        return min(self._closing_for_good, max(state.closed, self._closed_up_to(clock)))

    def _left_up_to(self) -> int:
        state = self._state
        return max(self._closed, min(state.closed, self._closed_up_to(state.stream_time)))

    def _until(self, key: KeyWindows, last: int) -> list[tuple[int, int, AnyGroup]]:
        passed = takewhile(lambda window: window[1].time <= last, zip(key.starts, key.groups, strict=True))
        return [(group.time, start, group) for start, group in passed]

    def _leave(self, place: int, start: int, kb: bytes, stored: bool) -> None:
        self._passed.append(((place, start, kb), stored))
        self._clear(start, kb)

    def _leave_unreached(self, closing: Sequence[WindowKey]) -> None:
        last = self._left_up_to()
        for place, start, kb in closing:
            if place <= last:
                self._remove_group(start, kb)

    def _forget(self, place: int, start: int, kb: bytes) -> None:
        self._gone.append((place, start, kb, True))

    def _end(self, records: int, timing: Timing) -> None:
        super()._end(records, timing)
        self._gone += [(*window, stored) for window, stored in self._passed if window[0] <= self._state.forgotten]

    def _shown(self) -> Collection[WindowKey]:
        return {window for window, _ in self._passed if window[0] > self._state.forgotten}

    def _forgotten_up_to(self, clock: int, highest: int) -> int:
        unseen = self._unseen_up_to
        return self._closed_up_to(clock) if unseen is None else unseen

    def _rank(self, start: int, kb: bytes) -> bytes:
        return _START.pack(start) + kb

    def _place(self, start: int, group: AnyGroup) -> int:
        return group.time

    def _ends(self, place: Number, start: Number) -> Number:
        return place

    def _tell(self, flow: Flow) -> None:
        super()._tell(flow)
        if self._longest >= 0:
            self._site.peak(LONGEST_SESSION, self._longest)
