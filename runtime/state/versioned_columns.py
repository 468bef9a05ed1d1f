"""Heads and chunks of many keys as columns: decoded and encoded together with numpy, without a loop over versions.

The rows' bytes are laid one after the other; `versioned_layout` puts every number on a boundary of its size, so one
view as 64-bit and one as 32-bit numbers reads them all. Values are not copied when decoded: they stay where they are,
as elements of one Arrow array over those bytes.

Guarantees: the same bytes as `versioned_layout.encode_block`, and `StateError` for bytes that are not a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.runtime.errors import StateError
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.versioned_layout import PADDING

__all__ = ["Blocks", "Ints", "chunk_rows", "compose", "decode_blocks", "encode_blocks", "spread"]

Ints = npt.NDArray[np.int64]

_FIXED: Final = 16
_MOST_BYTES: Final = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Blocks:
    """Decoded blocks. Per block: `counts`, `directories` (chunks listed), `marks`, `sizes` in bytes.

    Per version, block by block: `block` (its number), `times`, `deleted`, and `element`, the position of its value in
    `values` (which has other elements too, of no meaning). `uppers` holds all directories, one after the other.
    """

    counts: Ints
    directories: Ints
    marks: Ints
    sizes: Ints
    block: Ints
    times: Ints
    deleted: npt.NDArray[np.bool_]
    element: Ints
    values: pa.BinaryArray
    uppers: Ints

    @property
    def ends(self) -> Ints:
        """The position after the last version of each block."""
        return np.cumsum(self.counts)


def spread(starts: Ints, counts: Ints) -> Ints:
    """Return ``starts[i], starts[i] + 1, ...``, `counts[i]` numbers for each i, one after the other."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Ints = np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - counts), counts)
    return numbers


def decode_blocks(rows: Sequence[bytes]) -> Blocks:
    """Decode many blocks at once; raises `StateError` for one that is damaged."""
    if not rows:
        none = np.empty(0, np.int64)
        return Blocks(none, none, none, none, none, none, none.astype(np.bool_), none, pa.array([], pa.binary()), none)
    buffer = b"".join(rows)
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    if np.any(sizes & 7) or np.any(sizes < _FIXED):
        raise StateError("a row of a versioned store is damaged: its length is wrong")
    if len(buffer) > _MOST_BYTES:
        raise StateError("more than 2 GiB of versions in one batch operation", "ask for fewer keys at once")
    words = np.frombuffer(buffer, "<i8")
    halves = np.frombuffer(buffer, "<i4")
    starts = np.cumsum(sizes) - sizes
    word = starts >> 3
    counts = halves[2 * word].astype(np.int64)
    directories = halves[2 * word + 1].astype(np.int64)
    payload = _FIXED + 8 * (counts + directories) + 4 * (counts + (counts & 1))
    if np.any(counts < 1) or np.any(directories < 0) or np.any(payload > sizes):
        raise StateError("a row of a versioned store is damaged: its counts do not fit its length")
    block = np.repeat(np.arange(len(rows), dtype=np.int64), counts)
    times = words[spread(word + 2, counts)]
    uppers = words[spread(word + 2 + counts, directories)]
    lengths = halves[spread(2 * (word + 2 + counts + directories), counts)].astype(np.int64)
    stored = np.maximum(lengths, 0)
    after = np.cumsum(stored)
    # Positions of the values in the buffer: within a block they follow each other.
    ends = np.cumsum(counts)
    before = (after - stored)[ends - counts]
    position = after - stored + np.repeat(starts + payload - before, counts)
    last = starts + payload + after[ends - 1] - before
    if np.any(last > starts + sizes):
        raise StateError("a row of a versioned store is damaged: its values do not fit its length")
    element = np.arange(len(times), dtype=np.int64) + block
    # The elements of an Arrow array must be contiguous: between two blocks lies one element that nothing reads.
    offsets = np.empty(len(times) + len(rows), np.int32)
    offsets[element] = position
    offsets[ends + np.arange(len(rows))] = last
    values = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(buffer)])
    return Blocks(counts, directories, words[word + 1], sizes, block, times, lengths < 0, element, values, uppers)


def chunk_rows(kv: OrderedKV, row_keys: Sequence[bytes]) -> list[bytes]:
    """Fetch the chunks under these row keys, all of which are in a directory."""
    found = kv.get_many(row_keys)
    for row_key, chunk in zip(row_keys, found, strict=True):
        if chunk is None:
            raise StateError(f"the versioned store is damaged: the chunk {row_key!r} is gone")
    return [chunk for chunk in found if chunk is not None]


def compose(sources: Sequence[pa.Array], element: Ints, absent: npt.NDArray[np.bool_]) -> pa.BinaryArray:
    """Return the elements of all `sources`, taken as one array, at these positions; null where `absent`."""
    array = sources[0] if len(sources) == 1 else pa.concat_arrays(sources)
    if not len(array):
        return pa.nulls(len(element), pa.binary())
    return array.take(pa.array(element, pa.int64(), mask=absent))


def encode_blocks(
    counts: Ints, marks: Ints, times: Ints, values: pa.BinaryArray, directories: Ints, uppers: Ints
) -> list[bytes]:
    """Return the bytes of many blocks; versions and directories are given block after block, as in `Blocks`.

    `values` begins at offset 0 of its buffers, as what `compose` returns does.
    """
    offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1).astype(np.int64)
    lengths = np.diff(offsets)
    deleted = np.asarray(values.is_null())
    sizes = _FIXED + 8 * (counts + directories) + 4 * (counts + (counts & 1))
    ends = np.cumsum(sizes)
    word = (ends - sizes) >> 3
    fixed = np.zeros(int(ends[-1]) >> 3, np.int64)
    halves = fixed.view(np.int32)
    halves[2 * word] = counts
    halves[2 * word + 1] = directories
    fixed[word + 1] = marks
    fixed[spread(word + 2, counts)] = times
    fixed[spread(word + 2 + counts, directories)] = uppers
    halves[spread(2 * (word + 2 + counts + directories), counts)] = np.where(deleted, -1, lengths)
    bounds = offsets[np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))].tolist()
    numbers = fixed.tobytes()
    buffer = values.buffers()[2]
    payload = b"" if buffer is None else memoryview(buffer)
    rows, start = [], 0
    for end, first, last in zip(ends.tolist(), bounds, bounds[1:], strict=False):
        rows.append(b"".join((numbers[start:end], payload[first:last], PADDING[(last - first) & 7])))
        start = end
    return rows
