"""Which records of two streams meet: an interval join over rows that are sorted by key and time.

The rows of a side are what it had before the batch, then what the batch brings. A row's arrival is its place among
the batch's records of both sides, or -1. A pair is found once, when its later record arrives: that one *looks* for the
other, its *partner*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vsc.runtime.records import Int64s, Mask

__all__ = ["Pairs", "Rows", "meeting"]

_NO_ROWS = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one side: the number of each one's key, its time and its arrival; those of a key in the order in
    which they came. `stored`: how many were there before the batch."""

    key: Int64s
    time: Int64s
    arrival: Int64s
    stored: int


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs by the record that looks, then by the partner's time and arrival.

    `event` is the arrival of the one that looks, which is the left one where `left_looks`; `left` and `right` are
    places in the rows of the sides.
    """

    event: Int64s
    left: Int64s
    right: Int64s
    left_looks: Mask

    def __len__(self) -> int:
        return len(self.event)

    def partners(self, side: int) -> tuple[Int64s, Int64s]:
        """The partners of a side, and the events at which they were found, ascending."""
        chosen = self.left_looks if side else ~self.left_looks
        return (self.right if side else self.left)[chosen], self.event[chosen]

    def looked(self, side: int, rows: Rows) -> Mask:
        """Which of a side's records of the batch have found a partner."""
        chosen = ~self.left_looks if side else self.left_looks
        found = np.zeros(len(rows.time) - rows.stored, dtype=np.bool_)
        found[(self.right if side else self.left)[chosen] - rows.stored] = True
        return found


def meeting(left: Rows, right: Rows, before: int, after: int, limits: tuple[Int64s, Int64s]) -> Pairs:
    """All pairs: the right record is at most `before` earlier and `after` later than the left one.

    `limits`: by side, at each event the time up to which its rows are hidden.
    """
    # Each pair once: the batch's left rows with all right ones; the batch's right rows only with the left ones from
    # before, as those of the batch have met them already.
    one, other = _within(left, right, before, after, slice(left.stored, None), slice(0, None))
    back, forth = _within(right, left, after, before, slice(right.stored, None), slice(0, left.stored))
    lefts, rights = np.concatenate([one, forth]), np.concatenate([other, back])
    own, others = left.arrival[lefts], right.arrival[rights]
    left_looks, event = own > others, np.maximum(own, others)
    # The later one looks, so `event` is its arrival, and never -1: one of the two is of the batch.
    time = np.where(left_looks, right.time[rights], left.time[lefts])
    seen = time > np.where(left_looks, limits[1][event], limits[0][event])
    partner = np.where(left_looks, rights, lefts)
    # Rows of a side stand in the order in which they came, so the place of a partner also tells equal times apart.
    order = np.lexsort((partner, time, event))
    order = order[seen[order]]
    return Pairs(event[order], lefts[order], rights[order], left_looks[order])


def _within(
    asking: Rows, asked: Rows, before: int, after: int, of_asking: slice, of_asked: slice
) -> tuple[Int64s, Int64s]:
    """The places of rows that are close enough in time, where the rows `of_asking` may meet those `of_asked`."""
    key, time = asking.key[of_asking], asking.time[of_asking]
    others, times = asked.key[of_asked], asked.time[of_asked]
    if not len(key) or not len(others):
        return _NO_ROWS, _NO_ROWS
    order = np.lexsort((times, others))
    # (key, rank of the time) as one number: ranks are at most `len(known)`, so no bound reaches into the next key. A
    # rank instead of the time keeps the product within 64 bits, whatever the times are.
    known = np.unique(times)
    span = len(known) + 1
    places = others[order] * span + np.searchsorted(known, times[order])
    low = np.searchsorted(places, key * span + np.searchsorted(known, time - before, side="left"))
    high = np.searchsorted(places, key * span + np.searchsorted(known, time + after, side="right"))
    # Those that each row meets are adjacent in `order`, from `low` to `high`: the ranges, one after the other.
    counts = high - low
    row = np.repeat(np.arange(len(key), dtype=np.int64), counts)
    at = np.arange(len(row), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts - low, counts)
    return row + (of_asking.start or 0), order[at]
