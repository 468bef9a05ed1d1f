"""What an accumulator keeps beside its cells: rows of one group, in order, under the group's own prefix.

An accumulator of many values, or of values that may be taken back, keeps one row per value here and scans them in
order; no single row grows with the group. Each accumulator has its own prefix within the group.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from vsc.runtime.state.kv_base import OrderedKV, prefix_end

__all__ = ["At", "Entries", "packed"]

_PAIR = struct.Struct(">QQ")


class At(NamedTuple):
    """Where a row stands among the rows of its group, and which one it is.

    `time` is its event time, `arrival` its number among the rows given to the operator, `ident` identifies a table's
    row (empty for a stream, whose rows are never taken back).
    """

    time: int
    arrival: int
    ident: bytes = b""


def packed(time: int, arrival: int) -> bytes:
    """16 bytes in the order of (event time, arrival)."""
    return _PAIR.pack(time, arrival)


class Entries:
    """The rows of one accumulator in one group, by suffix."""

    __slots__ = ("_end", "_kv", "prefix")

    def __init__(self, kv: OrderedKV, prefix: bytes) -> None:
        self._kv = kv
        self.prefix = prefix
        end = prefix_end(prefix)
        assert end is not None
        self._end = end

    def get(self, suffix: bytes) -> bytes | None:
        """The value of a row, or None."""
        return self._kv.get(self.prefix + suffix)

    def put(self, suffix: bytes, value: bytes = b"") -> None:
        """Writes a row."""
        self._kv.write([(self.prefix + suffix, value)])

    def delete(self, suffix: bytes) -> None:
        """Removes a row."""
        self._kv.write((), [self.prefix + suffix])

    def scan(self, begin: bytes = b"", reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """The rows whose suffix begins with `begin`, as (what follows `begin`, value), ascending or descending."""
        start = self.prefix + begin
        skip = len(start)
        for key, value in self._kv.scan(start, prefix_end(start), reverse):
            yield key[skip:], value

    def first(self, begin: bytes = b"", reverse: bool = False) -> tuple[bytes, bytes] | None:
        """The first row of `scan`, or None."""
        return next(self.scan(begin, reverse), None)

    def clear(self) -> None:
        """Removes all rows."""
        self._kv.write((), (), [(self.prefix, self._end)])
