"""Many heads that have grown too long at once: their older versions become chunks, as columns.

Guarantees: what is written keeps the limits of `versioned_key`, and takes in the youngest chunks by the rule of
`KeyHistory`. Not for versions that belong in a chunk, nor for more versions of a key than fit in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.versioned_columns import Ints, chunk_rows, compose, decode_blocks, encode_blocks, spread
from vsc.runtime.state.versioned_key import (
    CHUNK_BYTES,
    CHUNK_VERSIONS,
    CHUNKS_AT_ONCE,
    HEAD_BYTES,
    HEAD_VERSIONS,
    Writes,
)
from vsc.runtime.state.versioned_layout import RowKeys

__all__ = ["Heads", "sizes_of", "spill"]

Bools = npt.NDArray[np.bool_]

_AT_ONCE = 1024
"""How many heads spill together; each may read a chunk of `CHUNK_BYTES`."""


@dataclass(frozen=True, slots=True)
class Heads:
    """The content of some heads. Per head: its key (`names`), its number of versions (`counts`), and of chunks in its
    directory (`directories`). Per version: `times` and `values`. `uppers` holds all directories, one after the other.
    """

    names: Sequence[bytes]
    counts: Ints
    times: Ints
    values: pa.BinaryArray
    directories: Ints
    uppers: Ints


@dataclass(frozen=True, slots=True)
class _Part:
    """Versions on their way into chunks: the number of their head, time, and the position of the value in `values`."""

    head: Ints
    times: Ints
    element: Ints
    deleted: Bools
    values: pa.BinaryArray


def sizes_of(values: pa.BinaryArray) -> Ints:
    """Return how much of a block's limit each version takes, in bytes."""
    return np.asarray(pc.binary_length(values).fill_null(0)).astype(np.int64) + 12


def spill(kv: OrderedKV, rows: RowKeys, heads: Heads, horizon: int, writes: Writes) -> Heads:
    """Add to `writes` the chunks that take the older versions of the heads that are too long. Return what stays."""
    sizes = sizes_of(heads.values)
    leaves = _leaves(heads.counts, sizes)
    if not leaves.any():
        return heads
    starts = np.cumsum(heads.counts) - heads.counts
    # No head is empty, so each has a range of its own here. The newest version never leaves, so `starts + gone` is the
    # first one that stays: the new chunk ends there, and that is later than all chunks before it.
    gone = np.add.reduceat(leaves.astype(np.int64), starts)
    spilled = np.flatnonzero(gone)
    until = heads.times[(starts + gone)[spilled]]
    left = heads.directories.copy()
    for at in range(0, len(spilled), _AT_ONCE):
        some = slice(at, at + _AT_ONCE)
        left[spilled[some]] = _to_chunks(kv, rows, heads, gone, spilled[some], until[some], horizon, writes)
    directories = left.copy()
    directories[spilled] += 1
    # A directory loses chunks at its end alone, to the new one, which then stands there: it still ascends.
    uppers = np.empty(int(directories.sum()), np.int64)
    uppers[spread(np.cumsum(directories) - directories, left)] = heads.uppers[spread(_firsts(heads), left)]
    uppers[np.cumsum(directories)[spilled] - 1] = until
    stays = np.flatnonzero(~leaves)
    return Heads(
        heads.names, heads.counts - gone, heads.times[stays], heads.values.take(pa.array(stays)), directories, uppers
    )


def _leaves(counts: Ints, sizes: Ints) -> Bools:
    """Return which versions leave their head: one that is too long keeps the newest, half of what it may hold."""
    head = np.repeat(np.arange(len(counts)), counts)
    ends, total = np.cumsum(counts), np.cumsum(sizes)
    newer = total[ends - 1][head] - total + sizes  # the size of this version and of all newer ones
    in_all = newer[ends - counts]
    too_long = (counts > HEAD_VERSIONS) | ((counts > 1) & (in_all > HEAD_BYTES))
    place = ends[head] - 1 - np.arange(len(sizes))
    leaves: Bools = too_long[head] & (place > 0) & ((place >= HEAD_VERSIONS // 2) | (newer > HEAD_BYTES // 2))
    return leaves


def _firsts(heads: Heads) -> Ints:
    """Return where each head's directory begins."""
    return np.cumsum(heads.directories) - heads.directories


def _to_chunks(
    kv: OrderedKV, rows: RowKeys, heads: Heads, gone: Ints, spilled: Ints, until: Ints, horizon: int, writes: Writes
) -> Ints:
    """Write the oldest `gone` versions of the `spilled` heads, which end at `until`, together with the youngest chunks
    that they take in. Return how many chunks are left in each directory before the new one."""
    names = [heads.names[head] for head in spilled.tolist()]
    at = spread((np.cumsum(heads.counts) - heads.counts)[spilled], gone[spilled])
    values = heads.values.take(pa.array(at))
    head = np.repeat(np.arange(len(spilled)), gone[spilled])
    parts = [_Part(head, heads.times[at], np.arange(len(at)), np.asarray(values.is_null()), values)]
    count = gone[spilled]
    size = np.bincount(head, weights=sizes_of(values)).astype(np.int64)
    first, left = _firsts(heads)[spilled], heads.directories[spilled]
    # Heads that merge, each with its youngest chunk that is left, a round at a time. No head is in `asking` twice, so
    # the additions below reach each once; a chunk that does not fit ends it for its head, as older ones lie behind
    # that.
    asking = np.flatnonzero((left > 0) & ((left + 1) % CHUNKS_AT_ONCE == 0))
    while len(asking):
        uppers = heads.uppers[first[asking] + left[asking] - 1]
        row_keys = [rows.chunk_key(u, names[h]) for u, h in zip(uppers.tolist(), asking.tolist(), strict=True)]
        chunks = decode_blocks(chunk_rows(kv, row_keys))
        fits = chunks.counts + count[asking] <= CHUNK_VERSIONS
        fits &= chunks.sizes + size[asking] <= CHUNK_BYTES
        taken = np.flatnonzero(fits[chunks.block])
        parts.append(
            _Part(
                asking[chunks.block[taken]], chunks.times[taken], chunks.element[taken], chunks.deleted[taken],
                chunks.values,
            )
        )  # fmt: skip
        writes.deletes += [row_keys[i] for i in np.flatnonzero(fits).tolist()]
        asking = asking[fits]
        count[asking] += chunks.counts[fits]
        size[asking] += chunks.sizes[fits]
        left[asking] -= 1
        asking = asking[left[asking] > 0]
    _write(rows, names, until, parts, horizon, writes)
    return left


def _write(
    rows: RowKeys, names: Sequence[bytes], until: Ints, parts: Sequence[_Part], horizon: int, writes: Writes
) -> None:
    """Write one chunk a head, of the versions in all parts, without those that ended at or before `horizon`."""
    lengths = np.cumsum([0, *(len(part.values) for part in parts)])
    head, times = np.concatenate([part.head for part in parts]), np.concatenate([part.times for part in parts])
    element = np.concatenate([part.element + start for part, start in zip(parts, lengths, strict=False)])
    deleted = np.concatenate([part.deleted for part in parts])
    order = np.lexsort((times, head))
    head, times, element, deleted = head[order], times[order], element[order], deleted[order]
    # Chunks that were taken in and what is spilled meet without a gap: within a head, each version ends at the next
    # one.
    ends = np.append(times[1:], 0)
    ends[np.flatnonzero(np.append(head[1:] != head[:-1], True))] = until
    live = ends > horizon
    head, times = head[live], times[live]
    values = compose([part.values for part in parts], element[live], deleted[live])
    none = np.zeros(len(names), np.int64)
    blocks = encode_blocks(np.bincount(head, minlength=len(names)), until, times, values, none, none[:0])
    keys = [rows.chunk_key(upper, name) for upper, name in zip(until.tolist(), names, strict=True)]
    writes.puts += zip(keys, blocks, strict=True)
