"""The buffer of a join with grace (KIP-923): waiting records, in the order in which they will be joined.

That of a `reorder` is the same (`placed_key`): its keys are the records' places, their keys behind them.

Layout, format version 1 (root: the length of the buffer's prefix as two bytes, big endian, and the prefix; numbers in
keys are eight bytes, big endian, so that they sort)::

    root "m"                              "VSTB", u16 format version, u16 zero, i64 stream time, i64 next sequence,
                                          i64 records (little endian)
    root "b" timestamp key 00 00 sequence the payload

In a key each byte 00 is followed by FF, and 00 00 ends the key. So the rows are in the order of (timestamp, the key's
raw bytes as unsigned numbers, arrival), and a key that is a prefix of another comes before it, whatever follows.

Guarantees: records of one timestamp and key come out in the order in which they went in; stream time is the highest
timestamp ever added, and nothing else moves it; stream time, sequence and records survive a restart exactly (decision
D11). The join decides what is late.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root
from vsc.runtime.state.meta_row import MetaRow
from vsc.runtime.state.moving import Moving, Recode

__all__ = ["FORMAT_VERSION", "MOVING", "PLACED", "Buffered", "TimeOrderedBuffer", "key_of", "place_of", "placed_key"]

FORMAT_VERSION: Final = 1

_META: Final = MetaRow(b"VSTB", FORMAT_VERSION, "the buffer of a join with grace", (-1, 0, 0))
_NUMBER: Final = struct.Struct(">Q")
_END: Final = b"\0\0"


class Buffered(NamedTuple):
    """A waiting record."""

    timestamp: int
    key: bytes
    payload: bytes


class TimeOrderedBuffer:
    """Records by (timestamp, key, arrival) in an ordered map, under a prefix of its own."""

    __slots__ = ("_count", "_kv", "_meta", "_rows", "_sequence", "_time")

    def __init__(self, kv: OrderedKV, prefix: bytes) -> None:
        """Open the buffer that `kv` has under `prefix`. Raises `StateError` if something else is stored there."""
        root = store_root(prefix)
        self._kv, self._meta, self._rows = kv, root + b"m", root + b"b"
        self._time, self._sequence, self._count = _META.read(kv.get(self._meta))

    def __len__(self) -> int:
        return self._count

    @property
    def stream_time(self) -> int:
        """The highest timestamp ever added; -1 at first."""
        return self._time

    def pass_through(self, count: int, clock: int, waiting: Sequence[tuple[int, Buffered]]) -> None:
        """Add `count` records, the highest timestamp of which is `clock`, and keep only those `waiting`.

        These have their places among all of them. One atomic write.
        """
        puts = [self._row(self._sequence + place, record) for place, record in waiting]
        self._sequence += count
        self._count += len(waiting)
        self._time = max(self._time, clock)
        self._kv.write([*puts, self._meta_row()])

    def pop_until(self, timestamp: int) -> Iterator[Buffered]:
        """Take out the records with a time of at most `timestamp`: (timestamp, key, payload), in order.

        They are removed, in one atomic write, before the first one is returned.
        """
        if not self._count or timestamp < 0:
            return iter(())
        due = self._kv.between(self._rows, self._rows + _NUMBER.pack(timestamp + 1))
        if due:
            self._count -= len(due)
            self._kv.write([self._meta_row()], [row_key for row_key, _ in due])
        return iter([Buffered(*self._decode(row_key), payload) for row_key, payload in due])

    def scan(self) -> Iterator[Buffered]:
        """Iterate over all waiting records, in order, without taking them out."""
        for row_key, payload in self._kv.scan(self._rows, prefix_end(self._rows)):
            yield Buffered(*self._decode(row_key), payload)

    def _row(self, sequence: int, record: Buffered) -> tuple[bytes, bytes]:
        escaped = record.key.replace(b"\0", b"\0\xff")
        return self._rows + _NUMBER.pack(record.timestamp) + escaped + _END + _NUMBER.pack(sequence), record.payload

    def _meta_row(self) -> tuple[bytes, bytes]:
        return self._meta, _META.row(self._time, self._sequence, self._count)

    def _decode(self, row_key: bytes) -> tuple[int, bytes]:
        start = len(self._rows)
        (timestamp,) = _NUMBER.unpack_from(row_key, start)
        return timestamp, _key(row_key[start:])


def _key(rest: bytes) -> bytes:
    return rest[_NUMBER.size : -_NUMBER.size - len(_END)].replace(b"\0\xff", b"\0")


def _recoded(letter: bytes, value: bytes, recode: Recode) -> bytes:
    return recode(value)


def _merged(metas: Sequence[bytes], counts: tuple[int, ...]) -> bytes:
    times, sequences, _ = zip(*map(_META.read, metas), strict=True)
    return _META.row(max(times), max(sequences), *(counts or (0,)))


def _counted(meta: bytes | None, letter: bytes, rest: bytes, value: bytes) -> tuple[int, ...]:
    return (1,)


MOVING: Final = Moving({b"b": _key}, _recoded, _merged, _counted)


def placed_key(place: bytes, key: bytes) -> bytes:
    """The key under which a buffer holds a record by its place."""
    return place.replace(b"\0", b"\0\xff") + _END + key


def place_of(placed: bytes) -> bytes:
    """The place in such a key."""
    return placed.partition(_END)[0].replace(b"\0\xff", b"\0")


def key_of(placed: bytes) -> bytes:
    """The record's own key in such a key."""
    return placed.partition(_END)[2]


def _recoded_placed(letter: bytes, value: bytes, recode: Recode) -> bytes:
    return value[:1] + recode(value[1:])


PLACED: Final = Moving({b"b": lambda rest: key_of(_key(rest))}, _recoded_placed, _merged, _counted)
"""The rows of a buffer by place, whose payloads begin with a byte that says whether the record has a value."""
