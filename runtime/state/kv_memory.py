"""An ordered map in memory: a dictionary and its keys in order, which are updated only when scanned.

Guarantees: reads and writes of single keys cost as much as in a dictionary, and the first rows of a scan do not cost
more if the map is large. Not for data that must survive the process.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["MemoryKV"]

_FEW = 16
"""Up to this many changes are inserted into the order one by one; more are sorted in."""

_SCANNED = 256
"""How many keys a scan looks at together: most scans are for the first few."""


class MemoryKV:
    """An `OrderedKV` in memory."""

    __slots__ = ("_order", "_rows", "_touched")

    def __init__(self) -> None:
        self._rows: dict[bytes, bytes] = {}
        self._order: list[bytes] = []
        # The keys that were added or removed since they were last ordered.
        self._touched: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> Mapping[bytes, bytes]:
        """The rows, in no particular order."""
        return self._rows

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
        rows = self._rows
        while True:
            order = self._ordered()
            first = bisect_left(order, start) if start else 0
            last = len(order) if end is None else bisect_left(order, end, first)
            keys = order[max(first, last - _SCANNED) : last] if reverse else order[first : min(last, first + _SCANNED)]
            for key in reversed(keys) if reverse else keys:
                value = rows.get(key)
                if value is not None:
                    yield key, value
            if len(keys) < _SCANNED:
                return
            if reverse:
                end = keys[0]
            else:
                start = keys[-1] + b"\0"

    def between(self, start: bytes, end: bytes | None) -> list[tuple[bytes, bytes]]:
        """All rows with ``start <= key < end``, ascending."""
        return list(self.scan(start, end))

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes] = (),
        delete_ranges: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Apply everything at once: first the ranges ``[start, end)``, then the deletes, then the puts."""
        rows, touch = self._rows, self._touched.add
        for start, end in delete_ranges:
            for key, _ in list(self.scan(start, end)):
                del rows[key]
                touch(key)
        for key in deletes:
            if rows.pop(key, None) is not None:
                touch(key)
        for key, value in puts:
            if key not in rows:
                touch(key)
            rows[key] = value

    def _ordered(self) -> list[bytes]:
        """The keys in order."""
        rows, touched = self._rows, self._touched
        if len(touched) > _FEW:
            self._order = [key for key in self._order if key not in touched]
            self._order += sorted(key for key in touched if key in rows)
            self._order.sort()
        else:
            for key in touched:
                at = bisect_left(self._order, key)
                there = self._order[at : at + 1] == [key]
                if key not in rows and there:
                    del self._order[at]
                elif key in rows and not there:
                    self._order.insert(at, key)
        touched.clear()
        return self._order
