"""When the windows of a batch close and are forgotten, for windows in a loop over its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from vsc.runtime.operators.aggregate.groups.state import AggregateState
from vsc.runtime.operators.clock import Timing
from vsc.runtime.records import Int64s

__all__ = ["Passing"]


class Passing:
    """Stream time through the records of a batch, and what it passes.

    `now` is the clock at each record, `closed` the place in time up to which windows are closed: `held` before it.
    The state's `closed` may be later than by the clock: what a shorter grace has closed stays closed.
    """

    def __init__(self, state: AggregateState, held: int, moving: Int64s) -> None:
        self._state, self._held, self._before = state, held, state.stream_time
        self._closed = state.closed
        self.now = np.maximum.accumulate(np.append(self._before, moving))[1:]
        self.closed = np.maximum(self.now - held, self._closed)
        self._up_to = self.closed
        self._open = self._rows = self._forgotten = np.zeros(0, dtype=np.int64)

    def move(
        self,
        refused: Sequence[int],
        opened: Sequence[tuple[int, int]],
        merged: Sequence[int],
        forgotten_up_to: Callable[[Int64s, Int64s], Int64s],
    ) -> None:
        """Moves the state through the records: its clock, what is closed, forgotten, open, and the highest place.

        `refused` are the records that do not move it, `opened` those that open a window, with its place in time, and
        `merged` those that merge one into another.
        """
        state, records = self._state, len(self.now)
        stream = self.now.copy()
        stream[np.array(refused, dtype=np.int64)] = self._before
        stream = np.maximum.accumulate(np.append(self._before, stream))[1:]
        self._up_to = np.maximum(stream - self._held, self._closed)
        row, place = np.array(opened, dtype=np.int64).reshape(-1, 2).T
        highest = np.full(records, state.highest, dtype=np.int64)
        np.maximum.at(highest, row, place)
        highest = np.maximum.accumulate(highest)
        ends = np.bincount(np.array(merged, dtype=np.int64), minlength=records)
        self._open = state.open + np.cumsum(np.bincount(row, minlength=records) - ends)
        self._rows = np.flatnonzero(np.diff(self._up_to, prepend=self._closed))
        limits = np.minimum(self._up_to, forgotten_up_to(stream, highest))[self._rows]
        self._forgotten = np.maximum.accumulate(np.append(state.forgotten, limits))[1:]
        state.stream_time, state.closed = int(stream[-1]), int(self._up_to[-1])
        state.highest, state.open = int(highest[-1]), int(self._open[-1])
        state.forgotten = int(self._forgotten[-1]) if len(limits) else state.forgotten

    def end(self, timing: Timing, forgotten_up_to: Callable[[Int64s, Int64s], Int64s]) -> None:
        """Moves the state to the end of the batch."""
        state = self._state
        state.stream_time = timing.kept
        if (closed := timing.now - self._held) > state.closed:
            state.closed = closed
            clock, highest = (np.array([of], dtype=np.int64) for of in (timing.kept, state.highest))
            state.forgotten = max(state.forgotten, min(closed, int(forgotten_up_to(clock, highest)[0])))
            self._rows = np.append(self._rows, len(self.now))
            self._forgotten = np.append(self._forgotten, state.forgotten)

    def forgetting(self, place: Int64s) -> Int64s:
        """The records after which windows are forgotten: the first one, if they should have been before the batch.

        So it is with a final window that has moved to another partition, and is found only by its key from there on.
        """
        rows = self._rows if len(self._rows) else np.zeros(1, dtype=np.int64)
        return rows[np.searchsorted(self._forgotten, place)]

    def most_open(self, closed: Sequence[int]) -> int:
        """How many windows were open at most, given the places of those that the batch has closed."""
        places = np.sort(np.array(closed, dtype=np.int64))
        return int((self._open - np.searchsorted(places, self._up_to, side="right")).max(initial=0))
