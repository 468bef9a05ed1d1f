"""Binary search in the known versions of a table's keys while one batch is processed.

The records of a batch have *arrival numbers*, their places in the order of processing. A `Timeline` holds the versions
that the store had before the batch (arrival -1) and those of the batch. A look-up has a key, a time and its own
arrival, and sees what arrived before it. All answers are exact, however the records are cut into batches.

Entries are sorted by (key, time, arrival), with key and time packed into one integer. A search by (key, time) gives the
last candidate. Only if that one arrived after the look-up, in the same batch, the answer is further back; doubling
steps over the minima of arrivals find it. Answers are positions, not values.
"""

from __future__ import annotations

import numpy as np

from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.api import NEVER

__all__ = ["NONE", "Timeline", "latest_before"]

NONE = -1
"""The position of an entry that does not exist."""

_PACKED_LIMIT = 2**62
_SORT_FIRST = 4096


class _Packing:
    """Maps (key, time) to one integer that compares like the pair; times are those of given entries, or between."""

    __slots__ = ("_low", "_ranks", "_span")

    def __init__(self, keys: int, times: Int64s) -> None:
        low, high = (int(times.min()), int(times.max())) if len(times) else (0, 0)
        self._low = low - 1
        self._span = high - low + 2
        self._ranks: Int64s | None = None
        if keys * self._span >= _PACKED_LIMIT:
            self._ranks = np.unique(times)
            self._span = len(self._ranks) + 1

    def pack(self, keys: Int64s, times: Int64s) -> Int64s:
        """Times before all entries' map to one place before them, times after all entries' to the last entry's."""
        if self._ranks is not None:
            return keys * self._span + np.searchsorted(self._ranks, times, side="right")
        # clipping first: a difference of any two int64 could overflow
        clipped = np.clip(times, self._low, self._low + self._span - 1)
        return keys * self._span + (clipped - self._low)

    def first(self, keys: Int64s) -> Int64s:
        """A number at most the packed value of every entry of the key, and above that of every entry before it."""
        return keys * self._span


class Timeline:
    """The versions of a table's keys: key numbers, valid from, arrival (-1: before this batch).

    `keys` is the number of keys. Entries of one (key, time) must be given in the order of their arrivals. Positions in
    answers are positions in the given arrays.
    """

    __slots__ = (
        "_arrival",
        "_by_arrival",
        "_entry",
        "_given",
        "_key",
        "_keys",
        "_minima",
        "_packed",
        "_packing",
        "_time",
    )

    def __init__(self, keys: int, key: Int64s, time: Int64s, arrival: Int64s) -> None:
        self._keys, self._key, self._time, self._given = keys, key, time, arrival
        self._packing = _Packing(keys, time)
        packed = self._packing.pack(key, time)
        self._entry: Int64s | None = None
        if len(packed) and (packed[1:] < packed[:-1]).any():
            self._entry = np.argsort(packed, kind="stable")
            packed, arrival = packed[self._entry], arrival[self._entry]
        self._packed, self._arrival = packed, arrival
        self._minima: list[Int64s] | None = None
        self._by_arrival: tuple[Int64s, Int64s, int] | None = None

    def as_of(self, key: Int64s, time: Int64s, arrival: Int64s) -> Int64s:
        """Each key's entry with the highest time up to `time` that came before `arrival`; the last one of several."""
        if not len(self._packed):
            return np.full(len(key), NONE, dtype=np.int64)
        at = _places(self._packed, self._packing.pack(key, time)) - 1
        late = np.flatnonzero((at >= 0) & (self._arrival[at] > arrival))
        if len(late):
            at[late] = self._step_back(at[late], arrival[late])
        found = (at >= 0) & (self._packed[at] >= self._packing.first(key))
        answer = at if self._entry is None else self._entry[at]
        return np.where(found, answer, NONE)

    def following(self, key: Int64s, time: Int64s, arrival: Int64s) -> Int64s:
        """The lowest time beyond `time` of each key's entries that came before `arrival`; `NEVER` without one."""
        known, newest = self.newest_time(key, arrival)
        found = np.full(len(key), NEVER, dtype=np.int64)
        late = np.flatnonzero(known & (newest > time))
        if len(late):
            mirrored = Timeline(self._keys, self._key, -self._time, self._given)
            found[late] = self._time[mirrored.as_of(key[late], -time[late] - 1, arrival[late])]
        return found

    def between(self, key: Int64s, after: Int64s, until: Int64s, arrival: Int64s) -> tuple[Int64s, Int64s]:
        """The times of each key's entries with ``after < time < until`` that came before `arrival`.

        Returns the places of the questions, ascending, and the times, ascending for each and distinct.
        """
        if not len(self._packed):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        begin = _places(self._packed, self._packing.pack(key, after))
        counts = np.maximum(_places(self._packed, self._packing.pack(key, until - 1)) - begin, 0)
        row = np.repeat(np.arange(len(key), dtype=np.int64), counts)
        at = np.arange(len(row), dtype=np.int64) + np.repeat(begin - (np.cumsum(counts) - counts), counts)
        seen = self._arrival[at] <= arrival[row]
        row, at = row[seen], at[seen]
        time = self._time[at if self._entry is None else self._entry[at]]
        again = np.append(False, (row[1:] == row[:-1]) & (time[1:] == time[:-1]))[: len(row)]
        return row[~again], time[~again]

    def newest_time(self, key: Int64s, arrival: Int64s) -> tuple[Mask, Int64s]:
        """For each key whether any entry came before `arrival`, and the highest time of those."""
        at = self.newest(key, arrival)
        known = at >= 0
        return known, self._time[at] if len(self._time) else np.zeros(len(key), dtype=np.int64)

    def newest(self, key: Int64s, arrival: Int64s) -> Int64s:
        """Each key's entry with the highest time of those that came before `arrival`; the last one of several."""
        if not len(self._packed):
            return np.full(len(key), NONE, dtype=np.int64)
        places, highest, span = self._arrivals()
        wanted = key * span + np.minimum(arrival, span - 2) + 1
        at = _places(places, wanted) - 1
        return np.where((at >= 0) & (places[at] >= key * span), highest[at], NONE)

    def _arrivals(self) -> tuple[Int64s, Int64s, int]:
        """Entries by (key, arrival), as one integer; for each the key's entry of the highest time so far; the span."""
        if self._by_arrival is None:
            entry = np.arange(len(self._packed), dtype=np.int64) if self._entry is None else self._entry
            keys = self._key[entry]
            span = int(self._arrival.max()) + 2
            places = keys * span + self._arrival + 1
            order = np.argsort(places, kind="stable")
            # packed values grow with the key, and entries are in that order, so a running maximum over positions is
            # also one within the key
            self._by_arrival = places[order], entry[np.maximum.accumulate(order)], span
        return self._by_arrival

    def _step_back(self, at: Int64s, arrival: Int64s) -> Int64s:
        """From each position, the nearest position before it that arrived earlier; -1 without one."""
        minima = self._lookback()
        for level in range(len(minima) - 1, -1, -1):
            block = minima[level]
            passable = (at >= 0) & (block[at] > arrival)
            at = np.where(passable, np.maximum(at - (1 << level), NONE), at)
        return at

    def _lookback(self) -> list[Int64s]:
        """By level, the lowest arrival among the (at most) 2**level entries that end at each position."""
        if self._minima is None:
            level = self._arrival
            self._minima = [level]
            reach = 1
            while reach < len(level):
                wider = level.copy()
                wider[reach:] = np.minimum(level[reach:], level[:-reach])
                level = wider
                self._minima.append(level)
                reach *= 2
        return self._minima


def _places(entries: Int64s, wanted: Int64s) -> Int64s:
    """How many of the sorted `entries` are at most each wanted value."""
    if len(wanted) < _SORT_FIRST:
        return np.searchsorted(entries, wanted, side="right")
    # sorted values use the cache better: sorting them first takes less than half of the time
    order = np.argsort(wanted)
    places = np.empty(len(wanted), dtype=np.int64)
    places[order] = np.searchsorted(entries, wanted[order], side="right")
    return places


def latest_before(entry_key: Int64s, entry_arrival: Int64s, key: Int64s, arrival: Int64s) -> Int64s:
    """For each `key` the position of its last entry before `arrival`; `NONE` without one.

    Entries of one key must be given in the order of their arrivals.
    """
    if not len(entry_key):
        return np.full(len(key), NONE, dtype=np.int64)
    span = int(entry_arrival.max()) + 3
    order = np.argsort(entry_key, kind="stable")
    places = entry_key[order] * span + entry_arrival[order] + 1
    at = _places(places, key * span + np.clip(arrival, 0, span - 2)) - 1
    return np.where((at >= 0) & (places[at] >= key * span), order[at], NONE)
