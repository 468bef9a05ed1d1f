"""Ranges of keys: a set of keys defined by where its ranges begin and end."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from vsc.runtime.state.changelog import Range

__all__ = ["KeyRanges"]


class KeyRanges:
    """Ranges that neither overlap nor touch, in order."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[bytes] = []
        self._ends: list[bytes] = []

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[Range]:
        return zip(self._starts, self._ends, strict=True)

    def __contains__(self, key: bytes) -> bool:
        at = bisect_right(self._starts, key) - 1
        return at >= 0 and key < self._ends[at]

    def add(self, start: bytes, end: bytes) -> None:
        """Add a non-empty range, merging it with those that it overlaps or touches."""
        first = bisect_left(self._ends, start)
        last = bisect_right(self._starts, end)
        if first < last:
            start = min(start, self._starts[first])
            end = max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def behind(self, key: bytes) -> bytes:
        """The first key from `key` on that is not in a range."""
        at = bisect_right(self._starts, key) - 1
        return max(key, self._ends[at]) if at >= 0 else key

    def before(self, key: bytes) -> bytes:
        """The start of the range that holds the keys right before `key`, or `key` if none does."""
        at = bisect_left(self._ends, key)
        return min(key, self._starts[at]) if at < len(self._starts) else key
