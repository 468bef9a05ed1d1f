"""Tumbling and hopping windows, record by record: for batches in which a record fails, and for the end of the input.

A record whose result cannot be computed is not part of any window and does not move the clock, so the results after it
depend on it. A window's place in time is its start.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from vsc.runtime.operators.aggregate.functions.calls import Group
from vsc.runtime.operators.aggregate.windows.grid import grid_of
from vsc.runtime.operators.aggregate.windows.moving import Args, KeyWindows, MovingWindows, Number
from vsc.runtime.records import Int64s

__all__ = ["TimeWindows"]


class TimeWindows(MovingWindows):
    """A record changes every window that contains it and is not closed, by ascending start."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._grid = grid_of(self._window)

    def _take(self, key: KeyWindows, time: int, args: Args) -> None:
        state = self._state
        closed, at = max(self._closed_up_to(self._now), state.closed), state.arrive(time)
        changed: list[tuple[int, bool, Group]] = []
        for start, end in self._reached(time):
            if start <= closed:
                self._late.append(self._row)
                continue
            number = bisect_left(key.starts, start)
            there = number < len(key.starts) and key.starts[number] == start
            group = key.groups[number].copy() if there else self._calls.empty()
            self._calls.add(group, args, at, self._kv, self._scope(key.kb, start))
            group.time = max(group.time, time)
            if not self._final:
                new = self._result(key.kb, start, end, group)
                self._sent.append((self._row, key.kb, start, end, new, True, group.time))
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

    def _reached(self, time: int) -> list[tuple[int, int]]:
        """The bounds of the windows that hold this time."""
        first, last = self._grid.reached(np.array([time]))
        number = np.arange(first[0], last[0] + 1)
        return list(zip(self._grid.starts(number).tolist(), self._grid.ends(number).tolist(), strict=True))

    def _stored(self, kb: bytes, first: int, last: int) -> Iterator[tuple[int, Group]]:
        number, _ = self._grid.reached(np.array([first]))
        return self._scan(kb, max(int(self._grid.starts(number)[0]), self._state.closed + 1), last)

    def _closed_up_to(self, clock: int) -> int:
        return int(self._grid.ended_up_to(np.array([clock - self._grace]))[0])

    def _due(self, place: Int64s) -> Int64s:
        return self._grid.ends_of(place) + self._grace

    def _forgotten_up_to(self, clock: int, highest: int) -> int:
        unseen = self._unseen_up_to
        # Kafka's window store shows a window until another one begins its retention (size and grace) later.
        return self._closed_up_to(highest) if unseen is None else unseen

    def _place(self, start: int, group: Group) -> int:
        return start

    def _ends(self, place: Number, start: Number) -> Number:
        ends: Any = self._grid.ends_of(np.atleast_1d(np.asarray(start)))
        return cast(Number, ends if np.ndim(start) else int(ends[0]))
