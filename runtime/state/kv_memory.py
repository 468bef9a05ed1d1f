"""An ordered map in memory: a dictionary and its keys in order, which are updated only when scanned.

Guarantees: reads and writes of single keys cost as much as in a dictionary, and the first rows of a scan do not cost
more if the map is large. Not for data that must survive the process.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["MemoryKV", "SortedKeys"]

_FEW = 16
"""Up to this many changes are inserted into the order one by one; more are sorted in."""


_SCANNED = 256
"""How many keys a scan looks at together: most scans are for the first few."""


class SortedKeys:
    """The keys of a dictionary in order. It is notified of every new and removed key, but sorts only on demand."""

    __slots__ = ("_fresh", "_gone", "_order")

    def __init__(self) -> None:
        self._order: list[bytes] = []
        self._fresh: set[bytes] = set()
        self._gone: set[bytes] = set()

    def add(self, key: bytes) -> None:
        """Add a new key."""
        if key in self._gone:
            self._gone.remove(key)
        else:
            self._fresh.add(key)

    def add_many(self, keys: Sequence[bytes]) -> None:
        """Add new keys; duplicates are allowed."""
        if self._gone:
            for key in dict.fromkeys(keys):
                self.add(key)
        else:
            self._fresh.update(keys)

    def remove(self, key: bytes) -> None:
        """Remove an existing key."""
        if key in self._fresh:
            self._fresh.remove(key)
        else:
            self._gone.add(key)

    def between(self, start: bytes, end: bytes | None) -> list[bytes]:
        """Return the keys with ``start <= key < end``, in order."""
        self._settle()
        order = self._order
        first = bisect_left(order, start) if start else 0
        return order[first : len(order) if end is None else bisect_left(order, end, first)]

    def each(self, start: bytes, end: bytes | None, reverse: bool) -> Iterator[bytes]:
        """Iterate over the keys with ``start <= key < end``, some at a time; may miss keys added meanwhile."""
        while True:
            self._settle()
            order = self._order
            first = bisect_left(order, start) if start else 0
            last = len(order) if end is None else bisect_left(order, end, first)
            keys = order[max(first, last - _SCANNED) : last] if reverse else order[first : min(last, first + _SCANNED)]
            yield from reversed(keys) if reverse else keys
            if len(keys) < _SCANNED:
                return
            if reverse:
                end = keys[0]
            else:
                start = keys[-1] + b"\0"

    def _settle(self) -> None:
        if self._gone:
            self._settle_gone()
        if len(self._fresh) > _FEW:
            self._order.extend(sorted(self._fresh))
            self._order.sort()
        else:
            for key in self._fresh:
                insort(self._order, key)
        self._fresh.clear()

    def _settle_gone(self) -> None:
        gone = self._gone
        if len(gone) > _FEW:
            self._order = [key for key in self._order if key not in gone]
        else:
            for key in gone:
                del self._order[bisect_left(self._order, key)]
        gone.clear()


class MemoryKV:
    """An `OrderedKV` in memory."""

    __slots__ = ("_keys", "_rows")

    def __init__(self) -> None:
        self._rows: dict[bytes, bytes] = {}
        self._keys = SortedKeys()

    def __len__(self) -> int:
        return len(self._rows)

    def scratch(self) -> MemoryKV:
        """Return a copy."""
        copy = MemoryKV()
        copy.write(self._rows.items())
        return copy

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None."""
        return self._rows.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, in their order, None for missing keys."""
        return list(map(self._rows.get, keys))

    def scan(self, start: bytes, end: bytes | None, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the rows with ``start <= key < end``; those that are written meanwhile may be missed."""
        for key in self._keys.each(start, end, reverse):
            value = self._rows.get(key)
            if value is not None:
                yield key, value

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes] = (),
        delete_ranges: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Apply everything at once: first the ranges ``[start, end)``, then the deletes, then the puts."""
        rows = self._rows
        for start, end in delete_ranges:
            for key in self._keys.between(start, end):
                del rows[key]
                self._keys.remove(key)
        for key in deletes:
            if rows.pop(key, None) is not None:
                self._keys.remove(key)
        for key, value in puts:
            if key not in rows:
                self._keys.add(key)
            rows[key] = value
