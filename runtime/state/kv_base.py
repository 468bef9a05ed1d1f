"""The interface under every store: an ordered map of bytes to bytes, with atomic writes.

Guarantees: keys are ordered as unsigned bytes, and a key that is a prefix of another comes before it; a `write` is seen
whole or not at all. A scan shows the state at its beginning or later; writing during a scan is allowed, and the scan
may or may not show it. Not for concurrent use: one thread per map.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

__all__ = ["LowerKV", "OrderedKV", "prefix_end", "store_root"]


class OrderedKV(Protocol):
    """An ordered map of bytes to bytes with atomic writes."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None."""
        ...

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, in their order, None for missing keys."""
        ...

    def scan(self, start: bytes, end: bytes | None, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the rows with ``start <= key < end`` (`end` None: to the last key), ascending or descending."""
        ...

    def between(self, start: bytes, end: bytes | None) -> list[tuple[bytes, bytes]]:
        """All rows with ``start <= key < end``, ascending: less work than a `scan` to its end."""
        ...

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes] = (),
        delete_ranges: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Apply everything at once: first the ranges ``[start, end)``, then the deletes, then the puts."""
        ...


class LowerKV(OrderedKV, Protocol):
    """A map to work above: it can make a scratch copy to write to."""

    def scratch(self) -> OrderedKV:
        """A map with the same rows: neither sees writes to the other. Only one exists at a time.

        It is removed when this map is closed.
        """
        ...


def prefix_end(prefix: bytes) -> bytes | None:
    """Return the smallest key greater than every key that begins with `prefix`; None if no key is."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,)) if stem else None


def store_root(prefix: bytes) -> bytes:
    """Return what all row keys of the store with this prefix begin with: no root is a prefix of another.

    Raises ValueError for a prefix of 65,536 bytes or more.
    """
    if len(prefix) > 0xFFFF:
        raise ValueError(f"a store's prefix has at most 65535 bytes, not {len(prefix)}")
    return struct.pack(">H", len(prefix)) + prefix
