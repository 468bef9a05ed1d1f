"""The unversioned store: for every key the last written value, with its timestamp.

Layout, format version 1 (root: the length of the store's prefix as two bytes, big endian, and the prefix)::

    root "m"        "VSTS", u16 format version (little endian)
    root "r" key    i64 timestamp (little endian), the value

Guarantees: the last write wins, whatever its timestamp (like Kafka Streams' timestamped key-value store); a tombstone
leaves no row; rows are in the order of their keys' bytes. Not for reads as of a time (`versioned`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.runtime.errors import StateError
from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root
from vsc.runtime.state.meta_row import MetaRow
from vsc.runtime.state.moving import Moving, behind
from vsc.runtime.state.timed_rows import packed, recoded, unpacked

__all__ = ["FORMAT_VERSION", "MOVING", "TimestampedStore"]

FORMAT_VERSION: Final = 1

_TIME: Final = struct.Struct("<q")
_META: Final = MetaRow(b"VSTS", FORMAT_VERSION, "an unversioned store")

MOVING: Final = Moving({b"r": behind(0)}, recoded)


class TimestampedStore:
    """An unversioned store in an ordered map, under its own prefix."""

    __slots__ = ("_begun", "_kv", "_meta", "_rows")

    def __init__(self, kv: OrderedKV, prefix: bytes) -> None:
        """Open the store that `kv` has under `prefix`. Raises `StateError` if something else is stored there."""
        root = store_root(prefix)
        self._kv, self._meta, self._rows = kv, root + b"m", root + b"r"
        found = kv.get(self._meta)
        self._begun = found is not None
        _META.read(found)

    def put_columns(self, keys: Sequence[bytes], values: pa.BinaryArray, timestamps: npt.NDArray[np.int64]) -> None:
        """Write many rows in one atomic write; null removes. Keys must be distinct."""
        rows = self._rows
        if not values.null_count:
            self._commit(list(zip([rows + key for key in keys], packed(values, timestamps), strict=True)), [])
            return
        there = values.is_valid().to_numpy(zero_copy_only=False)
        kept = [rows + key for key, put in zip(keys, there.tolist(), strict=True) if put]
        removed = [rows + key for key, put in zip(keys, there.tolist(), strict=True) if not put]
        self._commit(list(zip(kept, packed(values.drop_null(), timestamps[there]), strict=True)), removed)

    def get_columns(self, keys: Sequence[bytes]) -> tuple[npt.NDArray[np.bool_], pa.BinaryArray, npt.NDArray[np.int64]]:
        """Return which of the keys exist, and the values and timestamps of those, in their order."""
        rows = self._rows
        found = self._kv.get_many([rows + key for key in keys])
        kept = [row for row in found if row is not None]
        there = np.fromiter((row is not None for row in found), dtype=np.bool_, count=len(found))
        return there, *unpacked(kept)

    def scan(self, low: bytes = b"", high: bytes | None = None) -> Iterator[tuple[bytes, bytes, int]]:
        """Iterate over (key, value, timestamp) of the keys with ``low <= key < high`` in the order of their bytes."""
        start = len(self._rows)
        end = prefix_end(self._rows) if high is None else self._rows + high
        for key, data in self._kv.scan(self._rows + low, end):
            if len(data) < _TIME.size:
                raise StateError("a row of an unversioned store is damaged: it is too short")
            yield key[start:], data[_TIME.size :], _TIME.unpack_from(data)[0]

    def _commit(self, puts: list[tuple[bytes, bytes]], deletes: Sequence[bytes]) -> None:
        if not self._begun:
            puts.append((self._meta, _META.row()))
        self._kv.write(puts, deletes)
        self._begun = True
