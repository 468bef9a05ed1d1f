"""The subscriptions of a foreign-key join: for every foreign key the left keys that refer to it, with their rows.

Layout, format version 1 (root: the length of the store's prefix as two bytes, big endian, and the prefix)::

    root "m"                          "VSUB", u16 format version (little endian)
    root "s" foreign key, left key    i64 timestamp (little endian), the left row

Guarantees: those of one foreign key come in the order of the left keys' bytes (no encoded key is a prefix of another,
see `keys`). Not for more than one join.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vsc.runtime.errors import StateError
from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root
from vsc.runtime.state.meta_row import MetaRow
from vsc.runtime.state.moving import Moving, behind
from vsc.runtime.state.timed_rows import packed, recoded

__all__ = ["FORMAT_VERSION", "MOVING", "Subscription", "SubscriptionStore"]

FORMAT_VERSION: Final = 1

_TIME: Final = struct.Struct("<q")
_META: Final = MetaRow(b"VSUB", FORMAT_VERSION, "the store of a foreign-key join's subscriptions")

MOVING: Final = Moving({b"s": behind(0)}, recoded)


class Subscription(NamedTuple):
    """One left row that refers to a foreign key: its encoded key, its encoded row, and its time in ms."""

    left_key: bytes
    row: bytes
    timestamp: int


class SubscriptionStore:
    """The subscriptions in an ordered map, under their own prefix."""

    __slots__ = ("_begun", "_kv", "_meta", "_rows")

    def __init__(self, kv: OrderedKV, prefix: bytes) -> None:
        """Open the store that `kv` has under `prefix`. Raises `StateError` if something else is stored there."""
        root = store_root(prefix)
        self._kv, self._meta, self._rows = kv, root + b"m", root + b"s"
        found = kv.get(self._meta)
        self._begun = found is not None
        _META.read(found)

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
        puts = list(zip(self._keys(*pairs), packed(rows, times), strict=True))
        if puts and not self._begun:
            puts.append((self._meta, _META.row()))
            self._begun = True
        self._kv.write(puts, self._keys(*deleted))

    def _keys(self, foreign_keys: pa.BinaryArray, left_keys: pa.BinaryArray) -> list[bytes]:
        found: list[bytes] = pc.binary_join_element_wise(self._rows, foreign_keys, left_keys, b"").to_pylist()
        return found

    def of(self, foreign_key: bytes) -> list[Subscription]:
        """Return the subscriptions to `foreign_key`, in the order of their left keys."""
        start = self._rows + foreign_key
        return [_decode(key[len(start) :], data) for key, data in self._kv.scan(start, prefix_end(start))]

    def scan(self, low: bytes = b"") -> Iterator[tuple[bytes, bytes, int]]:
        """Iterate over (foreign key and left key, left row, timestamp), from the foreign key `low` on, in order."""
        for key, data in self._kv.scan(self._rows + low, prefix_end(self._rows)):
            _, row, time = _decode(b"", data)
            yield key[len(self._rows) :], row, time


def _decode(left_key: bytes, data: bytes) -> Subscription:
    if len(data) < _TIME.size:
        raise StateError("a subscription is damaged: it is too short")
    return Subscription(left_key, data[_TIME.size :], _TIME.unpack_from(data)[0])
