"""An ordered map above another one: writes stay in memory, reads see both; only `commit` writes to the one below.

That is how a micro-batch works on committed state: what it writes becomes one changelog, which is applied to the map
below once the micro-batch is known to be committed; a failed attempt leaves nothing behind.

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
"""From how many hidden rows on a scan remembers that they are."""
_ROW_BYTES = 200
"""What a row takes beside its bytes: two objects, and its places in a dictionary and in the order."""


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
        """From where the scan began to `key` (None: to where it ended) nothing shows, and never will again."""
        if self._over or self.many < _MANY:
            return
        assert self._end is not None
        if self._reverse:
            self._passed.add(self._start if key is None else key + b"\0", self._end)
        else:
            self._passed.add(self._start, self._end if key is None else key)
        self.many = 0

    def end(self, key: bytes | None) -> None:
        """As `learn`, and the row of `key` shows, so that this was all."""
        self.learn(key)
        self._over = True


class OverlayKV:
    """An `OrderedKV` that keeps its writes in memory above `base`."""

    __slots__ = ("_base", "_hidden", "_keys", "_passed", "_rows")

    def __init__(self, base: OrderedKV) -> None:
        self._base = base
        # What was written: value, or None for a key that was deleted. It hides what the base has.
        self._rows: dict[bytes, bytes | None] = {}
        # Those that have a value: scans do not come by what was deleted here.
        self._keys = SortedKeys()
        # Ranges of the base that were deleted.
        self._hidden = KeyRanges()
        # Ranges in which scans have found that nothing of the base shows (see `_Lead`).
        self._passed = KeyRanges()

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
        return None if key in self._hidden else self._base.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, in their order, None for those that are not there."""
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
        for start, end in delete_ranges:
            if start < end:
                for key in self._keys.between(start, end):
                    del rows[key]
                    self._keys.remove(key)
                self._hidden.add(start, end)
        for key in deletes:
            if rows.get(key) is not None:
                self._keys.remove(key)
            rows[key] = None
        written = list(puts)
        self._keys.add_many([key for key, _ in written if rows.get(key) is None])
        rows.update(written)

    def changes(self) -> tuple[Mapping[bytes, bytes | None], Sequence[Range]]:
        """Return what was written: rows by key (None: deleted), and the ranges of the map below that are hidden."""
        return self._rows, list(self._hidden)

    def changelog(self) -> bytes:
        """Return everything that was written since this overlay was made, as one blob for `apply_changelog`."""
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
        """Write everything to `base`, which has the rows of the map below, and be an empty overlay above it.

        No scan may be under way: it would go on in the map that was below.
        """
        self._base = base
        self.commit()

    def discard(self) -> None:
        """Forget everything that was written since the overlay was made or last committed."""
        self._rows = {}
        self._keys = SortedKeys()
        self._hidden, self._passed = KeyRanges(), KeyRanges()

    def _shown(self, key: bytes) -> Iterator[tuple[bytes, bytes]]:
        # The row may have been deleted while a scan was under way.
        value = self._rows.get(key)
        if value is not None:
            yield key, value
