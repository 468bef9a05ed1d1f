"""The buffer of a join with grace (KIP-923): records that wait, in the order in which they will be joined.

Layout, format version 1 (root: the length of the buffer's prefix as two bytes, big endian, and the prefix; numbers in
keys are eight bytes, big endian, so that they sort)::

    root "m"                              "VSTB", u16 format version, u16 zero, i64 stream time, i64 next sequence,
                                          i64 records (little endian)
    root "b" timestamp key 00 00 sequence the payload

In a key each byte 00 is followed by FF, and 00 00 ends it: so the rows are in the order of (timestamp, the key's raw
bytes as unsigned numbers, arrival), and a key that begins another one comes before it whatever follows.

Guarantees: records of one timestamp and key come out as they went in; stream time is the highest timestamp that was
ever added, and nothing else moves it; stream time, sequence and records outlive a restart exactly (decision D11). Not
for deciding what is late: that is the join's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from vsc.runtime.errors import StateError
from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root

__all__ = ["FORMAT_VERSION", "Buffered", "TimeOrderedBuffer"]

FORMAT_VERSION: Final = 1

_MAGIC: Final = b"VSTB"
_META: Final = struct.Struct("<4sHHqqq")
_NUMBER: Final = struct.Struct(">Q")
_END: Final = b"\0\0"


class Buffered(NamedTuple):
    """A record that waits."""

    timestamp: int
    key: bytes
    payload: bytes


class TimeOrderedBuffer:
    """Records by (timestamp, key, arrival) in an ordered map, under a prefix of its own."""

    __slots__ = ("_count", "_kv", "_meta", "_oldest", "_rows", "_sequence", "_time")

    def __init__(self, kv: OrderedKV, prefix: bytes) -> None:
        """Open the buffer that `kv` has under `prefix`; `StateError` when what lies there is something else."""
        root = store_root(prefix)
        self._kv, self._meta, self._rows = kv, root + b"m", root + b"b"
        self._time, self._sequence, self._count = _read_meta(kv.get(self._meta))
        # No record is older than this: most look-ups for what is due end here.
        self._oldest = 0

    def __len__(self) -> int:
        return self._count

    @property
    def stream_time(self) -> int:
        """The highest timestamp that was ever added; -1 at first."""
        return self._time

    def add(self, timestamp: int, key: bytes, payload: bytes) -> None:
        """Take in a record. Raises ValueError for a negative timestamp."""
        self._add([Buffered(timestamp, key, payload)])

    def pass_through(self, count: int, clock: int, waiting: Sequence[tuple[int, Buffered]]) -> None:
        """Take in `count` records, the highest timestamp of which is `clock`, of which only those `waiting` are left.

        These come with their places among all of them; one atomic write.
        """
        puts = [self._row(self._sequence + place, record) for place, record in waiting]
        self._sequence += count
        self._count += len(waiting)
        self._time = max(self._time, clock)
        self._oldest = min([self._oldest, *(record.timestamp for _, record in waiting)])
        self._kv.write([*puts, self._meta_row()])

    def skip(self, until: int) -> None:
        """Say that nothing waits with a time of at most `until`, so that nothing is sought there."""
        self._oldest = max(self._oldest, until + 1)

    def pop_until(self, timestamp: int) -> Iterator[Buffered]:
        """Take out the records with a time of at most `timestamp`: (timestamp, key, payload), in order.

        They are removed, in one atomic write, before the first one is given.
        """
        if not self._count or timestamp < self._oldest:
            return iter(())
        end = self._rows + _NUMBER.pack(timestamp + 1)
        due = []
        start, self._oldest = self._rows + _NUMBER.pack(self._oldest), timestamp + 1
        for row in self._kv.scan(start, prefix_end(self._rows)):
            if row[0] >= end:
                (self._oldest,) = _NUMBER.unpack_from(row[0], len(self._rows))
                break
            due.append(row)
        if due:
            self._count -= len(due)
            self._kv.write([self._meta_row()], [row_key for row_key, _ in due])
        return iter([Buffered(*self._decode(row_key), payload) for row_key, payload in due])

    def scan(self) -> Iterator[Buffered]:
        """Iterate over all records that wait, in order, without taking them out."""
        for row_key, payload in self._kv.scan(self._rows, prefix_end(self._rows)):
            yield Buffered(*self._decode(row_key), payload)

    def _add(self, records: Sequence[Buffered]) -> None:
        if not records:
            return
        times = [timestamp for timestamp, _, _ in records]
        if min(times) < 0:
            raise ValueError(f"a timestamp must not be negative, but is {min(times)}")
        puts = [self._row(sequence, record) for sequence, record in enumerate(records, self._sequence)]
        self._sequence += len(records)
        self._count += len(records)
        self._time = max(self._time, *times)
        self._oldest = min(self._oldest, *times)
        puts.append(self._meta_row())
        self._kv.write(puts)

    def _row(self, sequence: int, record: Buffered) -> tuple[bytes, bytes]:
        escaped = record.key.replace(b"\0", b"\0\xff")
        return self._rows + _NUMBER.pack(record.timestamp) + escaped + _END + _NUMBER.pack(sequence), record.payload

    def _meta_row(self) -> tuple[bytes, bytes]:
        return self._meta, _META.pack(_MAGIC, FORMAT_VERSION, 0, self._time, self._sequence, self._count)

    def _decode(self, row_key: bytes) -> tuple[int, bytes]:
        start = len(self._rows)
        (timestamp,) = _NUMBER.unpack_from(row_key, start)
        escaped = row_key[start + _NUMBER.size : -_NUMBER.size - len(_END)]
        return timestamp, escaped.replace(b"\0\xff", b"\0")


def _read_meta(data: bytes | None) -> tuple[int, int, int]:
    if data is None:
        return -1, 0, 0
    if len(data) != _META.size or data[:4] != _MAGIC or struct.unpack_from("<H", data, 4)[0] != FORMAT_VERSION:
        raise StateError(
            f"what lies here is not a time-ordered buffer of format version {FORMAT_VERSION}, or it is damaged",
            "use the version of vsc that wrote it, or rebuild the state",
        )
    _, _, _, time, sequence, count = _META.unpack(data)
    return time, sequence, count
