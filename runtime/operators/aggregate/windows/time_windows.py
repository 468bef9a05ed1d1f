"""Tumbling and hopping windows, record by record: for batches in which a record fails, and for the end of the input.

A record whose result cannot be computed is not part of any window and does not move the clock, so the results after it
depend on it. A window's place in time is its start.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from vsc.runtime.operators.aggregate.functions.calls import Group
from vsc.runtime.operators.aggregate.windows.moving import Args, KeyWindows, MovingWindows, Number

__all__ = ["TimeWindows"]


class TimeWindows(MovingWindows):
    """A record changes every window that contains it and is not closed, by ascending start."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._advance = self._window.advance

    def _take(self, key: KeyWindows, time: int, args: Args) -> None:
        state, size, advance = self._state, self._size, self._advance
        closed, at = max(self._closed_up_to(self._now), state.closed), state.arrive(time)
        changed: list[tuple[int, bool, Group]] = []
        for start in range(max(0, time - size + advance) // advance * advance, time + 1, advance):
            if start <= closed:
                self._late.append(self._row)
                continue
            number = bisect_left(key.starts, start)
            there = number < len(key.starts) and key.starts[number] == start
            before = None
            if there and self._olds:
                before = self._result(key.kb, start, start + size, key.groups[number])
            group = key.groups[number].copy() if there else self._calls.empty()
            self._calls.add(group, args, at, self._kv, self._scope(key.kb, start))
            group.time = max(group.time, time)
            if not self._final:
                new = self._result(key.kb, start, start + size, group)
                self._sent.append((self._row, key.kb, start, start + size, new, before, False, group.time))
            changed.append((start, there, group))
        state.stream_time = self._now
        for start, there, group in changed:
            number = bisect_left(key.starts, start)
            if there:
                key.groups[number] = group
            else:
                key.starts.insert(number, start)
                key.groups.insert(number, group)
                self._opened(start)

    def _stored(self, kb: bytes, first: int, last: int) -> Iterator[tuple[int, Group]]:
        return self._scan(kb, max(0, first - self._size + 1, self._state.closed + 1), last)

    def _forgotten_up_to(self, clock: int, highest: int) -> int:
        unseen = self._unseen_up_to()
        # Kafka's window store shows a window until another one begins its retention (size and grace) later.
        return highest - self._grace - self._size if unseen is None else unseen

    def _place(self, start: int, group: Group) -> int:
        return start

    def _ends(self, place: Number, start: Number) -> Number:
        return start + self._size
