"""An ordered map above another one: writes stay in memory, reads see both; only `commit` writes to the map below.

A micro-batch works on committed state in this way: its writes become one changelog, which is applied to the map below
once the micro-batch is known to be committed; a failed attempt leaves no trace.

Guarantees: reads and writes of single keys cost what a dictionary costs (and a read of the map below for a key that
was not written). Order is made only when something is scanned. Scans that begin at one place again and again, as those
of a queue do, do not pass all that was deleted there each time. Not for several threads.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from vsc.runtime.state.changelog import Range, encode_changelog
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.kv_memory import MemoryKV

__all__ = ["OverlayKV"]

_MANY = 4
"""From this many hidden rows on, a scan remembers that they are hidden."""
_ROW_BYTES = 200
"""The overhead of a row in bytes: two objects, and its places in a dictionary and in the order."""


class _Ranges:
    """A set of keys, as ranges that neither overlap nor touch, in order."""

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


class _Lead:
    """The hidden rows of the map below with which a scan begins; `passed` are ranges of such rows that are known.

    `many`: of how many nothing has been learnt yet.
    """

    __slots__ = ("_end", "_over", "_passed", "_reverse", "_start", "many")

    def __init__(self, passed: _Ranges, start: bytes, end: bytes | None, reverse: bool) -> None:
        self._passed, self._start, self._end, self._reverse = passed, start, end, reverse
        self._over = end is None
        self.many = 0

    def scan(self, base: OrderedKV) -> Iterator[tuple[bytes, bytes]]:
        """The rows of `base`, from where the known ones end."""
        start, end = self._start, self._end
        if not self._reverse:
            start = self._passed.behind(start)
        elif end is not None:
            end = self._passed.before(end)
        return iter(()) if end is not None and end <= start else base.scan(start, end, self._reverse)

    def learn(self, key: bytes | None) -> None:
        """Notes that from the scan's start to `key` (None: to its end) no row shows, and none ever will again."""
        if self._over or self.many < _MANY:
            return
        assert self._end is not None
        if self._reverse:
            self._passed.add(self._start if key is None else key + b"\0", self._end)
        else:
            self._passed.add(self._start, self._end if key is None else key)
        self.many = 0

    def end(self, key: bytes | None) -> None:
        """As `learn`; the row of `key` shows, so the hidden rows end there."""
        self.learn(key)
        self._over = True


class OverlayKV:
    """An `OrderedKV` that keeps its writes in memory above `base`."""

    __slots__ = ("_base", "_deleted", "_hidden", "_own", "_passed")

    def __init__(self, base: OrderedKV) -> None:
        self._base = base
        self.discard()

    @property
    def written(self) -> int:
        """How many rows were written, without those deleted again."""
        return len(self._own)

    @property
    def size(self) -> int:
        """The approximate memory of the written rows, in bytes. Looks at all of them."""
        rows, deleted = self._own.rows, self._deleted
        values = sum(map(len, rows.values()))
        return sum(map(len, rows)) + sum(map(len, deleted)) + values + (len(rows) + len(deleted)) * _ROW_BYTES

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None."""
        value = self._own.get(key)
        if value is not None or key in self._deleted or key in self._hidden:
            return value
        return self._base.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, in their order, None for missing keys."""
        if not self._changed:
            return self._base.get_many(keys)
        found, deleted, hidden = self._own.get_many(keys), self._deleted, self._hidden
        below = [at for at, key in enumerate(keys) if found[at] is None and key not in deleted and key not in hidden]
        if below:
            for at, value in zip(below, self._base.get_many([keys[at] for at in below]), strict=True):
                found[at] = value
        return found

    def scan(self, start: bytes, end: bytes | None, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the rows with ``start <= key < end``."""
        return self._merged(start, end, reverse) if self._changed else self._base.scan(start, end, reverse)

    def between(self, start: bytes, end: bytes | None) -> list[tuple[bytes, bytes]]:
        """All rows with ``start <= key < end``, ascending."""
        return list(self._merged(start, end, False)) if self._changed else self._base.between(start, end)

    def _merged(self, start: bytes, end: bytes | None, reverse: bool) -> Iterator[tuple[bytes, bytes]]:
        rows, deleted, hidden = self._own.rows, self._deleted, self._hidden
        own = self._own.scan(start, end, reverse)
        mine = next(own, None)
        lead = _Lead(self._passed, start, end, reverse)
        for key, value in lead.scan(self._base):
            while mine is not None and (mine[0] > key if reverse else mine[0] < key):
                lead.learn(key)
                yield mine
                mine = next(own, None)
            if key in rows or key in deleted or key in hidden:
                lead.many += 1
            else:
                lead.end(key)
                yield key, value
        lead.end(None)
        if mine is not None:
            yield mine
            yield from own

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes] = (),
        delete_ranges: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Apply everything at once: first the ranges ``[start, end)``, then the deletes, then the puts."""
        ranges = [(start, end) for start, end in delete_ranges if start < end]
        puts, deletes = list(puts), list(deletes)
        self._own.write(puts, deletes, ranges)
        for start, end in ranges:
            self._hidden.add(start, end)
        deleted = self._deleted
        for key in deletes:
            deleted[key] = None
        if deleted:
            for key, _ in puts:
                deleted.pop(key, None)

    def changes(self) -> tuple[Mapping[bytes, bytes | None], Sequence[Range]]:
        """Return the writes: rows by key (None: deleted), and the hidden ranges of the map below."""
        return {**self._deleted, **self._own.rows}, list(self._hidden)

    def changelog(self) -> bytes:
        """Return all writes since this overlay was made, as one blob for `apply_changelog`.

        Sorted by key: so the same writes give the same bytes, and a store below takes them several times as fast.
        """
        return encode_changelog(list(self._hidden), sorted(self._deleted), sorted(self._own.rows.items()))

    def commit(self) -> None:
        """Write everything to the map below, in one atomic write; afterwards the overlay is empty."""
        if self._changed:
            self._base.write(self._own.rows.items(), self._deleted, self._hidden)
            self.discard()

    def settle(self, base: OrderedKV) -> None:
        """Write everything to `base`, which has the rows of the map below, and become an empty overlay above it.

        No scan may be open: it would continue in the previous map below.
        """
        self._base = base
        self.commit()

    def discard(self) -> None:
        """Discard all writes since the overlay was made or last committed."""
        # The written rows, and the deleted keys: they hide the base's rows.
        self._own = MemoryKV()
        self._deleted: dict[bytes, None] = {}
        # Deleted ranges of the base.
        self._hidden = _Ranges()
        # Ranges in which scans have found no visible row of the base (see `_Lead`).
        self._passed = _Ranges()

    @property
    def _changed(self) -> bool:
        return bool(len(self._own) or self._deleted or self._hidden)
