"""Where tumbling and hopping windows begin and end: at multiples of a length since 1970, or by a zone's calendar.

Windows are numbered in the order of time, and begin and end in that order. Event times are not negative, so a window
that holds 1970-01-01 00:00 UTC and would begin before it begins then; the windows before that one do not exist.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import Protocol

import numpy as np

from vsc.plan.nodes import Window
from vsc.runtime.expressions.zones import zone_named
from vsc.runtime.records import Int64s

__all__ = ["Grid", "grid_of"]

_DAY = 86_400_000
_MILLISECOND = 1000
_FAR = 2**60
"""Later than any event time; it can be computed with."""


class Grid(Protocol):
    """The windows of one kind, by their numbers."""

    lowest: int

    @abstractmethod
    def number(self, time: Int64s) -> Int64s:
        """The last window that begins up to each of these times."""

    @abstractmethod
    def ended(self, time: Int64s) -> Int64s:
        """The last window that ends up to each of these times."""

    @abstractmethod
    def begins(self, number: Int64s) -> Int64s:
        """When these windows begin if there is time before 1970."""

    @abstractmethod
    def ends(self, number: Int64s) -> Int64s:
        """The end of these windows, which is not part of them."""

    def reached(self, time: Int64s) -> tuple[Int64s, Int64s]:
        """The first and the last window that hold each of these times."""
        return np.maximum(self.ended(time) + 1, self.lowest), self.number(time)

    def starts(self, number: Int64s) -> Int64s:
        """When these windows begin."""
        return np.maximum(self.begins(number), 0)

    def ends_of(self, start: Int64s) -> Int64s:
        """The ends of the windows that begin then."""
        return self.ends(self.number(start))

    def ended_up_to(self, time: Int64s) -> Int64s:
        """Up to where the windows that have ended at each of these times begin, -1 for nowhere.

        It goes on with time up to the start of the window that is next to end: Kafka's window store forgets windows
        while it does.
        """
        number = self.ended(time)
        place = np.minimum(self.starts(number) + time - self.ends(number), self.starts(number + 1) - 1)
        return np.where(number < self.lowest, -1, place)


class _Multiples(Grid):
    def __init__(self, window: Window) -> None:
        self._size, self._advance, self._offset = window.size, window.advance, window.offset
        self.lowest = -self._offset // self._advance

    def number(self, time: Int64s) -> Int64s:
        return (time - self._offset) // self._advance

    def ended(self, time: Int64s) -> Int64s:
        return (time - self._offset - self._size) // self._advance

    def begins(self, number: Int64s) -> Int64s:
        return number * self._advance + self._offset

    def ends(self, number: Int64s) -> Int64s:
        return self.begins(number) + self._size


class _Calendar(Grid):
    """Tumbling windows of days or months by the clocks of a zone.

    A window begins at the first moment at which the clocks there show its time or a later one: clocks that are set
    forward may never show it, those that are set back show it twice.
    """

    def __init__(self, window: Window) -> None:
        self._size, self._offset, self._months = window.size, window.offset, window.months
        self._zone = zone_named(window.zone or "UTC")
        self._beginning = lru_cache(maxsize=100_000)(self._computed)
        self.lowest = int(self.number(np.zeros(1, dtype=np.int64))[0])

    def number(self, time: Int64s) -> Int64s:
        # Clocks are less than a day from UTC, so it is the window that it would be by UTC, or one beside it.
        near = np.unique(self._by_utc(np.minimum(time, _FAR)))
        candidates = np.unique(near[:, np.newaxis] + np.arange(-2, 3))
        numbers: Int64s = candidates[np.searchsorted(self.begins(candidates), time, side="right") - 1]
        return numbers

    def ended(self, time: Int64s) -> Int64s:
        return self.number(time) - 1

    def begins(self, number: Int64s) -> Int64s:
        distinct, place = np.unique(number, return_inverse=True)
        begins = np.array([self._beginning(n) for n in distinct.tolist()], dtype=np.int64)
        found: Int64s = begins[place]
        return found

    def ends(self, number: Int64s) -> Int64s:
        return self.begins(number + 1)

    def _by_utc(self, time: Int64s) -> Int64s:
        local = time - self._offset
        if not self._months:
            return local // self._size
        months: Int64s = local.astype("datetime64[ms]").astype("datetime64[M]").astype(np.int64)
        return months // self._months

    def _computed(self, number: int) -> int:
        local = number * self._size
        if self._months:
            first = np.datetime64(number * self._months, "M").astype("datetime64[D]").astype(np.int64)
            local = int(first) * _DAY
        return self._zone.first_shown((local + self._offset) * _MILLISECOND) // _MILLISECOND


@lru_cache(maxsize=100)
def grid_of(window: Window) -> Grid:
    """The windows that are like this one. Fails if this machine does not know its zone."""
    return _Calendar(window) if window.zone or window.months else _Multiples(window)
