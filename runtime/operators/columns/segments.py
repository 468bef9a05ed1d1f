"""The records of a batch by group: each group's running values at its records, without a loop over records.

Guarantees: a running value is exactly that of a loop over the group's records in the order of their arrival, starting
from the group's value before the batch. Integers do not overflow (they become Python integers). Floats are added one
after the other, so every bit is the same. Groups may be without records.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.runtime.records import Int64s, Mask

__all__ = ["SAFE", "Floats", "Segments", "numbered", "positive"]

SAFE = 2**62
"""Two integers below it can be added without overflow."""

_SMALL = 1 << 16
_FEW = 16
"""With fewer groups, a round over all groups costs more than one call per group."""

Floats = npt.NDArray[np.float64]


class Segments:
    """Records sorted by group, then by arrival: `order` has the number of the record at each place.

    `group` is the group of each record in that order; the records of group g are at ``starts[g]`` to ``ends[g]``.
    """

    __slots__ = ("count", "ends", "group", "order", "starts")

    def __init__(self, group: Int64s, groups: int) -> None:
        self.order = _sorted_by(group, groups)
        self.group = group[self.order]
        lengths = np.bincount(group, minlength=groups)
        self.ends = np.cumsum(lengths)
        self.starts = self.ends - lengths
        self.count = groups

    def __len__(self) -> int:
        return len(self.order)

    @property
    def firsts(self) -> Mask:
        """Which records are the first of their group."""
        first = np.ones(len(self), dtype=np.bool_)
        first[1:] = self.group[1:] != self.group[:-1]
        return first

    def unsorted(self) -> Int64s:
        """For each record, in the order of arrival, its place in sorted order."""
        places = np.empty(len(self), dtype=np.int64)
        places[self.order] = np.arange(len(self))
        return places

    def sums(self, values: Int64s, start: Int64s) -> tuple[Int64s, Int64s]:
        """The running sum of `values` (in sorted order) at each record, and at the end of each group."""
        most = np.abs(values.astype(np.float64)).sum() + (np.abs(start.astype(np.float64)).max() if len(start) else 0)
        if most >= SAFE or object in (values.dtype, start.dtype):
            values, start = values.astype(object), start.astype(object)
        passed = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values, dtype=values.dtype)])
        base = start - passed[self.starts]
        return passed[1:] + base[self.group], passed[self.ends] + base

    def counts(self, steps: Int64s, start: Int64s) -> Int64s:
        """The running sum of steps of 1 up or down; a step down from 0 is left out, so the sum is never negative."""
        running, _ = self.sums(steps, start)
        for group in np.unique(self.group[running < 0]).tolist():
            count = int(start[group])
            for at in range(int(self.starts[group]), int(self.ends[group])):
                count = max(count + int(steps[at]), 0)
                running[at] = count
        return running

    def before(self, running: Int64s, start: Int64s) -> Int64s:
        """The running value before each record, given the one at it."""
        found = np.empty_like(running)
        found[1:] = running[:-1]
        firsts = self.firsts
        found[firsts] = start[self.group[firsts]]
        return found

    def float_sums(self, values: Floats, start: Floats) -> tuple[Floats, Floats]:
        """Running sums of floats, added one after the other: in each round, the next record of every group."""
        running, total = np.empty(len(values)), start.copy()
        lengths = self.ends - self.starts
        longest = np.argsort(-lengths, kind="stable")
        begin, size = self.starts[longest], lengths[longest]
        added, left, place = total[longest], int(np.count_nonzero(size)), 0
        # NaN and infinities are ordinary values here
        with np.errstate(invalid="ignore", over="ignore"):
            while left >= _FEW:
                at = begin[:left] + place
                added[:left] += values[at]
                running[at] = added[:left]
                place += 1
                left = int(np.searchsorted(-size, -place, side="left"))
            for i in range(left):
                first, last = int(begin[i]) + place, int(begin[i] + size[i])
                rest = np.add.accumulate(np.concatenate([added[i : i + 1], values[first:last]]))
                running[first:last], added[i] = rest[1:], rest[-1]
        total[longest] = added
        return running, total

    def highest(self, values: Int64s, start: Int64s) -> tuple[Int64s, Int64s]:
        """The running maximum of `values` (in sorted order) and of `start`."""
        winner, last = self.winners(values, np.ones(len(self), dtype=np.bool_), start, np.ones(self.count, np.bool_))
        known = np.concatenate([start, values])
        return known[winner], known[last]

    def winners(
        self, rank: Int64s, counts: Mask, start: Int64s, known: Mask, last_of_equal: bool = False
    ) -> tuple[Int64s, Int64s]:
        """Which record has the highest rank so far, at each record and at the end of each group.

        Records are given in sorted order; those where `counts` is false are ignored. `start` is the rank that a group
        begins with, if it is `known`. An answer below the number of groups means the value that the group began with,
        even if there is none; other answers are places in sorted order plus that number. Of equal ranks the first one
        wins, or the last one.
        """
        groups = self.count
        ranks, span = positive(np.concatenate([start, rank]), np.concatenate([known, counts]), groups)
        # A group's start value comes before its records. With the group in front, one running maximum covers all.
        at_start = self.starts + np.arange(groups)
        at_record = np.arange(len(self)) + self.group + 1
        packed = np.empty(len(self) + groups, dtype=np.int64)
        packed[at_start] = np.arange(groups) * span + ranks[:groups]
        packed[at_record] = self.group * span + ranks[groups:]
        before = np.maximum.accumulate(packed)[at_record - 1]
        wins = packed[at_record] >= before if last_of_equal else packed[at_record] > before
        source = np.zeros(len(packed), dtype=np.int64)
        source[at_start] = at_start
        won = at_record[wins & counts]
        source[won] = won
        source = np.maximum.accumulate(source)
        names = np.empty(len(packed), dtype=np.int64)
        names[at_start] = np.arange(groups)
        names[at_record] = groups + np.arange(len(self))
        winner = names[source]
        return winner[at_record], winner[self.ends + np.arange(groups)]


def _sorted_by(group: Int64s, groups: int) -> Int64s:
    """The stable order by group: numpy sorts 16-bit numbers in linear time."""
    low = np.argsort((group & (_SMALL - 1)).astype(np.uint16), kind="stable")
    if groups <= _SMALL:
        return low
    high = np.argsort((group[low] >> 16).astype(np.uint16 if groups < _SMALL**2 else np.int64), kind="stable")
    return low[high]


def positive(values: Int64s, counts: Mask, groups: int) -> tuple[Int64s, int]:
    """Numbers from 1 in the order of the `values` that count, 0 for the others; and a bound above all numbers.

    The bound times `groups` fits in an int64.
    """
    chosen = values[counts]
    if not len(chosen):
        return np.zeros(len(values), dtype=np.int64), 2
    low, high = int(chosen.min()), int(chosen.max())
    span = high - low + 2
    if groups * span < SAFE:
        return np.where(counts, values - low + 1, 0), span
    ranks, number = np.unique(chosen, return_inverse=True)
    found = np.zeros(len(values), dtype=np.int64)
    found[counts] = number + 1
    return found, len(ranks) + 1


def numbered(key: Int64s, place: Int64s) -> tuple[Int64s, Int64s]:
    """Numbers of the distinct pairs, in the order in which they come first; and where each one does.

    Keys are not negative.
    """
    if not len(key):
        return key, key
    place, span = place - int(place.min()), int(place.max() - place.min()) + 1
    if (int(key.max()) + 1) * span >= SAFE:
        place = pa.array(place).dictionary_encode().indices.to_numpy().astype(np.int64)
        span = len(place)
    number = pa.array(key * span + place).dictionary_encode().indices.to_numpy().astype(np.int64)
    firsts = np.empty(int(number.max()) + 1, dtype=np.int64)
    firsts[number[::-1]] = np.arange(len(number))[::-1]
    return number, firsts
