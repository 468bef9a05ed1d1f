"""An ordered map above another one: writes stay in memory, reads see both; only `commit` writes to the one below.

That is how a micro-batch works on committed state: what it writes becomes one changelog, which is applied to the map
below once the micro-batch is known to be committed; a failed attempt leaves nothing behind.

Guarantees: reads and writes of single keys cost what a dictionary costs (and a read of the map below for a key that
was not written). Order is made only when something is scanned. Not for several threads.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from vsc.runtime.state.changelog import Range, encode_changelog
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.kv_memory import SortedKeys

__all__ = ["OverlayKV"]

_ROW_BYTES = 200
"""What a row takes beside its bytes: two objects, and its places in a dictionary and in the order."""


class OverlayKV:
    """An `OrderedKV` that keeps its writes in memory above `base`."""

    __slots__ = ("_base", "_keys", "_range_ends", "_range_starts", "_rows")

    def __init__(self, base: OrderedKV) -> None:
        self._base = base
        # What was written: value, or None for a key that was deleted. It hides what the base has.
        self._rows: dict[bytes, bytes | None] = {}
        # Those that have a value: scans do not come by what was deleted here.
        self._keys = SortedKeys()
        # Ranges of the base that are hidden: disjoint, not touching, in order.
        self._range_starts: list[bytes] = []
        self._range_ends: list[bytes] = []

    @property
    def written(self) -> int:
        """How many rows were written, those left out that were deleted again."""
        return sum(value is not None for value in self._rows.values())

    @property
    def size(self) -> int:
        """About how many bytes of memory the rows that were written take. Looks at all of them."""
        values = sum(len(value) for value in self._rows.values() if value is not None)
        return sum(map(len, self._rows)) + values + len(self._rows) * _ROW_BYTES

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None."""
        if key in self._rows:
            return self._rows[key]
        return None if self._hidden(key) else self._base.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, in their order, None for those that are not there."""
        rows = self._rows
        if not rows and not self._range_starts:
            return self._base.get_many(keys)
        found = list(map(rows.get, keys))
        below = [at for at, key in enumerate(keys) if found[at] is None and key not in rows and not self._hidden(key)]
        if below:
            for at, value in zip(below, self._base.get_many([keys[at] for at in below]), strict=True):
                found[at] = value
        return found

    def scan(self, start: bytes, end: bytes | None, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the rows with ``start <= key < end``."""
        own = self._keys.each(start, end, reverse)
        mine = next(own, None)
        rows = self._rows
        for key, value in self._base.scan(start, end, reverse):
            while mine is not None and (mine > key if reverse else mine < key):
                yield from self._shown(mine)
                mine = next(own, None)
            if key not in rows and not self._hidden(key):
                yield key, value
        while mine is not None:
            yield from self._shown(mine)
            mine = next(own, None)

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes] = (),
        delete_ranges: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Apply everything at once: first the ranges ``[start, end)``, then the deletes, then the puts."""
        rows = self._rows
        for start, end in delete_ranges:
            if start < end:
                self._hide(start, end)
        for key in deletes:
            if rows.get(key) is not None:
                self._keys.remove(key)
            rows[key] = None
        written = list(puts)
        self._keys.add_many([key for key, _ in written if rows.get(key) is None])
        rows.update(written)

    def changes(self) -> tuple[Mapping[bytes, bytes | None], Sequence[Range]]:
        """Return what was written: rows by key (None: deleted), and the ranges of the map below that are hidden."""
        return self._rows, list(zip(self._range_starts, self._range_ends, strict=True))

    def changelog(self) -> bytes:
        """Return everything that was written since this overlay was made, as one blob for `apply_changelog`."""
        deletes = [key for key, value in self._rows.items() if value is None]
        puts = [(key, value) for key, value in self._rows.items() if value is not None]
        ranges: list[Range] = list(zip(self._range_starts, self._range_ends, strict=True))
        return encode_changelog(ranges, deletes, puts)

    def commit(self) -> None:
        """Write everything to the map below, in one atomic write; afterwards the overlay is empty."""
        if self._rows or self._range_starts:
            deletes = [key for key, value in self._rows.items() if value is None]
            puts = [(key, value) for key, value in self._rows.items() if value is not None]
            self._base.write(puts, deletes, list(zip(self._range_starts, self._range_ends, strict=True)))
            self.discard()

    def settle(self, base: OrderedKV) -> None:
        """Write everything to `base`, which has the rows of the map below, and be an empty overlay above it.

        No scan may be under way: it would go on in the map that was below.
        """
        self._base = base
        self.commit()

    def discard(self) -> None:
        """Forget everything that was written since the overlay was made or last committed."""
        self._rows = {}
        self._keys = SortedKeys()
        self._range_starts, self._range_ends = [], []

    def _shown(self, key: bytes) -> Iterator[tuple[bytes, bytes]]:
        # The row may have been deleted while a scan was under way.
        value = self._rows.get(key)
        if value is not None:
            yield key, value

    def _hidden(self, key: bytes) -> bool:
        if not self._range_starts:
            return False
        at = bisect_right(self._range_starts, key) - 1
        return at >= 0 and key < self._range_ends[at]

    def _hide(self, start: bytes, end: bytes) -> None:
        for key in self._keys.between(start, end):
            del self._rows[key]
            self._keys.remove(key)
        # Ranges that overlap or touch the new one are made one with it.
        first = bisect_left(self._range_ends, start)
        last = bisect_right(self._range_starts, end)
        if first < last:
            start = min(start, self._range_starts[first])
            end = max(end, self._range_ends[last - 1])
        self._range_starts[first:last] = [start]
        self._range_ends[first:last] = [end]
