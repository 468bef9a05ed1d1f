"""Which tumbling or hopping windows the records of a batch reach, and when windows close: only array expressions.

A window closes when the clock is the grace past the window's end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Window
from vsc.runtime.operators.clock import Timing
from vsc.runtime.operators.columns.segments import SAFE
from vsc.runtime.records import Int64s
from vsc.runtime.state.versioned_columns import spread

__all__ = ["Reached", "WindowClock"]


@dataclass(frozen=True, slots=True)
class Reached:
    """What records change: pairs of a record and a window's start, by record, then by start.

    `late`: the records of the other pairs, whose window is closed. `advance` is the windows' advance.
    """

    record: Int64s
    start: Int64s
    late: Int64s
    advance: int

    def distinct(self, key: Int64s) -> tuple[Int64s, Int64s]:
        """Windows of groups, numbered in the order in which they are first reached: each pair's window, each window's
        first pair.

        `key` is the number of each record's key.
        """
        if not len(self.record):
            return self.record, self.record
        key, place = key[self.record], self.start // self.advance
        place, span = place - int(place.min()), int(place.max() - place.min()) + 1
        if (int(key.max()) + 1) * span >= SAFE:
            place = pa.array(place).dictionary_encode().indices.to_numpy().astype(np.int64)
            span = len(place)
        number = pa.array(key * span + place).dictionary_encode().indices.to_numpy().astype(np.int64)
        firsts = np.empty(int(number.max()) + 1, dtype=np.int64)
        firsts[number[::-1]] = np.arange(len(number))[::-1]
        return number, firsts


class WindowClock:
    """Stream time through the records of a batch.

    `closed` is the start up to which windows are closed at each record, `before` the one before the batch, `end` the
    one at its end, of which `kept` stays.
    """

    __slots__ = ("_window", "before", "closed", "end", "kept", "timing")

    def __init__(self, window: Window, closed: int, timing: Timing) -> None:
        self._window, self.before, self.timing = window, closed, timing
        # what was closed under a shorter grace stays closed
        self.closed: Int64s = np.maximum(timing.clock - window.held, closed)
        self.end, self.kept = (max(clock - window.held, closed) for clock in (timing.now, timing.kept))

    def reach(self, time: Int64s) -> Reached:
        """The windows that records of these times change."""
        size, advance = self._window.size, self._window.advance
        first = np.maximum(0, time - size + advance) // advance
        many = time // advance - first + 1
        record, start = np.repeat(np.arange(len(time)), many), spread(first, many) * advance
        is_open = start > self.closed[record]
        return Reached(record[is_open], start[is_open], record[~is_open], advance)

    def due(self, start: Int64s) -> Int64s:
        """When each of these windows closes."""
        return start + self._window.held

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
        limit = np.minimum(self.closed, opened - self._window.held)
        return np.maximum.accumulate(np.where(self.closed > before[: len(limit)], limit, -1))
