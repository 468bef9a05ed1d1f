"""Sliding windows in a batch. A window's place in time is its start.

For one record: `tests/oracle/records/aggregate/sliding_windows.py`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any

import numpy as np

from vsc.runtime.operators.aggregate.windows.moving import MovingWindows, Number
from vsc.runtime.operators.aggregate.windows.noted import KeyWindows
from vsc.runtime.records import Int64s

__all__ = ["SlidingColumns"]

Rows = tuple[tuple[bytes, bytes], ...]
Kept = tuple[int, Any, Rows]
"""A window as it was before the record: its time, its state, and its accumulators' entries, if they keep any."""


class SlidingColumns(MovingWindows):
    """For each record the window that ends at it, and the one that begins right after it."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._hides = not self._final and self._site.batch.clock is None
        self._highest = self._state.highest

    def _take(self, key: KeyWindows, row: int, time: int, now: int, closed: int) -> None:
        if time <= closed:
            self._refused.append(row)
            return
        if self._numbered:
            self._arrive(row, time)
        starts, size = key.starts, self._size
        first = time - 2 * size if time > 2 * size else 0
        if self._hides:
            first = max(first, self._hidden(now, self._highest) + 1)
        low, high = bisect_left(starts, first), bisect_right(starts, time + 1)
        if time < size:
            self._early(key, row, time, closed, low, high)
        else:
            self._normal(key, row, time, closed, low, high)

    def _normal(self, key: KeyWindows, row: int, time: int, closed: int, low: int, high: int) -> None:
        starts, times, lowest, at = key.starts, key.times, time - self._size, high - 1
        right, left, previous, own_left = None, None, -1, False
        if at >= low and starts[at] > time:
            at -= 1
        elif at >= low and starts[at] > lowest and times[at] > time:
            right = self._kept(key, at)
        while at >= low and starts[at] > lowest:
            self._join(key, row, time, closed, at)
            at -= 1
        if at >= low and starts[at] == lowest:
            previous, own_left = times[at], True
            self._join(key, row, time, closed, at)
            if previous >= time:
                return  # an earlier record of exactly this time has made all windows
            at -= 1
        if at >= low:
            previous = times[at]
            if previous >= lowest and not own_left:
                left = self._kept(key, at)
        if lowest <= previous + 1 > 0:
            self._right_of_previous(key, row, time, closed, previous + 1, low)
        if not own_left:
            self._create(key, row, time, closed, at + 1, lowest, left)
        if right is not None:
            self._own_right(key, row, time + 1, right)

    def _early(self, key: KeyWindows, row: int, time: int, closed: int, low: int, high: int) -> None:
        """As `_normal`, for a record in the first window that there can be, which begins at 0."""
        starts, times = key.starts, key.times
        combined, own_right = low < high and starts[low] == 0, low < high and starts[high - 1] > time
        last, right = times[low] if combined else -1, None
        for at in range(low + combined, high - own_right):
            right = self._kept(key, at)
            self._join(key, row, time, closed, at)
        if right is None and last > time:
            right = self._kept(key, low)
        if not own_right and right is not None and right[0] > time:
            self._own_right(key, row, time + 1, right)
        if combined and last < time:
            self._right_of_previous(key, row, time, closed, last + 1, low)
        if combined:
            self._join(key, row, time, closed, low)
        else:
            self._create(key, row, time, closed, low, 0, None)

    # --------------------------------------------------------------------------------------------------- one window

    def _join(self, key: KeyWindows, row: int, time: int, closed: int, at: int) -> None:
        """Adds the record to an existing window, if it is open."""
        start = key.starts[at]
        if start <= closed:
            self._late.append(row)
            return
        key.states[at] = state = self._add(key.states[at], row, key.kb, start)
        last = key.times[at]
        if time > last:
            key.times[at] = last = time
        if not self._final:
            self._send(key.kb, row, start, last, state)

    def _create(
        self, key: KeyWindows, row: int, time: int, closed: int, at: int, start: int, kept: Kept | None
    ) -> None:
        """Makes a new window, at this place among all, of what `kept` holds and the record, if it is open."""
        if start <= closed:
            self._late.append(row)
            return
        starts = key.starts
        if again := at < len(starts) and starts[at] == start:
            # The window that ends at the record is the one that begins right after the previous record: Kafka makes and
            # sends it twice.
            self._clear([key.kb], [start])
        if kept is None:
            state = self._add(self._nothing, row, key.kb, start)
        else:
            self._put_entries(key.kb, start, kept[2])
            state = self._add(kept[1], row, key.kb, start)
        if again:
            key.times[at], key.states[at] = time, state
        else:
            self._insert(key, row, at, start, time, state)
        if not self._final:
            self._send(key.kb, row, start, time, state)

    def _right_of_previous(self, key: KeyWindows, row: int, time: int, closed: int, start: int, low: int) -> None:
        """Makes the window that begins right after the previous record, unless it exists."""
        starts = key.starts
        at = bisect_left(starts, start, low)
        if at == len(starts) or starts[at] != start:
            self._create(key, row, time, closed, at, start, None)

    def _own_right(self, key: KeyWindows, row: int, start: int, right: Kept) -> None:
        """Makes the window that begins right after the record, of the window found with later records."""
        last, state, entries = right
        self._put_entries(key.kb, start, entries)
        self._insert(key, row, bisect_left(key.starts, start), start, last, state)
        if not self._final:
            self._send(key.kb, row, start, last, state)

    def _insert(self, key: KeyWindows, row: int, at: int, start: int, time: int, state: Any) -> None:
        key.starts.insert(at, start)
        key.times.insert(at, time)
        key.states.insert(at, state)
        self._opened.append((row, start))
        if start > self._highest:
            self._highest = start

    def _send(self, kb: bytes, row: int, start: int, time: int, state: Any) -> None:
        if self._entries:
            state = self._value(kb, start, start + self._size, time, state)
        self._sent.append((row, start, time, state))

    def _kept(self, key: KeyWindows, at: int) -> Kept:
        if not self._entries:
            return key.times[at], key.states[at], ()
        scope = self._state.scope(key.kb, key.starts[at])
        rows = tuple((row[len(scope) :], value) for row, value in self._state.rows(scope))
        return key.times[at], key.states[at], rows

    def _put_entries(self, kb: bytes, start: int, entries: Rows) -> None:
        if entries:
            scope = self._state.scope(kb, start)
            self._kv.write([(scope + suffix, value) for suffix, value in entries])

    # --------------------------------------------------------------------------------------------------- in time

    def _stored(self, kb: bytes, first: int, last: int) -> Iterable[tuple[int, bytes]]:
        hidden = self._hidden(self._state.stream_time, self._state.highest) if self._hides else -1
        return self._scan(kb, max(0, first - 2 * self._size, hidden + 1), last + 1)

    def _hidden(self, clock: int, highest: int) -> int:
        """The place in time up to which records no longer find windows."""
        return min(highest - self._grace - 2 * self._size, self._closed_up_to(clock))  # never one that is open still

    def _forgotten_up_to(self, clock: Int64s, highest: Int64s) -> Int64s:
        # A record that is only just in time looks back over the windows up to twice the difference before it.
        reached = clock - self._grace - 3 * self._size - 1
        if self._unseen_up_to is not None:
            return np.minimum(reached, self._unseen_up_to)
        if not self._hides:
            return np.maximum(reached, -1)
        hidden = np.minimum(highest - self._grace - 2 * self._size, clock - self._held)  # never one that is open still
        return np.maximum(hidden, reached)

    def _left_up_to(self) -> int:
        return self._state.forgotten

    def _places(self, key: KeyWindows) -> list[int]:
        return key.starts

    def _place(self, start: int, time: int) -> int:
        return start

    def _ends(self, place: Number, start: Number) -> Number:
        return start + self._size
