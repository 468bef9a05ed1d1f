"""Digests of what goes to a sink in an epoch: they tell whether an epoch that is repeated is the same again.

Guarantees: equal rows in equal order have equal digests, whatever batches they were cut into, whatever Arrow keeps in
the slots of nulls, and on every machine. A digest is over key and value columns, event times and tombstones.

Each column is taken apart into plain streams of bytes (validity, lengths, data; the children of what is nested), and
each stream has a CRC-32 of its own, five times as fast as any hash (measured); a digest is a hash of those. Not against
forgery: what differs by accident is to be found.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.runtime.records import Batch, Origin

__all__ = ["DIGEST_BYTES", "ContentDigest", "PartDigests", "combined"]

DIGEST_BYTES = 16

Bytes = npt.NDArray[np.uint8]


class ContentDigest:
    """The digest of the rows of one part (a source partition, or what a stage's vsc partition hands on), in order."""

    __slots__ = ("_checks", "_rows")

    def __init__(self) -> None:
        self._rows = 0
        self._checks: list[int] = []

    def update(self, batch: Batch) -> None:
        """Takes further rows of the same node."""
        if not len(batch):
            return
        self._rows += len(batch)
        own = (batch.timestamps, batch.present)
        pieces = [np.ascontiguousarray(column).view(np.uint8) for column in own]
        for column in batch.columns:
            pieces.extend(_streams(column))
        checks = self._checks or [0] * len(pieces)
        self._checks = [zlib.crc32(piece.data, check) for piece, check in zip(pieces, checks, strict=True)]

    def value(self) -> int:
        """The digest of all rows so far; 0 for none."""
        if not self._rows:
            return 0
        checked = np.array([self._rows, *self._checks], dtype="<u8").tobytes()
        return int.from_bytes(hashlib.blake2b(checked, digest_size=DIGEST_BYTES).digest(), "big")


class PartDigests:
    """The digest of what a task that reads sources hands on of one node: with each origin on its own.

    It takes some files and not others, which may be other ones when the epoch is repeated; each file it reads as a
    whole. So the digests of all tasks, combined, are the same whoever read what.
    """

    __slots__ = ("_current", "_done", "_origin")

    def __init__(self) -> None:
        self._origin: Origin | None = None
        self._current = ContentDigest()
        self._done = 0

    def update(self, batch: Batch) -> None:
        """Takes further rows, in which those of one origin follow each other."""
        origins = batch.order.origin
        starts = [0, *(np.flatnonzero(np.diff(origins)) + 1).tolist()]
        for start, end in pairwise([*starts, len(batch)]):
            origin = batch.origins[origins[start]]
            if origin != self._origin:
                self._done = self.value()
                self._origin, self._current = origin, ContentDigest()
            whole = (start, end) == (0, len(batch))
            self._current.update(batch if whole else batch.take(np.arange(start, end, dtype=np.int64)))

    def value(self) -> int:
        """The digest of all rows so far; 0 for none."""
        return combined((self._done, self._current.value()))


def combined(digests: Iterable[int]) -> int:
    """The digest of several parts, in whatever order they come: the sum of theirs."""
    return sum(digests) % (1 << (8 * DIGEST_BYTES))


def _streams(array: pa.Array) -> Iterator[Bytes]:
    """The content of a column as arrays of bytes, always as many for a type; nulls show in the first one only."""
    valid = _valid(array)
    yield valid
    type_ = array.type
    if pa.types.is_struct(type_):
        for child in array.flatten():
            yield from _streams(child)
    elif pa.types.is_map(type_):
        entry = pa.struct([("key", type_.key_type), ("value", type_.item_type)])
        yield from _nested(array.cast(pa.list_(entry)), valid)
    elif pa.types.is_list(type_):
        yield from _nested(array, valid)
    elif pa.types.is_string(type_) or pa.types.is_binary(type_):
        yield from _text(array)
    elif not pa.types.is_null(type_):
        yield _fixed(array, valid)


def _valid(array: pa.Array) -> Bytes:
    if array.null_count == 0:
        return np.ones(len(array), dtype=np.uint8)
    return array.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)  # type: ignore[no-any-return]


def _nested(array: pa.Array, valid: Bytes) -> Iterator[Bytes]:
    lengths = np.diff(array.offsets.to_numpy()) * valid
    yield lengths.astype("<i4").view(np.uint8)
    yield from _streams(array.flatten())


def _text(array: pa.Array) -> Iterator[Bytes]:
    if array.null_count:
        array = array.fill_null("" if pa.types.is_string(array.type) else b"")
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, dtype="<i4", count=len(array) + 1, offset=4 * array.offset)
    yield np.diff(bounds).view(np.uint8)
    yield np.frombuffer(data, dtype=np.uint8)[bounds[0] : bounds[-1]] if data is not None else np.empty(0, np.uint8)


def _fixed(array: pa.Array, valid: Bytes) -> Bytes:
    if pa.types.is_boolean(array.type):
        return array.fill_null(False).to_numpy(zero_copy_only=False).view(np.uint8)  # type: ignore[no-any-return]
    width = array.type.bit_width // 8
    data = np.frombuffer(array.buffers()[1], dtype=np.uint8, count=width * len(array), offset=width * array.offset)
    if array.null_count:
        data = (data.reshape(-1, width) * valid[:, np.newaxis]).reshape(-1)
    return data
