"""The state of a join whose results are corrected: the records that a version of the table may still correct.

Layout, format version 1 (root: the length of the store's prefix as two bytes, big endian, and the prefix; numbers in
keys are big endian)::

    root "m"                         "VSCR", u16 format version, u16 zero, then as i64: stream time; the time before
                                     which no record is kept; the highest time of a record; the number of the next
                                     write; a bit for each width in use
    root "r" width bucket key write  the records of one write whose time divided by 2 to the power of `width` (one
                                     byte) is `bucket` (eight bytes); `write` is its number (eight bytes)

A value has its records in the order of their arrival, as in `vsc.runtime.state.joined`.

Guarantees: what lies before the floor is removed in whole buckets, without reading it. A bucket is half to all
of the time for which records are kept; what was written when that was another time stays where it is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from vsc.runtime.state.joined import packed, unpacked
from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root
from vsc.runtime.state.meta_row import MetaRow
from vsc.runtime.state.moving import Moving, Recode

__all__ = ["FORMAT_VERSION", "MOVING", "Corrected", "Place", "width_of"]

FORMAT_VERSION: Final = 1

_META: Final = MetaRow(b"VSCR", FORMAT_VERSION, "the state of a corrected join", (-1, 0, -1, 0, 0))
_PLACE: Final = struct.Struct(">BQ")
_WRITE: Final = struct.Struct(">Q")
_BUCKETS: Final = 1
"""A bucket is the time for which records are kept divided by 2 to the power of this, or less: a power of two."""


class Place(NamedTuple):
    """Where records lie: the width and number of their bucket, their encoded key, the number of the write."""

    width: int
    bucket: int
    key: bytes
    write: int


def width_of(kept: int) -> int:
    """The width of a bucket, as a power of two in ms, where records are kept for `kept` ms."""
    return max(0, kept.bit_length() - _BUCKETS)


class Corrected:
    """The records of one join. `stream_time` and `newest` are -1 at first."""

    __slots__ = ("_kv", "_meta", "_rows", "_widths", "_write", "floor", "newest", "stream_time")

    def __init__(self, kv: OrderedKV, prefix: bytes) -> None:
        """Open the state that `kv` has under `prefix`. Raises `StateError` if something else is stored there."""
        root = store_root(prefix)
        self._kv, self._meta, self._rows = kv, root + b"m", root + b"r"
        self.stream_time, self.floor, self.newest, self._write, self._widths = _META.read(kv.get(self._meta))

    def between(self, key: bytes, low: int, high: int) -> Iterator[tuple[Place, bytes]]:
        """The records of a key at these times, and all others in their buckets, by bucket and write."""
        low = max(low, self.floor)
        for width in self._in_use():
            for bucket in range(low >> width, (high >> width) + 1):
                start = self._rows + _PLACE.pack(width, bucket) + key
                yield from self._scanned(start, prefix_end(start))

    def scan(self) -> Iterator[tuple[Place, bytes]]:
        """All records."""
        return self._scanned(self._rows, prefix_end(self._rows))

    def write(
        self,
        width: int,
        fresh: Sequence[tuple[int, bytes, bytes]],
        changed: Sequence[tuple[Place, bytes | None]],
        stream_time: int,
        floor: int,
        newest: int,
    ) -> None:
        """Add the records of (bucket, key) and replace the values that changed (None: it goes); remove what lies before
        `floor`."""
        ranges = []
        for one in self._in_use():
            before, after = self.floor >> one, floor >> one
            if before < after:
                ranges.append((self._rows + _PLACE.pack(one, 0), self._rows + _PLACE.pack(one, after)))
        number = _WRITE.pack(self._write)
        heads = {bucket: self._rows + _PLACE.pack(width, bucket) for bucket in {bucket for bucket, _, _ in fresh}}
        puts = [(heads[bucket] + key + number, value) for bucket, key, value in fresh]
        gone = []
        for at, value in changed:
            place = self._rows + _PLACE.pack(at.width, at.bucket) + at.key + _WRITE.pack(at.write)
            if value is None:
                gone.append(place)
            else:
                puts.append((place, value))
        if fresh:
            self._write, self._widths = self._write + 1, self._widths | 1 << width
        self.stream_time, self.floor, self.newest = stream_time, floor, newest
        puts.append((self._meta, _META.row(stream_time, floor, newest, self._write, self._widths)))
        self._kv.write(puts, gone, ranges)

    def _in_use(self) -> list[int]:
        return [width for width in range(self._widths.bit_length()) if self._widths >> width & 1]

    def _scanned(self, start: bytes, end: bytes | None) -> Iterator[tuple[Place, bytes]]:
        head = len(self._rows) + _PLACE.size
        for at, value in self._kv.scan(start, end):
            width, bucket = _PLACE.unpack_from(at, len(self._rows))
            (write,) = _WRITE.unpack_from(at, len(at) - _WRITE.size)
            yield Place(width, bucket, at[head : -_WRITE.size], write), value


def _recoded(letter: bytes, value: bytes, recode: Recode) -> bytes:
    _, times, rows = unpacked([value])
    return packed(None, times, [recode(row) for row in rows.to_pylist()])


def _merged(metas: Sequence[bytes], counts: tuple[int, ...]) -> bytes:
    times, floors, newest, writes, widths = zip(*map(_META.read, metas), strict=True)
    every = 0
    for one in widths:
        every |= one
    return _META.row(max(times), min(floors), max(newest), max(writes), every)


MOVING: Final = Moving({b"r": lambda rest: rest[_PLACE.size : -_WRITE.size]}, _recoded, _merged)
