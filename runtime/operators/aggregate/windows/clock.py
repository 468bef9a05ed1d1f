"""Which tumbling or hopping windows the records of a batch reach, and when windows close: only array expressions.

A window closes when the clock is the grace past the window's end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vsc.plan.nodes import Window
from vsc.runtime.operators.aggregate.windows.grid import grid_of
from vsc.runtime.operators.clock import Timing
from vsc.runtime.operators.columns.segments import numbered
from vsc.runtime.records import Int64s
from vsc.runtime.state.versioned_columns import spread

__all__ = ["Reached", "WindowClock"]


@dataclass(frozen=True, slots=True)
class Reached:
    """What records change: pairs of a record and a window's start, by record, then by start.

    `number` is that of the window among all. `late`: the records of the other pairs, whose window is closed.
    """

    record: Int64s
    start: Int64s
    number: Int64s
    late: Int64s

    def distinct(self, key: Int64s) -> tuple[Int64s, Int64s]:
        """Windows of groups, numbered in the order in which they are first reached: each pair's window, each window's
        first pair.

        `key` is the number of each record's key.
        """
        return numbered(key[self.record], self.number)


class WindowClock:
    """Stream time through the records of a batch.

    `closed` is the start up to which windows are closed at each record, `before` the one before the batch, `end` the
    one at its end, of which `kept` stays.
    """

    __slots__ = ("_grace", "_grid", "before", "closed", "end", "kept", "timing")

    def __init__(self, window: Window, closed: int, timing: Timing) -> None:
        self._grid, self._grace, self.before, self.timing = grid_of(window), window.grace, closed, timing
        # what was closed under a shorter grace stays closed
        self.closed: Int64s = np.maximum(self.closed_by(timing.clock), closed)
        ends = self.closed_by(np.array([timing.now, min(timing.kept, timing.now)], dtype=np.int64))
        self.end, self.kept = np.maximum(ends, closed).tolist()

    def closed_by(self, clock: Int64s) -> Int64s:
        """The start up to which such a clock closes windows."""
        return self._grid.ended_up_to(clock - self._grace)

    def reach(self, time: Int64s) -> Reached:
        """The windows that records of these times change."""
        first, last = self._grid.reached(time)
        many = last - first + 1
        record, number = np.repeat(np.arange(len(time)), many), spread(first, many)
        start = self._grid.starts(number)
        is_open = start > self.closed[record]
        return Reached(record[is_open], start[is_open], number[is_open], record[~is_open])

    def due(self, start: Int64s) -> Int64s:
        """When each of these windows closes."""
        return self._grid.ends_of(start) + self._grace

    def closing(self, start: Int64s) -> Int64s:
        """The event at which each of these windows closes, which all close in this batch."""
        return self.timing.passes(self.due(start))

    def forgotten(self, reached: Reached, highest: int) -> Int64s:
        """The start up to which windows are forgotten after each record, -1 for none.

        Windows are forgotten only when windows close. `highest` is the highest start of a window before the batch: a
        window is shown until another one begins its size and grace later, as in Kafka's window store.
        """
        opened = np.full(len(self.closed), highest, dtype=np.int64)
        np.maximum.at(opened, reached.record, reached.start)
        opened = np.maximum.accumulate(opened)
        before = np.concatenate([np.array([self.before]), self.closed[:-1]])
        limit = np.minimum(self.closed, self.closed_by(opened))
        return np.maximum.accumulate(np.where(self.closed > before[: len(limit)], limit, -1))
