"""An ordered map above another one: writes stay in memory, reads see both; only `commit` writes to the map below.

A micro-batch works on committed state in this way: its writes become one changelog, which is applied to the map below
once the micro-batch is known to be committed; a failed attempt leaves no trace.

Guarantees: reads and writes of single keys cost what a dictionary costs (and a read of the map below for a key that
was not written). Order is made only when something is scanned. Scans that begin at one place again and again, as those
of a queue do, do not pass all that was deleted there each time. Not for several threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from vsc.runtime.state.changelog import Range, encode_changelog
from vsc.runtime.state.key_ranges import KeyRanges
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.kv_memory import SortedKeys

__all__ = ["OverlayKV"]

_MANY = 4
"""From this many hidden rows on, a scan remembers that they are hidden."""
_ROW_BYTES = 200
"""The overhead of a row in bytes: two objects, and its places in a dictionary and in the order."""


class _Lead:
    """The hidden rows of the map below with which a scan begins; `passed` are ranges of such rows that are known.

    `many`: of how many nothing has been learnt yet.
    """

    __slots__ = ("_end", "_over", "_passed", "_reverse", "_start", "many")

    def __init__(self, passed: KeyRanges, start: bytes, end: bytes | None, reverse: bool) -> None:
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

    __slots__ = ("_base", "_hidden", "_keys", "_passed", "_rows")

    def __init__(self, base: OrderedKV) -> None:
        self._base = base
        # The writes: a value, or None for a deleted key. They hide the base's rows.
        self._rows: dict[bytes, bytes | None] = {}
        # The written keys with a value: scans do not visit keys deleted here.
        self._keys = SortedKeys()
        # Deleted ranges of the base.
        self._hidden = KeyRanges()
        # Ranges in which scans have found no visible row of the base (see `_Lead`).
        self._passed = KeyRanges()

    @property
    def written(self) -> int:
        """How many rows were written, without those deleted again."""
        return sum(value is not None for value in self._rows.values())

    @property
    def size(self) -> int:
        """The approximate memory of the written rows, in bytes. Looks at all of them."""
        values = sum(len(value) for value in self._rows.values() if value is not None)
        return sum(map(len, self._rows)) + values + len(self._rows) * _ROW_BYTES

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None."""
        if key in self._rows:
            return self._rows[key]
        return None if key in self._hidden else self._base.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, in their order, None for missing keys."""
        rows = self._rows
        if not rows and not self._hidden:
            return self._base.get_many(keys)
        found = list(map(rows.get, keys))
        below = [at for at, key in enumerate(keys) if found[at] is None and key not in rows and key not in self._hidden]
        if below:
            for at, value in zip(below, self._base.get_many([keys[at] for at in below]), strict=True):
                found[at] = value
        return found

    def scan(self, start: bytes, end: bytes | None, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the rows with ``start <= key < end``."""
        if self._rows or self._hidden:
            return self._merged(start, end, reverse)
        return self._base.scan(start, end, reverse)

    def _merged(self, start: bytes, end: bytes | None, reverse: bool) -> Iterator[tuple[bytes, bytes]]:
        own = self._keys.each(start, end, reverse)
        mine = next(own, None)
        rows, hidden = self._rows, self._hidden
        lead = _Lead(self._passed, start, end, reverse)
        for key, value in lead.scan(self._base):
            while mine is not None and (mine > key if reverse else mine < key):
                lead.learn(key)
                yield from self._shown(mine)
                mine = next(own, None)
            if key in rows or key in hidden:
                lead.many += 1
            else:
                lead.end(key)
                yield key, value
        lead.end(None)
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
        ranges = [(start, end) for start, end in delete_ranges if start < end]
        for key in {key for start, end in ranges for key in self._keys.between(start, end)}:
            del rows[key]
            self._keys.remove(key)
        for start, end in ranges:
            self._hidden.add(start, end)
        for key in deletes:
            if rows.get(key) is not None:
                self._keys.remove(key)
            rows[key] = None
        written = list(puts)
        self._keys.add_many([key for key, _ in written if rows.get(key) is None])
        rows.update(written)

    def changes(self) -> tuple[Mapping[bytes, bytes | None], Sequence[Range]]:
        """Return the writes: rows by key (None: deleted), and the hidden ranges of the map below."""
        return self._rows, list(self._hidden)

    def changelog(self) -> bytes:
        """Return all writes since this overlay was made, as one blob for `apply_changelog`."""
        deletes = [key for key, value in self._rows.items() if value is None]
        puts = [(key, value) for key, value in self._rows.items() if value is not None]
        return encode_changelog(list(self._hidden), deletes, puts)

    def commit(self) -> None:
        """Write everything to the map below, in one atomic write; afterwards the overlay is empty."""
        if self._rows or self._hidden:
            deletes = [key for key, value in self._rows.items() if value is None]
            puts = [(key, value) for key, value in self._rows.items() if value is not None]
            self._base.write(puts, deletes, list(self._hidden))
            self.discard()

    def settle(self, base: OrderedKV) -> None:
        """Write everything to `base`, which has the rows of the map below, and become an empty overlay above it.

        No scan may be open: it would continue in the previous map below.
        """
        self._base = base
        self.commit()

    def discard(self) -> None:
        """Discard all writes since the overlay was made or last committed."""
        self._rows = {}
        self._keys = SortedKeys()
        self._hidden, self._passed = KeyRanges(), KeyRanges()

    def _shown(self, key: bytes) -> Iterator[tuple[bytes, bytes]]:
        # The row may have been deleted during a scan.
        value = self._rows.get(key)
        if value is not None:
            yield key, value
