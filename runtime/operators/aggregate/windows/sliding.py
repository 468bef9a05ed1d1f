"""Sliding windows in a batch. A window's place in time is its start.

For one record: `tests/oracle/records/aggregate/sliding_windows.py`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any

from vsc.runtime.operators.aggregate.functions.entries import At
from vsc.runtime.operators.aggregate.groups.derived import AnyGroup
from vsc.runtime.operators.aggregate.windows.moving import Args, KeyWindows, MovingWindows, Number

__all__ = ["SlidingColumns"]

Rows = tuple[tuple[bytes, bytes], ...]
Kept = tuple[AnyGroup, Rows]
"""A window as it was before the record: its group and its accumulators' entries, if they keep any."""


class _Arrival:
    """The record being added, the windows that it has found in its group, and what it changes."""

    __slots__ = ("args", "at", "close_time", "created", "joined", "kb", "late", "left", "previous", "right")

    def __init__(self, kb: bytes, args: Args, at: At, close_time: int) -> None:
        self.kb, self.args, self.at, self.close_time = kb, args, at, close_time
        self.right: Kept | None = None
        self.left: Kept | None = None
        self.previous: int | None = None
        self.joined: list[tuple[int, AnyGroup]] = []
        self.created: dict[int, AnyGroup] = {}
        self.late = 0


class SlidingColumns(MovingWindows):
    """For each record the window that ends at it, and the one that begins right after it."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._hides = not self._final and self._site.batch.clock is None

    def _take(self, key: KeyWindows, time: int, args: Args) -> None:
        state, size, starts, groups = self._state, self._size, key.starts, key.groups
        if starts and starts[0] <= state.forgotten:
            self._drop(key, state.forgotten)
        clock = self._now
        closed = max(clock - self._held, state.closed)
        if time <= closed:
            self._late.append(self._row)
            return
        new = _Arrival(key.kb, args, state.arrive(time), closed + size + 1)
        state.stream_time = clock
        first = time - 2 * size if time > 2 * size else 0
        if self._hides:
            first = max(first, self._hidden_up_to(clock, state.highest) + 1)
        low, high = bisect_left(starts, first), bisect_right(starts, time + 1)
        if time < size:
            self._early(new, key, low, high)
        else:
            self._normal(new, key, low, high)
        if new.late:
            self._late += [self._row] * new.late
        for number, group in new.joined:
            groups[number] = group
        for start, group in new.created.items():
            number = bisect_left(starts, start)
            starts.insert(number, start)
            groups.insert(number, group)
            self._opened(start)

    def _normal(self, new: _Arrival, key: KeyWindows, low: int, high: int) -> None:
        time, size, starts, groups = new.at.time, self._size, key.starts, key.groups
        own_left = own_right = False
        for number in range(high - 1, low - 1, -1):
            start, group = starts[number], groups[number]
            end = start + size
            if start > time:
                own_right = True
            elif end > time:
                new.right = new.right or self._kept(new.kb, start, group)
                self._join(new, number, start, group)
            elif end == time:
                own_left = True
                self._join(new, number, start, group)
                if group.time >= time:
                    return  # an earlier record of exactly this time has made all windows
                new.previous = group.time
            else:
                new.left, new.previous = self._kept(new.kb, start, group), group.time
                break
        if new.previous is not None and new.previous + 1 + size >= time:
            self._right_of_previous(new, key, low, high)
        if not own_left:
            beside = new.previous is not None and time - size <= new.previous
            self._create(new, time - size, new.left if beside else None)
        if not own_right:
            self._own_right(new)

    def _early(self, new: _Arrival, key: KeyWindows, low: int, high: int) -> None:
        time = new.at.time
        combined = -1
        own_right = False
        for number in range(low, high):
            start, group = key.starts[number], key.groups[number]
            if start == 0:
                combined = number
                new.previous = group.time if group.time < time else None
            elif start <= time:
                new.right = self._kept(new.kb, start, group)
                self._join(new, number, start, group)
            else:
                own_right = True
        if new.right is None and combined >= 0 and key.groups[combined].time > time:
            new.right = self._kept(new.kb, 0, key.groups[combined])
        if not own_right:
            self._own_right(new)
        if new.previous is not None:
            self._right_of_previous(new, key, low, high)
        if combined < 0:
            self._create(new, 0, None)
        else:
            self._join(new, combined, 0, key.groups[combined])

    # --------------------------------------------------------------------------------------------------- one window

    def _join(self, new: _Arrival, number: int, start: int, group: AnyGroup) -> None:
        """Adds the record to an existing window, if it is open."""
        if start + self._size < new.close_time:
            new.late += 1
            return
        group = group.copy()
        self._add(new, start, group)
        new.joined.append((number, group))

    def _create(self, new: _Arrival, start: int, kept: Kept | None) -> None:
        """Makes a new window of what `kept` holds and the record, if it is open."""
        if start + self._size < new.close_time:
            new.late += 1
            return
        if start in new.created and self._entries:
            # The window that ends at the record may be the one that begins right after the previous record: Kafka makes
            # and sends it twice.
            self._state.clear(self._scope(new.kb, start))
        if kept is None:
            group = self._calls.empty()
        else:
            group = kept[0].copy()
            self._put_entries(new.kb, start, kept[1])
        group.time = new.at.time
        self._add(new, start, group)
        new.created[start] = group

    def _right_of_previous(self, new: _Arrival, key: KeyWindows, low: int, high: int) -> None:
        """Makes the window that begins right after the previous record, unless it exists."""
        assert new.previous is not None
        start = new.previous + 1
        number = bisect_left(key.starts, start, low, high)
        if number == high or key.starts[number] != start:
            self._create(new, start, None)

    def _own_right(self, new: _Arrival) -> None:
        """Makes the window that begins right after the record, if it has records: those of the window found."""
        if new.right is None or new.right[0].time <= new.at.time:
            return
        group, entries = new.right
        start = new.at.time + 1
        self._put_entries(new.kb, start, entries)
        new.created[start] = group
        if not self._final:
            self._send(new.kb, start, group)

    def _add(self, new: _Arrival, start: int, group: AnyGroup) -> None:
        at = new.at
        self._calls.add(group, new.args, at, self._kv, self._scope(new.kb, start) if self._entries else b"")
        if at.time > group.time:
            group.time = at.time
        if not self._final:
            self._send(new.kb, start, group)

    def _send(self, kb: bytes, start: int, group: AnyGroup) -> None:
        end = start + self._size
        result: Any = self._result(kb, start, end, group) if self._entries else group
        self._sent.append((self._row, kb, start, end, result, True, group.time))

    def _kept(self, kb: bytes, start: int, group: AnyGroup) -> Kept:
        if not self._entries:
            return group, ()
        scope = self._scope(kb, start)
        return group, tuple((row[len(scope) :], value) for row, value in self._state.rows(scope))

    def _put_entries(self, kb: bytes, start: int, entries: Rows) -> None:
        if entries:
            scope = self._scope(kb, start)
            self._kv.write([(scope + suffix, value) for suffix, value in entries])

    # --------------------------------------------------------------------------------------------------- in time

    def _stored(self, kb: bytes, first: int, last: int) -> Iterable[tuple[int, AnyGroup]]:
        hidden = self._hidden_up_to(self._state.stream_time, self._state.highest)
        return self._scan(kb, max(0, first - 2 * self._size, hidden + 1), last + 1)

    def _hidden_up_to(self, clock: int, highest: int) -> int:
        """The place in time up to which records no longer find windows."""
        if not self._hides:
            return -1
        return min(highest - self._grace - 2 * self._size, self._closed_up_to(clock))  # never one that is open still

    def _forgotten_up_to(self, clock: int, highest: int) -> int:
        # A record that is only just in time looks back over the windows up to twice the difference before it.
        reached = clock - self._grace - 3 * self._size - 1
        unseen = self._unseen_up_to
        return max(self._hidden_up_to(clock, highest), reached) if unseen is None else min(reached, unseen)

    def _left_up_to(self) -> int:
        return self._state.forgotten

    def _until(self, key: KeyWindows, last: int) -> list[tuple[int, int, AnyGroup]]:
        passed = bisect_right(key.starts, last)
        return [(start, start, group) for start, group in zip(key.starts[:passed], key.groups, strict=False)]

    def _place(self, start: int, group: AnyGroup) -> int:
        return start

    def _ends(self, place: Number, start: Number) -> Number:
        return start + self._size
