"""The buffer of `suppress`: one row per key, in the order in which the keys come out. A table whose rows expire or
are forgotten keeps its keys in one, each at the time of its row, without the row.

Layout, format version 1 (root: the length of the buffer's prefix as two bytes, big endian, and the prefix)::

    root "m"           "VSTP", u16 format version, u16 zero, then i64: stream time, rows, bytes (little endian)
    root "k" key       i64 the time by which it is ordered, i64 the event time of the row (little endian), u8 (bit 0:
                       there is a row, bit 1: there is the row before), u32 length of the row, the row, the row before
    root "t" time key  nothing (time: eight bytes, big endian)

Guarantees: as long as a key is held, it keeps the time with which it came in and the row that it had before then, even
if its row changes. Keys come out in the order of (time, the key's bytes). The caller sets stream time, which survives a
restart like everything else. The operator decides what comes out when.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from vsc.runtime.errors import StateError
from vsc.runtime.state.kv_base import OrderedKV, store_root
from vsc.runtime.state.meta_row import MetaRow
from vsc.runtime.state.moving import Moving, Recode, behind

__all__ = ["FAR", "FORMAT_VERSION", "MOVING", "Suppressed", "SuppressedRow", "byte_size"]

FORMAT_VERSION: Final = 1

_META: Final = MetaRow(b"VSTP", FORMAT_VERSION, "the buffer of a suppress", (-1, 0, 0))
_ROW: Final = struct.Struct("<qqBI")
_NUMBER: Final = struct.Struct(">Q")
FAR: Final = 2**63 - 1
"""A place in time after all others."""
_PIECE: Final = 256
"""So many rows are read at once."""


class SuppressedRow(NamedTuple):
    """What is held for a key: where it stands in time, its newest row and that row's event time, and the row that the
    key had when it came in (each None: a tombstone, or none)."""

    place: int
    key: bytes
    row: bytes | None
    before: bytes | None
    timestamp: int


class Suppressed:
    """The held rows, in an ordered map under their own prefix."""

    __slots__ = ("_first", "_kv", "_meta", "_rows", "_times", "begun", "bytes", "count", "stream_time")

    def __init__(self, kv: OrderedKV, prefix: bytes) -> None:
        """Open the buffer that `kv` has under `prefix`. Raises `StateError` if something else is stored there."""
        root = store_root(prefix)
        self._kv, self._meta, self._rows, self._times = kv, root + b"m", root + b"k", root + b"t"
        found = kv.get(self._meta)
        self.begun = found is not None
        self.stream_time, self.count, self.bytes = _META.read(found)
        # No key comes out before this time, so no search passes what has come out.
        self._first = 0

    def get_many(self, keys: Sequence[bytes]) -> list[SuppressedRow | None]:
        """The held row of each key, None for keys that are not held."""
        rows = self._kv.get_many([self._rows + key for key in keys])
        return [None if row is None else _decode(key, row) for key, row in zip(keys, rows, strict=True)]

    def skip(self, until: int) -> None:
        """Note that nothing is held with a time of at most `until`, so no search starts there."""
        self._first = max(self._first, until + 1)

    def all(self) -> list[SuppressedRow]:
        """All held rows, in order."""
        return list(self.until(FAR))

    def until(self, time: int) -> Iterator[SuppressedRow]:
        """The held rows with a time of at most `time`, in order, each read not long before it is taken."""
        if not self.count or time < self._first:
            return
        skip = len(self._times) + _NUMBER.size
        begin, end = (self._times + _NUMBER.pack(at) for at in (self._first, time + 1))
        index = self._kv.scan(begin, end)
        while keys := [row_key[skip:] for row_key, _ in islice(index, _PIECE)]:
            for row in self.get_many(keys):
                if row is None:
                    raise StateError("the buffer of a suppress is damaged: a key has no row")
                yield row

    def replace(self, gone: Sequence[SuppressedRow], held: Sequence[SuppressedRow], now: int) -> None:
        """Remove `gone`, which are held, then hold `held`, all in one write. `now`: the stream time."""
        rows = {self._rows + one.key: _encode(one.place, one.row, one.before, one.timestamp) for one in held}
        was, times = (dict.fromkeys(self._times + _NUMBER.pack(r.place) + r.key for r in part) for part in (gone, held))
        self.count += len(held) - len(gone)
        self.bytes += sum(map(len, rows.values())) + sum(len(one.key) for one in held) - sum(map(_size, gone))
        self.stream_time = now
        puts = [(time, b"") for time in times if time not in was]
        deletes = [self._rows + one.key for one in gone] + [time for time in was if time not in times]
        self.begun = True
        self._kv.write([*rows.items(), *puts, self._meta_row()], [key for key in deletes if key not in rows])

    def _meta_row(self) -> tuple[bytes, bytes]:
        return self._meta, _META.row(self.stream_time, self.count, self.bytes)


def _encode(place: int, row: bytes | None, before: bytes | None, timestamp: int) -> bytes:
    flags = (row is not None) | (before is not None) << 1
    return _ROW.pack(place, timestamp, flags, len(row or b"")) + (row or b"") + (before or b"")


def byte_size(key: bytes, row: int, before: int) -> int:
    """What a held row counts, given the lengths of its row and of the row before."""
    return len(key) + _ROW.size + row + before


def _size(held: SuppressedRow) -> int:
    return byte_size(held.key, len(held.row or b""), len(held.before or b""))


def _decode(key: bytes, data: bytes) -> SuppressedRow:
    place, timestamp, flags, length = _ROW.unpack_from(data)
    end = _ROW.size + length
    row = data[_ROW.size : end] if flags & 1 else None
    return SuppressedRow(place, key, row, data[end:] if flags & 2 else None, timestamp)


def _recoded(letter: bytes, value: bytes, recode: Recode) -> bytes:
    if letter == b"t":
        return value
    held = _decode(b"", value)
    row, before = (None if one is None else recode(one) for one in (held.row, held.before))
    return _encode(held.place, row, before, held.timestamp)


def _merged(metas: Sequence[bytes], counts: tuple[int, ...]) -> bytes:
    """Takes the lowest stream time: the search for due rows starts from there."""
    times = [_META.read(meta)[0] for meta in metas]
    return _META.row(min((time for time in times if time >= 0), default=-1), *(counts or (0, 0)))


def _counted(meta: bytes | None, letter: bytes, rest: bytes, value: bytes) -> tuple[int, ...]:
    return (1, len(rest) + len(value)) if letter == b"k" else (0, 0)


def _earlier(meta: bytes, ms: int) -> bytes:
    time, *counts = _META.read(meta)
    return _META.row(max(time - ms, -1), *counts)


MOVING: Final = Moving({b"k": behind(0), b"t": behind(_NUMBER.size)}, _recoded, _merged, _counted, earlier=_earlier)
