"""Many writes to a versioned store at once: each key's head is read once, merged in memory, written once.

Most keys of a batch are *plain*: nothing is written before the head, and what leaves a head that is full fits in one
chunk. Those are merged together as columns (`versioned_spill` writes their chunks). The others (late writes into a
chunk, very many versions of one key) go one by one through `KeyHistory`, still with one read and one write of each row
that they touch.

Guarantees: outcomes and state are those of the single writes in that order; nothing is written here, the caller gets
what to write. Not for reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.runtime.state.api import KIND_EXPIRED, KIND_LATEST, KIND_SUPERSEDED, NEVER, PutOutcomes
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.versioned_columns import Blocks, Ints, compose, decode_blocks, encode_blocks, spread
from vsc.runtime.state.versioned_key import CHUNK_BYTES, CHUNK_VERSIONS, KeyHistory, Writes
from vsc.runtime.state.versioned_layout import Meta, RowKeys
from vsc.runtime.state.versioned_spill import Heads, sizes_of, spill

__all__ = ["Put", "plan_puts"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Put:
    """The result of a batch of writes."""

    outcomes: PutOutcomes
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


@dataclass(frozen=True, slots=True)
class _Merged:
    """Old and new versions of the plain keys by (key, time, arrival); `arrival` is -1 for an old one.

    `element` is the position of the value in old and new values taken as one array.
    """

    key: Ints
    times: Ints
    arrival: Ints
    element: Ints


def plan_puts(
    kv: OrderedKV, rows: RowKeys, meta: Meta, keys: Sequence[bytes], index: Ints, values: pa.BinaryArray, times: Ints
) -> Put:
    """Compute what these writes do; see `VersionedStore.put_columns`."""
    n = len(times)
    kinds = np.full(n, KIND_EXPIRED, np.uint8)
    valid_to = np.full(n, NEVER, np.int64)
    highest = np.maximum.accumulate(np.concatenate((np.array([meta.observed], np.int64), times)))
    taken = np.flatnonzero(times >= np.maximum(highest[:-1] - meta.grace, meta.floor))
    observed = int(highest[-1])
    writes = Writes()
    touched, key = np.unique(index[taken], return_inverse=True)
    if len(taken):
        batch = _Batch(
            [keys[at] for at in touched.tolist()],
            key.astype(np.int64),
            times[taken],
            values if len(taken) == n else values.take(pa.array(taken)),
            meta.horizon,
            observed - meta.kept,
        )
        kinds[taken], valid_to[taken] = _merge(kv, rows, batch, writes)
    return Put(PutOutcomes(kinds, valid_to), writes, observed, len(touched))


def _merge(kv: OrderedKV, rows: RowKeys, batch: _Batch, writes: Writes) -> tuple[npt.NDArray[np.uint8], Ints]:
    count = len(batch.keys)
    fetched = kv.get_many([rows.head + key for key in batch.keys])
    owner = np.fromiter((at for at, row in enumerate(fetched) if row is not None), np.int64)
    heads = decode_blocks([row for row in fetched if row is not None])
    plain = _plain_keys(batch, heads, owner, count)
    kinds = np.empty(len(batch.key), np.uint8)
    valid_to = np.empty(len(batch.key), np.int64)
    of_plain = plain[batch.key]
    if not of_plain.all():
        late = np.flatnonzero(~of_plain)
        kinds[late], valid_to[late] = _one_by_one(kv, rows, batch, fetched, late, writes)
    if of_plain.any():
        new = np.flatnonzero(of_plain)
        merged = _sorted(batch, heads, owner, plain, new)
        kinds[new], valid_to[new] = _outcomes(merged, new)
        _write_heads(kv, rows, batch, heads, owner, merged, writes)
    return kinds, valid_to


def _plain_keys(batch: _Batch, heads: Blocks, owner: Ints, count: int) -> Bools:
    """Return which keys change in their head alone, and have no more versions in it than fit in a chunk."""
    versions = np.bincount(batch.key, minlength=count)
    size = np.bincount(batch.key, weights=sizes_of(batch.values), minlength=count).astype(np.int64)
    versions[owner] += heads.counts
    size[owner] += heads.sizes - 8 * heads.directories
    earliest = np.full(count, NEVER, np.int64)
    np.minimum.at(earliest, batch.key, batch.times)
    first = np.full(count, -1, np.int64)
    chunked = heads.directories > 0
    first[owner[chunked]] = heads.times[heads.ends - heads.counts][chunked]
    return (versions <= CHUNK_VERSIONS) & (size <= CHUNK_BYTES) & (earliest >= first)


def _one_by_one(
    kv: OrderedKV, rows: RowKeys, batch: _Batch, fetched: Sequence[bytes | None], at: Ints, writes: Writes
) -> tuple[Ints, Ints]:
    histories: dict[int, KeyHistory] = {}
    kinds, valid_to = [], []
    for key, time, value in zip(
        batch.key[at].tolist(), batch.times[at].tolist(), batch.values.take(pa.array(at)).to_pylist(), strict=True
    ):
        history = histories.get(key)
        if history is None:
            name = batch.keys[key]
            history = histories[key] = KeyHistory(kv, rows, name, fetched[key], batch.horizon_before)
        after = history.insert(time, value)
        kinds.append(KIND_LATEST if after is None else KIND_SUPERSEDED)
        valid_to.append(NEVER if after is None else after)
    for history in histories.values():
        history.flush(batch.horizon, writes)
    return np.array(kinds, np.int64), np.array(valid_to, np.int64)


def _sorted(batch: _Batch, heads: Blocks, owner: Ints, plain: Bools, new: Ints) -> _Merged:
    old = np.flatnonzero(plain[owner][heads.block])
    key = np.concatenate((owner[heads.block[old]], batch.key[new]))
    times = np.concatenate((heads.times[old], batch.times[new]))
    arrival = np.concatenate((np.full(len(old), -1, np.int64), np.arange(len(new), dtype=np.int64)))
    element = np.concatenate((heads.element[old], new + len(heads.values)))
    low, width = int(times.min()), int(times.max()) - int(times.min()) + 1
    # Old versions come before new ones and those are in order of arrival, so a stable sort by (key, time) is enough.
    if width * (int(key.max()) + 1) < NEVER:
        order = np.argsort(key * width + (times - low), kind="stable")
    else:
        order = np.lexsort((times, key))
    return _Merged(key[order], times[order], arrival[order], element[order])


def _outcomes(merged: _Merged, new: Ints) -> tuple[npt.NDArray[np.uint8], Ints]:
    """Return kinds and valid_to of the new versions, in order of arrival."""
    first = np.ones(len(merged.key), np.bool_)
    first[1:] = (merged.key[1:] != merged.key[:-1]) | (merged.times[1:] != merged.times[:-1])
    group = np.cumsum(first) - 1
    starts = np.flatnonzero(first)
    group_key, group_time, group_arrival = merged.key[starts], merged.times[starts], merged.arrival[starts]
    is_new = np.flatnonzero(merged.arrival >= 0)
    arrival, mine = merged.arrival[is_new], group[is_new]
    # The next greater timestamp that was there when this one came: step over those that came later.
    after = mine + 1
    todo = np.arange(len(is_new))
    while len(todo):
        here = after[todo]
        inside = here < len(starts)
        todo, here = todo[inside], here[inside]
        same = group_key[here] == group_key[mine[todo]]
        after[todo[~same]] = len(starts)
        todo, here = todo[same], here[same]
        todo = todo[group_arrival[here] > arrival[todo]]
        after[todo] += 1
    has = after < len(starts)
    kinds = np.empty(len(new), np.uint8)
    valid_to = np.full(len(new), NEVER, np.int64)
    kinds[arrival] = np.where(has, KIND_SUPERSEDED, KIND_LATEST)
    valid_to[arrival[has]] = group_time[after[has]]
    return kinds, valid_to


def _write_heads(
    kv: OrderedKV, rows: RowKeys, batch: _Batch, heads: Blocks, owner: Ints, merged: _Merged, writes: Writes
) -> None:
    """Add the merged heads to what is written: of each timestamp the last arrival, without what the horizon passed."""
    last = np.ones(len(merged.key), np.bool_)
    last[:-1] = (merged.key[1:] != merged.key[:-1]) | (merged.times[1:] != merged.times[:-1])
    key, times, element = merged.key[last], merged.times[last], merged.element[last]
    newest = np.ones(len(key), np.bool_)
    newest[:-1] = key[1:] != key[:-1]
    ends = np.empty_like(times)
    ends[:-1] = times[1:]
    kept = newest | (ends > batch.horizon)
    key, times, element, newest = key[kept], times[kept], element[kept], newest[kept]
    deleted = np.concatenate((np.zeros(len(heads.values), np.bool_), np.asarray(batch.values.is_null())))
    deleted[heads.element[heads.deleted]] = True
    values = compose([heads.values, batch.values], element, deleted[element])
    at = np.flatnonzero(newest)
    mine = key[at]
    counts = at - np.concatenate((np.array([-1], np.int64), at[:-1]))
    marks, directories, uppers = _carried(batch, heads, owner, mine)
    names = [batch.keys[k] for k in mine.tolist()]
    found = spill(kv, rows, Heads(names, counts, times, values, directories, uppers), batch.horizon, writes)
    due = (marks < 0) & ((found.counts > 1) | deleted[element[at]] | (found.directories > 0))
    marks = np.where(due, times[at], marks)
    blocks = encode_blocks(found.counts, marks, found.times, found.values, found.directories, found.uppers)
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
    uppers = heads.uppers[spread(starts, directories)]
    live = uppers > batch.horizon
    directories = np.bincount(np.repeat(np.arange(len(mine)), directories)[live], minlength=len(mine))
    return marks, directories.astype(np.int64), uppers[live]
