"""Session windows in a batch. A window's place in time is its end.

For one record: `tests/oracle/records/aggregate/session_windows.py`.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vsc.runtime.metrics import LONGEST_SESSION
from vsc.runtime.operators.aggregate.groups.state import Windows
from vsc.runtime.operators.aggregate.windows.moving import MovingWindows, Number
from vsc.runtime.operators.aggregate.windows.noted import KeyWindows, Noted
from vsc.runtime.operators.clock import Timing
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.records import END_OF_TIME, Int64s

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
        self._passed, self._stream = Noted(), self._state.stream_time
        self._again = self._site.batch.clock is not None
        """Whether a session of one moment is the old row of what a record of its moment makes of it (D28)."""
        lasting = self._site.lasting()
        self._closing_for_good = END_OF_TIME if lasting is None else self._closed_up_to(lasting)

    def _take(self, key: KeyWindows, row: int, time: int, now: int, closed: int) -> None:
        gap, starts, times = self._size, key.starts, key.times
        if times and times[0] <= closed:
            self._drop(key, min(self._closing_for_good, self._left_before(time, now, closed)))
        reach = max(time - gap, closed + 1)
        first = last = bisect_right(starts, time + gap)
        while first and times[first - 1] >= reach:
            first -= 1
        start = end = time
        if first < last:
            start, end = min(time, starts[first]), max(time, times[last - 1])
        if end <= closed:
            self._refused.append(row)
            return
        if self._numbered:
            self._arrive(row, time)
        self._stream = now
        if end - start > self._longest:
            self._longest = end - start
        if last - first == 1 and starts[first] == start:
            self._extended(key, row, first, end)
            return
        self._send_back(key, row, first, last, start == end)
        state = self._add(self._together(key, slice(first, last), start), row, key.kb, start)
        self._send(key.kb, row, start, end, state, first < last and start == end)
        starts[first:last], times[first:last], key.states[first:last] = [start], [end], [state]
        self._opened.append((row, end))
        self._merged += [row] * (last - first)

    def _extended(self, key: KeyWindows, row: int, at: int, end: int) -> None:
        """Adds a record to one session, which begins when it did."""
        kb, start, last = key.kb, key.starts[at], key.times[at]
        self._send_back(key, row, at, at + 1, start == end)
        key.states[at] = state = self._add(key.states[at], row, kb, start)
        self._send(kb, row, start, end, state, start == end)
        if end != last:
            key.times[at] = end
            self._opened.append((row, end))
            self._merged.append(row)

    def _send_back(self, key: KeyWindows, row: int, first: int, last: int, moment: bool) -> None:
        """Takes sessions back, unless the record joins one of its `moment`."""
        if not self._final and not moment:
            back = None if self._entries else -1
            for at in range(first, last):
                self._sent.append((row, key.starts[at], key.times[at], back))

    def _send(self, kb: bytes, row: int, start: int, end: int, state: Any, joins: bool) -> None:
        """Sends a session. One of a moment that a record `joins` is not taken back: it is the old row of itself."""
        if not self._final:
            if not (joins and self._again):
                self._new.append(len(self._sent))
            value = self._value(kb, start, end, end, state) if self._entries else state
            self._sent.append((row, start, end, value))

    def _together(self, key: KeyWindows, own: slice, start: int) -> Any:
        """What the sessions hold together, with their entries moved to those of the new session."""
        merged = self._nothing
        for begun, state in zip(key.starts[own], key.states[own], strict=True):
            if begun == start:  # the first one
                merged = state
                continue
            merged = self._calls.merge(merged, state, key.kb, start, begun)
            self._clear([key.kb], [begun])
        return merged

    def _stored(self, kb: bytes, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        reach = max(first - self._size, self._state.closed + 1)
        for start, data in self._scan(kb, 0, last + self._size):
            if self._folding.time_of(data) < reach:
                return
            yield start, data

    def _left_before(self, time: int, now: int, closed: int) -> int:
        """The place in time up to which windows leave their groups before a record of this time."""
        # The clock may have moved before the record.
        return closed if now > time else max(self._closed, self._closed_up_to(self._stream))

    def _left_up_to(self) -> int:
        state = self._state
        return max(self._closed, min(state.closed, self._closed_up_to(state.stream_time)))

    def _leave(self, key: KeyWindows, own: slice) -> None:
        self._passed.of_group(key, key.times, own)
        self._clear_all(key, own)

    def _leave_unreached(self, closing: Windows) -> None:
        self._remove_groups(closing.take(np.flatnonzero(closing.place <= self._left_up_to())))

    def _forget(self, windows: Windows) -> None:
        self._gone.of_store(windows)

    def _end(self, timing: Timing) -> None:
        super()._end(timing)
        place = np.array(self._passed.place, dtype=np.int64)
        self._gone.extend(self._passed.take(np.flatnonzero(place <= self._state.forgotten).tolist()))

    def _shown(self) -> Sequence[bytes]:
        windows = self._passed.windows()
        return windows.take(np.flatnonzero(windows.place > self._state.forgotten)).behind(self._state.times)

    def _forgotten_up_to(self, clock: Int64s, highest: Int64s) -> Int64s:
        unseen = self._unseen_up_to
        return clock - self._held if unseen is None else np.full(len(clock), unseen, dtype=np.int64)

    def _rank(self, start: int, kb: bytes) -> bytes:
        return _START.pack(start) + kb

    def _places(self, key: KeyWindows) -> list[int]:
        return key.times

    def _place(self, start: int, time: int) -> int:
        return time

    def _ends(self, place: Number, start: Number) -> Number:
        return place

    def _tell(self, flow: Flow) -> None:
        super()._tell(flow)
        if self._longest >= 0:
            self._site.peak(LONGEST_SESSION, self._longest)
