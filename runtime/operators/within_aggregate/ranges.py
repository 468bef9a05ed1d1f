"""Which right records count for each left one: ranges of rows that are sorted by key, time and place.

Rows that come later than what they would count for are cut out of these ranges, so that each is one or more *pieces*.
Few rows do, so what a call gives is found from the ends of pieces, or from few rows of each: nothing is expanded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vsc.runtime.operators.columns.segments import SAFE
from vsc.runtime.operators.stream_stream_join.pairs import Rows
from vsc.runtime.records import Int64s, Mask

__all__ = ["Asked", "Pieces", "Sorted", "highest"]

_MOST = 1 << 21
"""How many rows are looked at together: it bounds the memory that they take."""


@dataclass(frozen=True, slots=True)
class Asked:
    """For each left record: the number of its key, its time, the first and the last time of what counts for it, and how
    many records of the batch come before its result."""

    key: Int64s
    time: Int64s
    first: Int64s
    last: Int64s
    seen: Int64s


@dataclass(frozen=True, slots=True)
class Pieces:
    """Places of rows by left record: piece j has those from ``low[j]`` to ``high[j]``. The pieces of left record i
    begin at ``starts[i]``; there is one at least, which may be empty."""

    starts: Int64s
    low: Int64s
    high: Int64s

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def counts(self) -> Int64s:
        """How many rows count for each left record."""
        return self.summed(self.high - self.low)

    def summed(self, values: Int64s) -> Int64s:
        """The sum over the pieces of each left record."""
        found: Int64s = values if len(values) == len(self) else np.add.reduceat(values, self.starts)
        return found

    def most(self, values: Int64s) -> Int64s:
        """The highest value over the pieces of each left record."""
        found: Int64s = values if len(values) == len(self) else np.maximum.reduceat(values, self.starts)
        return found

    def since(self, low: Int64s) -> Pieces:
        """Without what lies before `low`, a place for each left record."""
        begin = np.maximum(self.low, np.repeat(low, self._lengths()))
        return Pieces(self.starts, begin, np.maximum(begin, self.high))

    def select(self, kept: Mask) -> Pieces:
        """The pieces of the left records where `kept` is true."""
        lengths = self._lengths()
        some, mask = lengths[kept], np.repeat(kept, lengths)
        return Pieces(np.cumsum(some) - some, self.low[mask], self.high[mask])

    def expanded(self) -> Iterator[tuple[int, int, Int64s, Int64s]]:
        """All rows, for some left records at a time: from which left record on, up to which, and for each row the
        number of its left record among these, and its place."""
        counts = self.counts
        ends, bounds, start = np.cumsum(counts), np.append(self.starts, len(self.low)), 0
        while start < len(counts):
            before = int(ends[start - 1]) if start else 0
            end = max(int(np.searchsorted(ends, before + _MOST, side="right")), start + 1)
            these = slice(int(bounds[start]), int(bounds[end]))
            left = np.repeat(np.arange(end - start), counts[start:end])
            yield start, end, left, _within(self.low[these], self.high[these])
            start = end

    def _lengths(self) -> Int64s:
        return np.diff(self.starts, append=len(self.low))


class Sorted:
    """The right rows by key, time and place. `order` has the number of the row at each place; there are `keys` keys."""

    def __init__(self, rows: Rows, keys: int) -> None:
        time = rows.time
        self._first, last = (int(time.min()), int(time.max())) if len(time) else (0, 0)
        self._span = last - self._first + 2
        self._known = None
        if self._span * (keys + 1) >= SAFE:  # (key, time) as one number; of times too far apart, their ranks
            self._known = np.unique(time)
            self._span = len(self._known) + 1
        places = rows.key * self._span + self._earlier(time)
        self.order = np.argsort(places, kind="stable")  # equal times in the order in which they came
        self._places = places[self.order]
        arrival = rows.arrival[self.order]
        self._fresh = np.flatnonzero(arrival >= 0)
        self._arrival = arrival[self._fresh]

    def pieces(self, asked: Asked) -> Pieces:
        """The rows that count for each left record."""
        low, high = self.low(asked.key, asked.first), self.low(asked.key, asked.last + 1)
        whole = Pieces(np.arange(len(low)), low, np.maximum(low, high))
        left, place = self._unseen(whole, asked.seen)
        if not len(left):
            return whole
        # Each row that is cut out ends a piece and begins the next one.
        count = 1 + np.bincount(left, minlength=len(low))
        last = np.cumsum(count) - 1
        starts = last + 1 - count
        return Pieces(starts, _filled(starts, low, place + 1), _filled(last, whole.high, place))

    def low(self, key: Int64s, time: Int64s) -> Int64s:
        """The place of the first row of each key that is not before each time."""
        return np.searchsorted(self._places, key * self._span + self._earlier(time))

    def _earlier(self, time: Int64s) -> Int64s:
        """How many times are earlier, of all that there may be."""
        if self._known is not None:
            return np.searchsorted(self._known, time)
        found: Int64s = np.clip(time - self._first, 0, self._span - 1)
        return found

    def _unseen(self, whole: Pieces, seen: Int64s) -> tuple[Int64s, Int64s]:
        """The rows of the batch that come too late to be seen: by left record, then in order, where each is."""
        low, high = (np.searchsorted(self._fresh, ends) for ends in (whole.low, whole.high))
        some = np.flatnonzero(highest(self._arrival, low, high, -1) >= seen)
        lefts, places = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for start, end, of, at in Pieces(np.arange(len(some)), low[some], high[some]).expanded():
            left = some[start:end][of]
            late = self._arrival[at] >= seen[left]
            lefts.append(left[late])
            places.append(self._fresh[at[late]])
        return np.concatenate(lefts), np.concatenate(places)


def highest(values: Int64s, low: Int64s, high: Int64s, nothing: float) -> Int64s:
    """The highest value, of integers or doubles, from each `low` to each `high`; `nothing` where there is none.

    By a sparse table, of which one row at a time is held: the highest of all 1, 2, 4, ... adjacent values. Two of them
    cover each range.
    """
    found = np.full(len(low), nothing, dtype=values.dtype)
    level = np.frexp((high - low).astype(np.float64))[1] - 1
    table, last = values, int(level.max(initial=-1))
    for step in range(last + 1):
        rows = np.flatnonzero(level == step)
        found[rows] = np.maximum(table[low[rows]], table[high[rows] - (1 << step)])
        if step < last:
            table = np.maximum(table[: -(1 << step)], table[1 << step :])
    return found


def _filled(places: Int64s, values: Int64s, others: Int64s) -> Int64s:
    """An array with `values` at these places, and the others between them."""
    found = np.empty(len(values) + len(others), dtype=np.int64)
    rest = np.ones(len(found), dtype=np.bool_)
    rest[places] = False
    found[places], found[rest] = values, others
    return found


def _within(low: Int64s, high: Int64s) -> Int64s:
    """All places from each `low` to each `high`, one range after the other."""
    counts = high - low
    found: Int64s = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts - low, counts)
    return found
