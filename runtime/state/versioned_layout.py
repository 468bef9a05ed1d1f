"""The bytes of a versioned store, format version 1: its rows and their content.

Every row's key begins with the store's root (the length of its prefix as two bytes, big endian, and the prefix), so
that stores with different prefixes never mix. The record key always stands last and raw, so that keys never mix either
and heads are in the order of their keys. Times in keys are eight bytes, big endian: they sort as numbers::

    root "m"                     meta: one row a store
    root "h" key                 head: the newest versions of a key, and the directory of its chunks
    root "c" upper:8 key         chunk: older versions of a key; upper = valid_to of its newest one
    root "d" due:8 key           due: the head of this key has something to let go once `due` is past

Meta (little endian), 40 bytes::

    "VSVS"  u16 format version  u16 flags (1: due rows before `dropped` are not all swept yet)
    i64 observed stream time    i64 dropped: chunks with upper < dropped are gone
    i64 history retention       i64 grace
    i64 floor (only where it is above stream time - max(retention, grace))

Heads and chunks have one layout, in eight-byte words, so that many of them, one after the other, decode as columns::

    word 0        u32 n: versions             u32 m: chunks in the directory (0 in a chunk)
    word 1        i64 head: time of its due row, -1 without one; chunk: upper
    n words       i64 valid_from, ascending
    m words       i64 upper of each chunk, ascending
    n half words  i32 length of each value, -1 for a tombstone; filled up to a whole word
    the values, one after the other; filled up to a whole word

`valid_to` is not stored: it is the next version's `valid_from`, and upper for the last one of a chunk.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from vsc.runtime.errors import StateError
from vsc.runtime.state.kv_base import store_root
from vsc.runtime.state.moving import Moving, Recode, behind

__all__ = [
    "FORMAT_VERSION",
    "MOVING",
    "PADDING",
    "Block",
    "Meta",
    "RowKeys",
    "decode_block",
    "decode_meta",
    "encode_block",
    "encode_meta",
]

FORMAT_VERSION: Final = 1

_MAGIC: Final = b"VSVS"
_META: Final = struct.Struct("<4sHHqqqq")
_FLOOR: Final = struct.Struct("<q")
_BLOCK: Final = struct.Struct("<IIq")
_TIME: Final = struct.Struct(">Q")
PADDING: Final = (b"", b"\0" * 7, b"\0" * 6, b"\0" * 5, b"\0" * 4, b"\0" * 3, b"\0" * 2, b"\0")
"""What fills up a whole word, by the number of bytes in the last one."""


@dataclass(frozen=True, slots=True)
class Meta:
    """What a store remembers besides its versions; times in ms.

    Writes before the `floor` are refused: what they would have met may have been dropped under a shorter retention.
    """

    retention: int
    grace: int
    observed: int = -1
    dropped: int = 0
    sweeping: bool = False
    floor: int = 0

    def adopted(self, retention: int, grace: int) -> Meta:
        """The store's state with another retention and grace from now on: what has been dropped stays dropped."""
        return Meta(retention, grace, self.observed, self.dropped, self.sweeping, max(self.floor, self.horizon))

    def advanced(self, observed: int, dropped: int, sweeping: bool) -> Meta:
        """The store's state at another stream time, which may have left the floor behind."""
        floor = self.floor if self.floor > observed - self.kept else 0
        return Meta(self.retention, self.grace, observed, dropped, sweeping, floor)

    @property
    def oldest(self) -> int:
        """The oldest timestamp that a write may have, now."""
        return max(self.observed - self.grace, self.floor)

    @property
    def kept(self) -> int:
        """How far behind stream time versions are kept."""
        return max(self.retention, self.grace)

    @property
    def horizon(self) -> int:
        """Stream time minus the longer of retention and grace."""
        return self.observed - self.kept


@dataclass(slots=True)
class Block:
    """A decoded head or chunk: versions in ascending order, as parallel lists; a value of None is a tombstone.

    `mark` is a head's due time (-1 without one) or a chunk's upper; `uppers` is a head's directory.
    """

    times: list[int]
    values: list[bytes | None]
    uppers: list[int]
    mark: int

    def size(self) -> int:
        """Return its approximate size in bytes."""
        return 12 * len(self.times) + sum(len(value) for value in self.values if value is not None)


class RowKeys:
    """The keys of the rows of the store with one prefix."""

    __slots__ = ("chunk", "due", "head", "meta")

    def __init__(self, prefix: bytes) -> None:
        root = store_root(prefix)
        self.meta = root + b"m"
        self.head = root + b"h"
        self.chunk = root + b"c"
        self.due = root + b"d"

    def chunk_key(self, upper: int, key: bytes) -> bytes:
        """Return the key of the chunk of `key` whose newest version is valid to `upper`."""
        return self.chunk + _TIME.pack(upper) + key

    def due_key(self, due: int, key: bytes) -> bytes:
        """Return the key of the due row of the head of `key`, due at `due`."""
        return self.due + _TIME.pack(due) + key

    def timed(self, row_key: bytes) -> tuple[int, bytes]:
        """Return (time, key) of the key of a chunk or a due row."""
        start = len(self.due)
        (time,) = _TIME.unpack_from(row_key, start)
        return time, row_key[start + _TIME.size :]


def encode_meta(meta: Meta) -> bytes:
    """Return the meta row's bytes."""
    fixed = _META.pack(
        _MAGIC, FORMAT_VERSION, int(meta.sweeping), meta.observed, meta.dropped, meta.retention, meta.grace
    )
    return fixed + _FLOOR.pack(meta.floor) if meta.floor > max(meta.horizon, 0) else fixed


def decode_meta(data: bytes) -> Meta:
    """Read a meta row. Raises `StateError` if it is not one, or is of another format version."""
    if len(data) < 6 or data[:4] != _MAGIC:
        raise StateError("this is not the state of a versioned store, or it is damaged")
    (version,) = struct.unpack_from("<H", data, 4)
    if version != FORMAT_VERSION or len(data) not in (_META.size, _META.size + _FLOOR.size):
        raise StateError(
            f"the versioned store has format version {version}; this vsc reads format version {FORMAT_VERSION}",
            "use the version of vsc that wrote it, or rebuild the state",
        )
    _, _, flags, observed, dropped, retention, grace = _META.unpack_from(data)
    (floor,) = _FLOOR.unpack_from(data, _META.size) if len(data) > _META.size else (0,)
    return Meta(retention, grace, observed, dropped, bool(flags & 1), floor)


def encode_block(block: Block) -> bytes:
    """Return the bytes of a head or a chunk."""
    times, uppers, values = block.times, block.uppers, block.values
    n, m = len(times), len(uppers)
    lengths = [-1 if value is None else len(value) for value in values]
    fixed = struct.pack(f"<IIq{n + m}q{n + (n & 1)}i", n, m, block.mark, *times, *uppers, *lengths, *(0,) * (n & 1))
    payload = b"".join([value for value in values if value is not None])
    return fixed + payload + PADDING[len(payload) & 7]


def decode_block(data: bytes) -> Block:
    """Read a head or a chunk. Raises `StateError` if the bytes are neither."""
    try:
        n, m, mark = _BLOCK.unpack_from(data)
        numbers = struct.unpack_from(f"<{n + m}q{n}i", data, _BLOCK.size)
    except struct.error as error:
        raise StateError(f"a row of a versioned store is damaged: {error}") from error
    at = _BLOCK.size + 8 * (n + m) + 4 * (n + (n & 1))
    values: list[bytes | None] = []
    for length in numbers[n + m :]:
        if length < 0:
            values.append(None)
        else:
            values.append(data[at : at + length])
            at += length
    if n == 0 or at + (-at & 7) != len(data):
        raise StateError("a row of a versioned store is damaged: its length does not fit its content")
    return Block(list(numbers[:n]), values, list(numbers[n : n + m]), mark)


def _recoded(letter: bytes, value: bytes, recode: Recode) -> bytes:
    if letter == b"d":
        return value
    block = decode_block(value)
    block.values = [None if one is None else recode(one) for one in block.values]
    return encode_block(block)


def _merged(metas: Sequence[bytes], counts: tuple[int, ...]) -> bytes:
    """Takes the highest stream time; what the others hold behind it is dropped from then on."""
    decoded = [decode_meta(meta) for meta in metas]
    limits = {(meta.retention, meta.grace) for meta in decoded}
    first = max(decoded, key=lambda meta: meta.observed)
    if len(limits) > 1:
        decoded = [meta.adopted(first.retention, first.grace) for meta in decoded]
    observed, dropped = first.observed, min(meta.dropped for meta in decoded)
    sweeping, floor = any(meta.sweeping for meta in decoded), max(meta.floor for meta in decoded)
    return encode_meta(Meta(first.retention, first.grace, observed, dropped, sweeping, floor))


MOVING: Final = Moving({b"h": behind(0), b"c": behind(_TIME.size), b"d": behind(_TIME.size)}, _recoded, _merged)
