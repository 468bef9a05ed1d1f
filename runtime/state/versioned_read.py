"""Many reads of a versioned store at once: each key's rows are fetched once, and searched as columns.

Guarantees: the answers are those of the single operations. Not for writes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vsc.runtime.errors import StateError
from vsc.runtime.state.api import LOOKUP_FOUND, LOOKUP_MISSES, NEVER, Lookups, Miss, VersionedRecord, Versions
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.versioned_columns import Blocks, Ints, compose, decode_blocks, spread
from vsc.runtime.state.versioned_layout import Meta, RowKeys

__all__ = ["distinct_keys", "get_many", "lookup_columns", "versions_many"]

_NO_RECORD = LOOKUP_MISSES.index(Miss.NO_RECORD)
_TOMBSTONE = LOOKUP_MISSES.index(Miss.TOMBSTONE)
_TOO_OLD = LOOKUP_MISSES.index(Miss.OLDER_THAN_RETENTION)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """Versions of many keys, sorted by (key, time); `key` is an index into the keys, `newest`: its key's last one."""

    blocks: Blocks
    key: Ints
    times: Ints
    valid_to: Ints
    deleted: npt.NDArray[np.bool_]
    element: Ints
    newest: npt.NDArray[np.bool_]


def get_many(
    kv: OrderedKV, rows: RowKeys, meta: Meta, keys: Sequence[bytes], as_of: Ints | None
) -> list[VersionedRecord | Miss]:
    """Answer many look-ups as single records; see `VersionedStore.get_many`."""
    distinct, index = distinct_keys(keys)
    found = lookup_columns(kv, rows, meta, distinct, index, as_of)
    until = found.valid_to.astype(object)
    until[found.valid_to == NEVER] = None
    columns = (found.values.to_pylist(), found.valid_from.tolist(), until.tolist())
    if not found.kinds.any():
        return list(map(VersionedRecord, *columns))
    return [
        VersionedRecord(*record) if kind == LOOKUP_FOUND else _miss(kind)
        for record, kind in zip(zip(*columns, strict=True), found.kinds.tolist(), strict=True)
    ]


def distinct_keys(keys: Sequence[bytes]) -> tuple[list[bytes], Ints]:
    """Return each key once, in order of first appearance, and for each of `keys` its number in that list."""
    distinct = list(dict.fromkeys(keys))
    numbers = dict(zip(distinct, range(len(distinct)), strict=True))
    return distinct, np.fromiter(map(numbers.__getitem__, keys), np.int64, len(keys))


def lookup_columns(
    kv: OrderedKV, rows: RowKeys, meta: Meta, keys: Sequence[bytes], index: Ints, as_of: Ints | None
) -> Lookups:
    """Answer many look-ups as columns; see `VersionedStore.lookup_columns`."""
    index = np.asarray(index, np.int64)
    limit = meta.observed - meta.retention
    asked = np.full(len(index), NEVER, np.int64) if as_of is None else np.asarray(as_of, np.int64)
    oldest = np.full(len(keys), NEVER, np.int64)
    np.minimum.at(oldest, index, np.maximum(asked, limit))
    latest = np.full(len(keys), -1, np.int64)
    np.maximum.at(latest, index, asked)
    loaded = _load(kv, rows, meta.horizon, keys, oldest, latest)
    # The key's newest version, unless it is a forgotten tombstone.
    head = np.full(len(keys), -1, np.int64)
    at_newest = np.flatnonzero(loaded.newest)
    forgotten = loaded.deleted & (loaded.times < meta.horizon)
    at_newest = at_newest[~forgotten[at_newest]]
    head[loaded.key[at_newest]] = at_newest
    newest = head[index]
    known = newest >= 0
    at = _last_not_after(loaded, index, asked)
    too_old = asked < limit
    if known.any():
        too_old &= ~(known & (loaded.times[newest] <= asked))
    found = known & (at >= 0) & ~too_old
    kinds = np.where(too_old, _TOO_OLD, np.where(found, 0, _NO_RECORD)).astype(np.uint8)
    hit = at[found]
    kinds[np.flatnonzero(found)] = np.where(loaded.deleted[hit], np.where(forgotten[hit], _NO_RECORD, _TOMBSTONE), 0)
    found = kinds == 0
    hit = np.where(found, at, 0)
    if not len(loaded.times):
        nothing, never = np.full(len(index), -1, np.int64), np.full(len(index), NEVER, np.int64)
        return Lookups(kinds, nothing, never, compose([loaded.blocks.values], np.zeros(len(index), np.int64), ~found))
    values = compose([loaded.blocks.values], loaded.element[hit], ~found)
    return Lookups(kinds, np.where(found, loaded.times[hit], -1), np.where(found, loaded.valid_to[hit], NEVER), values)


def versions_many(
    kv: OrderedKV, rows: RowKeys, meta: Meta, keys: Sequence[bytes], from_ts: Ints, to_ts: Ints
) -> Versions:
    """Return many keys' versions as columns; see `VersionedStore.versions_many`."""
    start, end = np.asarray(from_ts, np.int64), np.asarray(to_ts, np.int64)
    loaded = _load(kv, rows, meta.horizon, keys, start, end)
    horizon = meta.horizon
    within = (loaded.valid_to > start[loaded.key]) & (loaded.times <= end[loaded.key])
    within &= start[loaded.key] <= end[loaded.key]
    within &= loaded.valid_to > horizon
    within |= loaded.newest
    within &= ~(loaded.deleted & (loaded.times < horizon))
    at = np.flatnonzero(within)
    values = compose([loaded.blocks.values], loaded.element[at], loaded.deleted[at])
    return Versions(loaded.key[at], loaded.times[at], loaded.valid_to[at], values)


def _miss(kind: int) -> Miss:
    miss = LOOKUP_MISSES[kind]
    assert miss is not None
    return miss


def _last_not_after(loaded: _Loaded, key: Ints, time: Ints) -> Ints:
    """Return for each (key, time) the position of the key's last version not after it, -1 for none."""
    times = loaded.times
    if not len(times) or not len(key):
        return np.full(len(key), -1, np.int64)
    low = min(int(times.min()), int(time.min()))
    # One number for (key, time), if it fits; else times are replaced by their ranks.
    top = max(int(times.max()), int(np.where(time == NEVER, -1, time).max())) + 1
    bounded = np.minimum(time, top)
    width = top - low + 1
    if width * (max(int(key.max()), int(loaded.key.max())) + 1) < NEVER:
        stored, asked = times - low, bounded - low
    else:
        ranks = np.unique(np.concatenate((times, bounded)))
        stored, asked = np.searchsorted(ranks, times), np.searchsorted(ranks, bounded)
        width = len(ranks)
    at = np.searchsorted(loaded.key * width + stored, key * width + asked, side="right") - 1
    return np.where((at >= 0) & (loaded.key[at] == key), at, -1)


def _load(kv: OrderedKV, rows: RowKeys, horizon: int, keys: Sequence[bytes], start: Ints, end: Ints) -> _Loaded:
    """Fetch each key's head, and the chunks that may hold versions valid within ``[start, end]`` of that key."""
    prefix = rows.head
    fetched = kv.get_many([prefix + key for key in keys])
    owner = np.fromiter((i for i, row in enumerate(fetched) if row is not None), np.int64)
    found = [row for row in fetched if row is not None]
    heads = decode_blocks(found)
    first = heads.times[heads.ends - heads.counts]
    behind = np.flatnonzero((heads.directories > 0) & (start[owner] < first) & (start[owner] <= end[owner]))
    if not len(behind):
        return _arranged(heads, owner, np.full(len(owner), NEVER, np.int64))
    wanted, owners, uppers = _chunks_wanted(rows, horizon, keys, heads, owner, behind, start, end)
    chunks = kv.get_many(wanted)
    for row_key, chunk in zip(wanted, chunks, strict=True):
        if chunk is None:
            raise StateError(f"the versioned store is damaged: the chunk {row_key!r} is gone")
    blocks = decode_blocks([chunk for chunk in chunks if chunk is not None] + found)
    owners_of = np.concatenate((np.array(owners, np.int64), owner))
    upper_of = np.concatenate((np.array(uppers, np.int64), np.full(len(owner), NEVER, np.int64)))
    return _arranged(blocks, owners_of, upper_of)


def _chunks_wanted(
    rows: RowKeys, horizon: int, keys: Sequence[bytes], heads: Blocks, owner: Ints, behind: Ints, start: Ints, end: Ints
) -> tuple[list[bytes], list[int], list[int]]:
    """Return row keys, owners and uppers of the chunks to fetch for the heads at `behind`."""
    wanted: list[bytes] = []
    owners: list[int] = []
    uppers: list[int] = []
    ends = np.cumsum(heads.directories)
    for at in behind.tolist():
        mine = int(owner[at])
        directory = heads.uppers[int(ends[at] - heads.directories[at]) : int(ends[at])].tolist()
        low = bisect_right(directory, max(int(start[mine]), horizon))
        high = bisect_right(directory, int(end[mine])) + 1
        for upper in directory[low:high]:
            wanted.append(rows.chunk_key(upper, keys[mine]))
            owners.append(mine)
            uppers.append(upper)
    return wanted, owners, uppers


def _arranged(blocks: Blocks, owner: Ints, upper: Ints) -> _Loaded:
    """Sort the versions of these blocks by (key, time); `owner` and `upper` are each block's key and end."""
    ends = blocks.ends
    valid_to = np.empty_like(blocks.times)
    valid_to[:-1] = blocks.times[1:]
    valid_to[ends - 1] = upper
    newest = np.zeros(len(blocks.times), np.bool_)
    newest[ends[upper == NEVER] - 1] = True
    if len(owner) < 2 or bool(np.all(owner[1:] > owner[:-1])):
        return _Loaded(blocks, owner[blocks.block], blocks.times, valid_to, blocks.deleted, blocks.element, newest)
    order = np.lexsort((upper, owner))
    at = spread((ends - blocks.counts)[order], blocks.counts[order])
    key = owner[blocks.block[at]]
    return _Loaded(blocks, key, blocks.times[at], valid_to[at], blocks.deleted[at], blocks.element[at], newest[at])
