"""The state of a `distinct`: for every key the times of the records that have passed.

Layout, format version 2 (root: the length of the store's prefix as two bytes, big endian, and the prefix)::

    root "m"             "VSTD", u16 format version, u16 zero, i64 stream time, i64 first time, i64 floor (little
                         endian; no floor in version 1, see `migrate`)
    root "k" key         the times, ascending, each i64 (little endian)
    root "t" time key    empty; the time has eight bytes, big endian

Guarantees: stream time and the floor never go back; no time before the first time is kept; no time from the floor on
has been forgotten. The cost of forgetting depends only on what is forgotten now, not on what was forgotten before.
First time and floor differ after partitions were merged: one of them may have forgotten what another still has. The
operator decides what passes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root
from vsc.runtime.state.meta_row import MetaRow
from vsc.runtime.state.moving import Moving, Recode, behind

__all__ = ["FORMAT_VERSION", "MOVING", "PassedTimes", "migrate"]

FORMAT_VERSION: Final = 2

_META: Final = MetaRow(b"VSTD", FORMAT_VERSION, "the memory of a distinct", (-1, 0, 0))
_BEFORE: Final = MetaRow(b"VSTD", 1, "the memory of a distinct", (-1, 0))
_NUMBER: Final = struct.Struct(">Q")


class PassedTimes:
    """The times of one `distinct`. `stream_time` is -1 at first; times before `floor` may have been forgotten."""

    __slots__ = ("_first", "_keys", "_kv", "_meta", "_times", "floor", "stream_time")

    def __init__(self, kv: OrderedKV, prefix: bytes) -> None:
        """Open the state that `kv` has under `prefix`. Raises StateError if something else is stored there."""
        root = store_root(prefix)
        self._kv, self._meta, self._keys, self._times = kv, root + b"m", root + b"k", root + b"t"
        self.stream_time, self._first, self.floor = _META.read(kv.get(self._meta))

    def get_many(self, keys: Sequence[bytes]) -> list[list[int]]:
        """The times of each key, ascending."""
        return [_decode(data) for data in self._kv.get_many([self._keys + key for key in keys])]

    def scan(self) -> Iterator[tuple[bytes, list[int]]]:
        """Every key with its times, in the order of the keys' bytes."""
        for at, data in self._kv.scan(self._keys, prefix_end(self._keys)):
            yield at[len(self._keys) :], _decode(data)

    def write(
        self, changed: Mapping[bytes, list[int]], added: Sequence[tuple[int, bytes]], clock: int, first: int
    ) -> None:
        """Keep the times of the `changed` keys, with the `added` (time, key); forget all times before `first`.

        Moves stream time to `clock`, if that is later. One atomic write.
        """
        self.stream_time, first = max(self.stream_time, clock), max(self._first, first)
        begin, end = (self._times + _NUMBER.pack(time) for time in (self._first, first))
        going = self._kv.scan(begin, end) if begin < end else ()
        gone = {at[len(begin) :] for at, _ in going} - changed.keys()
        times = {**changed, **dict(zip(gone, self.get_many(list(gone)), strict=True))}
        kept = {self._keys + key: [time for time in found if time >= first] for key, found in times.items()}
        puts = [(key, struct.pack(f"<{len(found)}q", *found)) for key, found in kept.items() if found]
        puts += [(self._times + _NUMBER.pack(time) + key, b"") for time, key in added if time >= first]
        self._first, self.floor = first, max(self.floor, first)
        puts.append((self._meta, _META.row(self.stream_time, first, self.floor)))
        self._kv.write(puts, [key for key, found in kept.items() if not found], [(begin, end)] if begin < end else [])


def _decode(data: bytes | None) -> list[int]:
    return [] if data is None else list(struct.unpack(f"<{len(data) // 8}q", data))


def _recoded(letter: bytes, value: bytes, recode: Recode) -> bytes:
    return value


def _merged(metas: Sequence[bytes], counts: tuple[int, ...]) -> bytes:
    times, firsts, floors = zip(*map(_META.read, metas), strict=True)
    return _META.row(max(times), min(firsts), max(floors))


MOVING: Final = Moving({b"k": behind(0), b"t": behind(_NUMBER.size)}, _recoded, _merged)


def migrate(kv: OrderedKV, root: bytes) -> None:
    """Converts what `kv` has under `root` from format version 1, where the first time was the floor, to version 2."""
    meta = kv.get(root + b"m")
    if _BEFORE.is_of(meta):
        time, first = _BEFORE.read(meta)
        kv.write([(root + b"m", _META.row(time, first, first))])
