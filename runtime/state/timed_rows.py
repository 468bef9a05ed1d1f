"""Stores of rows with a timestamp each: an unversioned table, and the subscriptions of a foreign-key join.

Layout, format version 1 (root: the length of the store's prefix as two bytes, big endian, and the prefix; other numbers
little endian)::

    root "m"                          "VSTS", u16 format version: of a table; "VSUB": of subscriptions
    root "r" key                      a table's row: i64 timestamp, the value
    root "s" foreign key, left key    a subscription: i64 timestamp, the left row

Guarantees: rows are in the order of their keys' bytes. Of a table the last write wins, whatever its timestamp (like
Kafka Streams' timestamped key-value store), and a tombstone leaves no row. The subscriptions of one foreign key come in
the order of the left keys' bytes (no encoded key is a prefix of another, see `keys`). Not for reads as of a time
(`versioned`), nor for the subscriptions of more than one join.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vsc.runtime.errors import StateError
from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root
from vsc.runtime.state.meta_row import MetaRow
from vsc.runtime.state.moving import Moving, Recode, behind
from vsc.runtime.state.row_columns import fixed_width_binary

__all__ = ["Subscription", "SubscriptionStore", "TimestampedStore"]

_FORMAT_VERSION: Final = 1
_TIME: Final = struct.Struct("<q")
_WIDTH: Final = _TIME.size


def _recoded(letter: bytes, value: bytes, recode: Recode) -> bytes:
    return value[:_WIDTH] + recode(value[_WIDTH:])


class _TimedRows:
    """The rows of a store in an ordered map, under their own prefix."""

    __slots__ = ("_begun", "_kv", "_meta", "_rows")

    LETTER: ClassVar[bytes]
    META: ClassVar[MetaRow]
    ROW: ClassVar[str]
    MOVING: ClassVar[Moving]

    def __init__(self, kv: OrderedKV, prefix: bytes) -> None:
        """Open the store that `kv` has under `prefix`. Raises `StateError` if something else is stored there."""
        root = store_root(prefix)
        self._kv, self._meta, self._rows = kv, root + b"m", root + self.LETTER
        found = kv.get(self._meta)
        self._begun = found is not None
        self.META.read(found)

    def scan(self, low: bytes = b"", high: bytes | None = None) -> Iterator[tuple[bytes, bytes, int]]:
        """Iterate over (key, value, timestamp) of the keys with ``low <= key < high`` in the order of their bytes."""
        start = len(self._rows)
        end = prefix_end(self._rows) if high is None else self._rows + high
        for key, data in self._kv.scan(self._rows + low, end):
            if len(data) < _WIDTH:
                raise StateError(f"{self.ROW} is damaged: it is too short")
            yield key[start:], data[_WIDTH:], _TIME.unpack_from(data)[0]

    def _commit(self, puts: list[tuple[bytes, bytes]], deletes: Sequence[bytes]) -> None:
        if not self._begun:
            puts.append((self._meta, self.META.row()))
        self._kv.write(puts, deletes)
        self._begun = True


class TimestampedStore(_TimedRows):
    """An unversioned store in an ordered map, under its own prefix."""

    __slots__ = ()

    LETTER = b"r"
    META = MetaRow(b"VSTS", _FORMAT_VERSION, "an unversioned store")
    ROW = "a row of an unversioned store"
    MOVING = Moving({LETTER: behind(0)}, _recoded)

    def put_columns(self, keys: Sequence[bytes], values: pa.BinaryArray, timestamps: npt.NDArray[np.int64]) -> None:
        """Write many rows in one atomic write; null removes. Keys must be distinct."""
        rows = self._rows
        if not values.null_count:
            self._commit(list(zip([rows + key for key in keys], _packed(values, timestamps), strict=True)), [])
            return
        there = values.is_valid().to_numpy(zero_copy_only=False)
        kept = [rows + key for key, put in zip(keys, there.tolist(), strict=True) if put]
        removed = [rows + key for key, put in zip(keys, there.tolist(), strict=True) if not put]
        self._commit(list(zip(kept, _packed(values.drop_null(), timestamps[there]), strict=True)), removed)

    def get_columns(self, keys: Sequence[bytes]) -> tuple[npt.NDArray[np.bool_], pa.BinaryArray, npt.NDArray[np.int64]]:
        """Return which of the keys exist, and the values and timestamps of those, in their order."""
        rows = self._rows
        found = self._kv.get_many([rows + key for key in keys])
        kept = [row for row in found if row is not None]
        there = np.fromiter((row is not None for row in found), dtype=np.bool_, count=len(found))
        return there, *_unpacked(kept)


class Subscription(NamedTuple):
    """One left row that refers to a foreign key: its encoded key, its encoded row, and its time in ms."""

    left_key: bytes
    row: bytes
    timestamp: int


class SubscriptionStore(_TimedRows):
    """The subscriptions in an ordered map, under their own prefix: (foreign key and left key, left row, timestamp)."""

    __slots__ = ()

    LETTER = b"s"
    META = MetaRow(b"VSUB", _FORMAT_VERSION, "the store of a foreign-key join's subscriptions")
    ROW = "a subscription"
    MOVING = Moving({LETTER: behind(0)}, _recoded)

    def write_columns(
        self,
        pairs: tuple[pa.BinaryArray, pa.BinaryArray],
        rows: pa.BinaryArray,
        times: npt.NDArray[np.int64],
        deleted: tuple[pa.BinaryArray, pa.BinaryArray],
    ) -> None:
        """Write and remove many in one atomic write, each pair of (foreign key, left key) once.

        `rows` and `times` are those of the subscriptions of `pairs`.
        """
        puts = list(zip(self._keys(*pairs), _packed(rows, times), strict=True))
        if puts:
            self._commit(puts, self._keys(*deleted))
        else:
            self._kv.write((), self._keys(*deleted))

    def _keys(self, foreign_keys: pa.BinaryArray, left_keys: pa.BinaryArray) -> list[bytes]:
        found: list[bytes] = pc.binary_join_element_wise(self._rows, foreign_keys, left_keys, b"").to_pylist()
        return found

    def of(self, foreign_key: bytes) -> list[Subscription]:
        """Return the subscriptions to `foreign_key`, in the order of their left keys."""
        start = len(foreign_key)
        found = self.scan(foreign_key, prefix_end(foreign_key))
        return [Subscription(key[start:], row, time) for key, row, time in found]


def _packed(values: pa.BinaryArray, times: npt.NDArray[np.int64]) -> list[bytes]:
    """One row for each of `values`, none of which is null."""
    heads = fixed_width_binary(np.ascontiguousarray(times, dtype="<i8").view(np.uint8).reshape(-1, _WIDTH))
    rows: list[bytes] = pc.binary_join_element_wise(heads, values, b"").to_pylist()
    return rows


def _unpacked(rows: Sequence[bytes]) -> tuple[pa.BinaryArray, npt.NDArray[np.int64]]:
    """The values and the timestamps of rows."""
    count = len(rows)
    data = pa.array(rows, pa.binary())
    starts = np.frombuffer(data.buffers()[1], dtype=np.int32, count=count + 1)
    if count and np.diff(starts).min() < _WIDTH:
        raise StateError("a row is damaged: it is too short to hold a timestamp")
    bounds = np.empty(2 * count + 1, dtype=np.int32)
    bounds[0::2] = starts
    bounds[1::2] = starts[:-1] + _WIDTH
    pieces = pa.Array.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(bounds), data.buffers()[2]])
    places = np.arange(count, dtype=np.int64) * 2
    heads = pieces.take(pa.array(places))
    times = np.frombuffer(heads.buffers()[2] or b"", dtype="<i8", count=count)
    return pieces.take(pa.array(places + 1)), times.astype(np.int64)
