"""Many writes to a versioned store at once: each key's head is read once, merged in memory, written once.

Most keys of a batch are *plain*: nothing is written before the head, and what leaves a head that is full fits in one
chunk. Those are merged together as columns (`versioned_spill` writes their chunks). The others (late writes into a
chunk, very many versions of one key) go one by one through `KeyHistory`, still with one read and one write of each row
that they touch.

Guarantees: the state is that of the single writes in that order; nothing is written here, the caller gets what to
write. Not for reading, nor for the outcomes of single writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.runtime.state.api import NEVER
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.versioned_columns import Blocks, Ints, compose, decode_blocks, encode_blocks, spread
from vsc.runtime.state.versioned_key import CHUNK_BYTES, CHUNK_VERSIONS, KeyHistory, Writes
from vsc.runtime.state.versioned_layout import Meta, RowKeys
from vsc.runtime.state.versioned_spill import Heads, sizes_of, spill

__all__ = ["Put", "plan_puts"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Put:
    """The result of a batch of writes: what to write, the stream time after it, and how many keys it touches."""

    writes: Writes
    observed: int
    keys: int


@dataclass(frozen=True, slots=True)
class _Batch:
    """The writes that were not refused, in order of arrival. `key` counts the touched keys from 0."""

    keys: list[bytes]
    key: Ints
    times: Ints
    values: pa.BinaryArray
    horizon_before: int
    horizon: int


def plan_puts(
    kv: OrderedKV,
    rows: RowKeys,
    meta: Meta,
    keys: Sequence[bytes],
    index: Ints,
    values: pa.BinaryArray,
    times: Ints,
    accepts: bool = False,
) -> Put:
    """Compute what these writes do; see `VersionedStore.put_columns`. `accepts`: all of them, at the present time."""
    highest = np.maximum.accumulate(np.concatenate((np.array([meta.observed], np.int64), times)))
    taken = np.flatnonzero(accepts | (times >= np.maximum(highest[:-1] - meta.grace, meta.floor)))
    observed = meta.observed if accepts else int(highest[-1])
    writes = Writes()
    touched, key = np.unique(index[taken], return_inverse=True)
    if len(taken):
        batch = _Batch(
            [keys[at] for at in touched.tolist()],
            key.astype(np.int64),
            times[taken],
            values if len(taken) == len(times) else values.take(pa.array(taken)),
            meta.horizon,
            observed - meta.kept,
        )
        _merge(kv, rows, batch, writes)
    return Put(writes, observed, len(touched))


def _merge(kv: OrderedKV, rows: RowKeys, batch: _Batch, writes: Writes) -> None:
    fetched = kv.get_many([rows.head + key for key in batch.keys])
    owner = np.fromiter((at for at, row in enumerate(fetched) if row is not None), np.int64)
    heads = decode_blocks([row for row in fetched if row is not None])
    plain = _plain_keys(batch, heads, owner)
    of_plain = plain[batch.key]
    if not of_plain.all():
        _one_by_one(kv, rows, batch, fetched, np.flatnonzero(~of_plain), writes)
    if of_plain.any():
        _write_heads(kv, rows, batch, heads, owner, plain, writes)


def _plain_keys(batch: _Batch, heads: Blocks, owner: Ints) -> Bools:
    """Return which keys change in their head alone, and have no more versions in it than fit in a chunk."""
    count = len(batch.keys)
    versions = np.bincount(batch.key, minlength=count)
    size = np.bincount(batch.key, weights=sizes_of(batch.values), minlength=count).astype(np.int64)
    versions[owner] += heads.counts
    size[owner] += heads.sizes - 8 * heads.directories
    earliest = np.full(count, NEVER, np.int64)
    np.minimum.at(earliest, batch.key, batch.times)
    first = np.full(count, -1, np.int64)
    # A head with chunks begins where its youngest chunk ends: an earlier write is one into a chunk. One at that very
    # time replaces the head's first version, which leaves the border where it is.
    chunked = heads.directories > 0
    first[owner[chunked]] = heads.times[heads.ends - heads.counts][chunked]
    return (versions <= CHUNK_VERSIONS) & (size <= CHUNK_BYTES) & (earliest >= first)


def _one_by_one(
    kv: OrderedKV, rows: RowKeys, batch: _Batch, fetched: Sequence[bytes | None], at: Ints, writes: Writes
) -> None:
    histories: dict[int, KeyHistory] = {}
    for key, time, value in zip(
        batch.key[at].tolist(), batch.times[at].tolist(), batch.values.take(pa.array(at)).to_pylist(), strict=True
    ):
        history = histories.get(key)
        if history is None:
            name = batch.keys[key]
            history = histories[key] = KeyHistory(kv, rows, name, fetched[key], batch.horizon_before)
        history.insert(time, value)
    for history in histories.values():
        history.flush(batch.horizon, writes)


def _merged(batch: _Batch, heads: Blocks, owner: Ints, plain: Bools) -> tuple[Ints, Ints, Ints]:
    """Return old and new versions of the plain keys by (key, time): key, time, position of the value in old and new
    values taken as one array. Of each timestamp only the last arrival is there."""
    old, new = np.flatnonzero(plain[owner][heads.block]), np.flatnonzero(plain[batch.key])
    key = np.concatenate((owner[heads.block[old]], batch.key[new]))
    times = np.concatenate((heads.times[old], batch.times[new]))
    element = np.concatenate((heads.element[old], new + len(heads.values)))
    low, width = int(times.min()), int(times.max()) - int(times.min()) + 1
    # Old versions come before new ones and those are in order of arrival, so a stable sort by (key, time) is enough.
    if width * (int(key.max()) + 1) < NEVER:
        order = np.argsort(key * width + (times - low), kind="stable")
    else:
        order = np.lexsort((times, key))
    key, times = key[order], times[order]
    # Of one (key, time), the last arrival stands last: it replaces the others, as single writes would one by one.
    last = np.ones(len(key), np.bool_)
    last[:-1] = (key[1:] != key[:-1]) | (times[1:] != times[:-1])
    return key[last], times[last], element[order][last]


def _write_heads(
    kv: OrderedKV, rows: RowKeys, batch: _Batch, heads: Blocks, owner: Ints, plain: Bools, writes: Writes
) -> None:
    """Add the merged heads of the plain keys to what is written, without what the horizon passed."""
    key, times, element = _merged(batch, heads, owner, plain)
    # Versions are in order of (key, time), so one ends where the next one begins. That of a key's newest is the time of
    # another key and means nothing: the newest is kept whatever the horizon is.
    newest = np.ones(len(key), np.bool_)
    newest[:-1] = key[1:] != key[:-1]
    ends = np.empty_like(times)
    ends[:-1] = times[1:]
    kept = newest | (ends > batch.horizon)
    key, times, element, newest = key[kept], times[kept], element[kept], newest[kept]
    # A tombstone has an element, too: which ones they are stands beside the values, by the same positions.
    deleted = np.concatenate((np.zeros(len(heads.values), np.bool_), np.asarray(batch.values.is_null())))
    deleted[heads.element[heads.deleted]] = True
    values = compose([heads.values, batch.values], element, deleted[element])
    # Each key has exactly one newest version, the last of its run: the runs end there, and none is empty.
    at = np.flatnonzero(newest)
    mine = key[at]
    counts = at - np.concatenate((np.array([-1], np.int64), at[:-1]))
    marks, directories, uppers = _carried(batch, heads, owner, mine)
    names = [batch.keys[k] for k in mine.tolist()]
    left = spill(kv, rows, Heads(names, counts, times, values, directories, uppers), batch.horizon, writes)
    # A head has at most one due row, which its mark names. One that has none gets it as soon as it has something to let
    # go later (`needs_due`); one that has it keeps it, although it is early by now: the sweep looks again.
    due = (marks < 0) & ((left.counts > 1) | deleted[element[at]] | (left.directories > 0))
    marks = np.where(due, times[at], marks)
    blocks = encode_blocks(left.counts, marks, left.times, left.values, left.directories, left.uppers)
    prefix = rows.head
    writes.puts += [(prefix + name, block) for name, block in zip(names, blocks, strict=True)]
    writes.puts += [
        (rows.due_key(mark, names[k]), b"")
        for k, mark in zip(np.flatnonzero(due).tolist(), marks[due].tolist(), strict=True)
    ]


def _carried(batch: _Batch, heads: Blocks, owner: Ints, mine: Ints) -> tuple[Ints, Ints, Ints]:
    """Return marks, and directories without what the horizon passed, that the heads of these keys had before."""
    block = np.full(len(batch.keys), -1, np.int64)
    block[owner] = np.arange(len(owner))
    old = block[mine]
    had = old >= 0
    marks = np.full(len(mine), -1, np.int64)
    marks[had] = heads.marks[old[had]]
    directories = np.zeros(len(mine), np.int64)
    directories[had] = heads.directories[old[had]]
    starts = np.zeros(len(mine), np.int64)
    starts[had] = (np.cumsum(heads.directories) - heads.directories)[old[had]]
    # Uppers ascend, so those that stay are the last ones of each directory. If the head's first version goes, all
    # chunks have ended before it did: the border between the last chunk and the head holds.
    uppers = heads.uppers[spread(starts, directories)]
    live = uppers > batch.horizon
    directories = np.bincount(np.repeat(np.arange(len(mine)), directories)[live], minlength=len(mine))
    return marks, directories.astype(np.int64), uppers[live]
