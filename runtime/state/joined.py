"""The state of a join of two streams: the records of each side that can still be found, and those that wait.

Layout, format version 1 (root: the length of the store's prefix as two bytes, big endian, and the prefix; numbers in
keys are eight bytes, big endian; other numbers little endian; side: one byte, 0 left, 1 right)::

    root "m"                    "VSSJ", u16 format version, u16 zero, then as i64: stream time; by side the newest time,
                                the time before which all buckets were removed, the time before which no record is found
                                any more; how many records wait
    root "r" side bucket key    the records of the key whose time divided by the width of a bucket is `bucket`
    root "w" side time key      the records of the key and time that wait for a partner

A value has its records in the order of their arrival: u32 how many, for each i64 time and u32 where its row ends among
the rows, then the rows.

Guarantees: stream time, newest times and floors never go back; a bucket before the floor is removed whole, without
reading it. Of several stores merged into one, some may still have what another has removed: hence two times. The
operator decides what is found, and which records wait.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.runtime.errors import StateError
from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root
from vsc.runtime.state.meta_row import MetaRow
from vsc.runtime.state.moving import Moving, Recode, behind

__all__ = ["FORMAT_VERSION", "MOVING", "Joined", "RecordKey", "packed", "packed_each", "records_in", "unpacked"]

FORMAT_VERSION: Final = 1

_META: Final = MetaRow(b"VSSJ", FORMAT_VERSION, "the state of a join of streams", (-1, -1, -1, 0, 0, 0, 0, 0))
_PLACE: Final = struct.Struct(">BQ")
_COUNT: Final = struct.Struct("<I")
_HEAD: Final = np.dtype([("time", "<i8"), ("end", "<u4")])
_SIDES: Final = (0, 1)

Int64s = npt.NDArray[np.int64]


class RecordKey(NamedTuple):
    """Where records lie: by side, bucket (or, for those that wait, time) and encoded key."""

    side: int
    number: int
    key: bytes


class Joined:
    """The state of one join. `stream_time` and the `newest` times are -1 at first; `floor` is by side, as `newest`."""

    __slots__ = ("_first", "_kv", "_meta", "_rows", "_waiting", "_width", "floor", "newest", "stream_time", "waiting")

    def __init__(self, kv: OrderedKV, prefix: bytes, width: int) -> None:
        """Open the state that `kv` has under `prefix`. Raises `StateError` if something else is stored there."""
        root = store_root(prefix)
        self._kv, self._width = kv, width
        self._meta, self._rows, self._waiting = root + b"m", root + b"r", root + b"w"
        self.stream_time, *sides, self.waiting = _META.read(kv.get(self._meta))
        self.newest, self._first, self.floor = sides[0:2], sides[2:4], sides[4:6]

    def rows(self, places: Sequence[RecordKey]) -> list[bytes | None]:
        """The records in these buckets."""
        return self._kv.get_many(_keys(self._rows, places))

    def waits(self, places: Sequence[RecordKey]) -> list[bytes | None]:
        """The records that wait at these times."""
        return self._kv.get_many(_keys(self._waiting, places))

    def waiting_before(self, side: int, time: int) -> list[tuple[RecordKey, bytes]]:
        """The records of a side that wait and are older than `time`, by time and key."""
        if not self.waiting or time <= 0:
            return []
        return list(self._scanned(self._waiting, _PLACE.pack(side, 0), _PLACE.pack(side, time)))

    def first_waiting(self, side: int) -> int | None:
        """The earliest time of the records of a side that wait; None if there are none."""
        found = next(self._scanned(self._waiting, _PLACE.pack(side, 0), _PLACE.pack(side + 1, 0)), None)
        return None if found is None else found[0][1]

    def scan_waiting(self) -> Iterator[tuple[RecordKey, bytes]]:
        """All that wait, by side, time and key."""
        return self._scanned(self._waiting)

    def scan(self) -> Iterator[tuple[RecordKey, bytes]]:
        """All buckets, by side, bucket and key."""
        return self._scanned(self._rows)

    def write(
        self,
        rows: Sequence[tuple[RecordKey, bytes]],
        waiting: Sequence[tuple[RecordKey, bytes]],
        gone: Sequence[RecordKey],
        count: int,
    ) -> None:
        """Replace buckets, and the records that wait at a time; `gone` wait no more. `count`: how many wait then.

        Removes what lies before `floor`. One atomic write, with the times as they were set.
        """
        puts = []
        for letter, values in ((self._rows, rows), (self._waiting, waiting)):
            keys = _keys(letter, [place for place, _ in values])
            puts += [(key, value) for key, (_, value) in zip(keys, values, strict=True)]
        deletes = _keys(self._waiting, gone)
        ranges = []
        for side in _SIDES:
            low, high = (time // self._width for time in (self._first[side], self.floor[side]))
            if low < high:
                ranges.append((self._rows + _PLACE.pack(side, low), self._rows + _PLACE.pack(side, high)))
                self._first[side] = high * self._width
        self.waiting = count
        puts.append((self._meta, _META.row(self.stream_time, *self.newest, *self._first, *self.floor, count)))
        self._kv.write(puts, deletes, ranges)

    def _scanned(self, letter: bytes, low: bytes = b"", high: bytes | None = None) -> Iterator[tuple[RecordKey, bytes]]:
        start = len(letter)
        end = prefix_end(letter) if high is None else letter + high
        for at, value in self._kv.scan(letter + low, end):
            side, number = _PLACE.unpack_from(at, start)
            yield RecordKey(side, number, at[start + _PLACE.size :]), value


def _keys(letter: bytes, places: Sequence[RecordKey]) -> list[bytes]:
    return [letter + _PLACE.pack(side, number) + key for side, number, key in places]


def packed(before: bytes | None, times: Int64s, rows: Sequence[bytes]) -> bytes:
    """Records behind those that are there already."""
    return packed_each([before], np.zeros(1, dtype=np.int64), times, pa.array(rows, pa.binary()))[0]


def packed_each(before: Sequence[bytes | None], starts: Int64s, times: Int64s, rows: pa.BinaryArray) -> list[bytes]:
    """Records that follow one another, each group behind those that are there `before`; `starts` are their places."""
    offsets = np.frombuffer(rows.buffers()[1], dtype=np.int32)[rows.offset : rows.offset + len(rows) + 1]
    data, bounds = memoryview(rows.buffers()[2] or b""), np.append(starts, len(rows))
    known = [(0, b"", b"") if there is None else _parts(there) for there in before]
    ends = offsets[1:] - np.repeat(offsets[starts] - [len(body) for _, _, body in known], np.diff(bounds))
    heads = np.empty(len(rows), dtype=_HEAD)
    heads["time"], heads["end"] = times, ends
    said, cuts, values = memoryview(heads.tobytes()), (bounds * _HEAD.itemsize).tolist(), []
    counts, offset = np.diff(bounds).tolist(), offsets[bounds].tolist()
    for at, (count, own, body) in enumerate(known):
        parts = own, said[cuts[at] : cuts[at + 1]], body, data[offset[at] : offset[at + 1]]
        values.append(b"".join((_COUNT.pack(count + counts[at]), *parts)))
    return values


def records_in(value: bytes) -> int:
    """How many records a value has."""
    count: int = _COUNT.unpack_from(value)[0]
    return count


def unpacked(values: Sequence[bytes]) -> tuple[Int64s, Int64s, pa.BinaryArray]:
    """The records of several values: of each the number of its value, its time and its row."""
    parts = [_parts(value) for value in values]
    counts = np.array([count for count, _, _ in parts], dtype=np.int64)
    heads = np.frombuffer(b"".join([one for _, one, _ in parts]), dtype=_HEAD)
    ends = np.cumsum([0, *(len(body) for _, _, body in parts)])
    of = np.repeat(np.arange(len(parts), dtype=np.int64), counts)
    offsets = np.zeros(len(heads) + 1, dtype=np.int32)
    offsets[1:] = heads["end"] + ends[of]
    body = b"".join([body for _, _, body in parts])
    if (np.diff(offsets) < 0).any() or int(offsets[-1]) != len(body):
        raise StateError("records of a join of streams are damaged: they do not end where they should")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(body)]
    return of, heads["time"].astype(np.int64), pa.Array.from_buffers(pa.binary(), len(heads), buffers)


def _parts(value: bytes) -> tuple[int, bytes, bytes]:
    """How many records a value has, what is said of each, and their rows."""
    (count,) = _COUNT.unpack_from(value)
    end = _COUNT.size + count * _HEAD.itemsize
    if len(value) < end:
        raise StateError("records of a join of streams are damaged: they are too short")
    return count, value[_COUNT.size : end], value[end:]


def _recoded(letter: bytes, value: bytes, recode: Recode) -> bytes:
    _, times, rows = unpacked([value])
    return packed(None, times, [recode(row) for row in rows.to_pylist()])


def _merged(metas: Sequence[bytes], counts: tuple[int, ...]) -> bytes:
    time, left, right, *rest = zip(*map(_META.read, metas), strict=True)
    firsts, floors = rest[0:2], rest[2:4]
    newest = max(time), max(left), max(right)
    return _META.row(*newest, *map(min, firsts), *map(max, floors), *(counts or (0,)))


def _counted(meta: bytes | None, letter: bytes, rest: bytes, value: bytes) -> tuple[int, ...]:
    return (records_in(value) if letter == b"w" else 0,)


MOVING: Final = Moving({b"r": behind(_PLACE.size), b"w": behind(_PLACE.size)}, _recoded, _merged, _counted)
