"""Which right records count for each left one: ranges over rows that are sorted by key and time.

Rows that come later than what they would count for are left out, so a range is expanded to the places of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vsc.runtime.operators.stream_stream_join.pairs import Rows
from vsc.runtime.records import Int64s, Mask

__all__ = ["Asked", "Found", "Sorted"]

_MOST = 1 << 21
"""How many rows are looked at together: it bounds the memory that they take."""


@dataclass(frozen=True, slots=True)
class Asked:
    """For each left record: the number of its key, the first and the last time of what counts for it, and how many
    records of the batch come before its result."""

    key: Int64s
    first: Int64s
    last: Int64s
    seen: Int64s

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, slots=True)
class Found:
    """The rows that count for the left records `start` to `end`, by left record, then by (time, place): the number of
    the left one, and of the row."""

    start: int
    end: int
    left: Int64s
    row: Int64s


class Sorted:
    """The right rows by key, time and place. `order` has the number of the row at each place."""

    def __init__(self, rows: Rows) -> None:
        self.order = np.lexsort((rows.time, rows.key))  # stable: equal times in the order in which they came
        self._known = np.unique(rows.time)
        # (key, rank of the time) as one number: see `stream_stream_join.pairs`
        self._span = len(self._known) + 1
        time = rows.time[self.order]
        self._places = rows.key[self.order] * self._span + np.searchsorted(self._known, time)
        self._arrival = rows.arrival[self.order]

    def bounds(self, asked: Asked) -> tuple[Int64s, Int64s]:
        """Where the rows of each left record begin and end."""
        base = asked.key * self._span
        low = np.searchsorted(self._places, base + np.searchsorted(self._known, asked.first, side="left"))
        high = np.searchsorted(self._places, base + np.searchsorted(self._known, asked.last, side="right"))
        return low, np.maximum(low, high)

    def any(self, asked: Asked) -> Mask:
        """Which left records have a row at all."""
        found = np.zeros(len(asked), dtype=np.bool_)
        for one in self.found(asked):
            found[one.left] = True
        return found

    def found(self, asked: Asked) -> Iterator[Found]:
        """All rows, for some left records at a time."""
        low, high = self.bounds(asked)
        counts = high - low
        ends = np.cumsum(counts)
        start = 0
        while start < len(counts):
            before = int(ends[start - 1]) if start else 0
            end = max(int(np.searchsorted(ends, before + _MOST, side="right")), start + 1)
            yield self._expanded(asked, low, counts, start, end)
            start = end

    def _expanded(self, asked: Asked, low: Int64s, counts: Int64s, start: int, end: int) -> Found:
        some = counts[start:end]
        left = np.repeat(np.arange(start, end, dtype=np.int64), some)
        begun = np.cumsum(some) - some
        at = np.arange(len(left), dtype=np.int64) - np.repeat(begun - low[start:end], some)
        there = self._arrival[at] < asked.seen[left]
        return Found(start, end, left[there], self.order[at[there]])
