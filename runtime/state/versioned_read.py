"""Many reads of a versioned store at once: each key's rows are fetched once, and searched as columns.

Guarantees: the answers are those of the single operations. Not for writes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.runtime.state.api import NEVER, Miss, VersionedRecord, Versions
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.versioned_columns import Blocks, Ints, chunk_rows, compose, decode_blocks, spread
from vsc.runtime.state.versioned_layout import Meta, RowKeys

__all__ = ["distinct_keys", "get_many", "versions_many"]

Bools = npt.NDArray[np.bool_]

_NO_RECORD, _TOO_OLD = -1, -2
_MISSES = {_NO_RECORD: Miss.NO_RECORD, _TOO_OLD: Miss.OLDER_THAN_RETENTION}
"""Why a look-up found no version, by what stands for its position."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Versions of many keys, sorted by (key, time); `key` is an index into the keys, `newest`: its key's last one.

    `element` is the position of the value in `values`.
    """

    values: pa.BinaryArray
    key: Ints
    times: Ints
    valid_to: Ints
    deleted: Bools
    element: Ints
    newest: Bools

    def take(self, at: Ints | Bools) -> _Known:
        """The versions at these positions."""
        return _Known(
            self.values, self.key[at], self.times[at], self.valid_to[at], self.deleted[at], self.element[at],
            self.newest[at],
        )  # fmt: skip


def get_many(
    kv: OrderedKV, rows: RowKeys, meta: Meta, keys: Sequence[bytes], as_of: Ints | None
) -> list[VersionedRecord | Miss]:
    """Answer many look-ups; see `VersionedStore.get_many`."""
    distinct, index = distinct_keys(keys)
    limit = meta.observed - meta.retention
    asked = np.full(len(index), NEVER, np.int64) if as_of is None else np.asarray(as_of, np.int64)
    oldest = np.full(len(distinct), NEVER, np.int64)
    np.minimum.at(oldest, index, np.maximum(asked, limit))
    latest = np.full(len(distinct), -1, np.int64)
    np.maximum.at(latest, index, asked)
    known = _known(kv, rows, meta, distinct, oldest, latest)
    newest = np.full(len(distinct), NEVER, np.int64)
    newest[known.key[known.newest]] = known.times[known.newest]
    at = _last_not_after(known, index, asked)
    at[asked < np.minimum(limit, newest[index])] = _TOO_OLD
    answered = known.take(at[at >= 0])
    until = answered.valid_to.astype(object)
    until[answered.valid_to == NEVER] = None
    values = compose([answered.values], answered.element, answered.deleted).to_pylist()
    records: list[VersionedRecord | Miss] = [
        Miss.TOMBSTONE if value is None else VersionedRecord(value, begin, end)
        for value, begin, end in zip(values, answered.times.tolist(), until.tolist(), strict=True)
    ]
    if len(records) == len(at):
        return records
    answers = iter(records)
    return [next(answers) if place >= 0 else _MISSES[place] for place in at.tolist()]


def distinct_keys(keys: Sequence[bytes]) -> tuple[list[bytes], Ints]:
    """Return each key once, in order of first appearance, and for each of `keys` its number in that list."""
    distinct = list(dict.fromkeys(keys))
    numbers = dict(zip(distinct, range(len(distinct)), strict=True))
    return distinct, np.fromiter(map(numbers.__getitem__, keys), np.int64, len(keys))


def versions_many(
    kv: OrderedKV, rows: RowKeys, meta: Meta, keys: Sequence[bytes], from_ts: Ints, to_ts: Ints
) -> Versions:
    """Return many keys' versions as columns; see `VersionedStore.versions_many`."""
    known = _known(kv, rows, meta, keys, np.asarray(from_ts, np.int64), np.asarray(to_ts, np.int64))
    return Versions(known.key, known.times, known.valid_to, compose([known.values], known.element, known.deleted))


def _known(kv: OrderedKV, rows: RowKeys, meta: Meta, keys: Sequence[bytes], start: Ints, end: Ints) -> _Known:
    """Return what `versions_many` gives."""
    loaded, horizon = _load(kv, rows, meta.horizon, keys, start, end), meta.horizon
    within = (loaded.valid_to > start[loaded.key]) & (loaded.times <= end[loaded.key])
    within &= start[loaded.key] <= end[loaded.key]
    within &= loaded.valid_to > horizon
    within |= loaded.newest
    within &= ~(loaded.deleted & (loaded.times < horizon))
    return loaded.take(within)


def _last_not_after(known: _Known, key: Ints, time: Ints) -> Ints:
    """Return for each (key, time) the position of the key's last version not after it, `_NO_RECORD` for none."""
    times = known.times
    if not len(times) or not len(key):
        return np.full(len(key), _NO_RECORD, np.int64)
    low = min(int(times.min()), int(time.min()))
    # One number for (key, time), if it fits; else times are replaced by their ranks.
    top = max(int(times.max()), int(np.where(time == NEVER, -1, time).max())) + 1
    bounded = np.minimum(time, top)
    width = top - low + 1
    if width * (max(int(key.max()), int(known.key.max())) + 1) < NEVER:
        stored, asked = times - low, bounded - low
    else:
        ranks = np.unique(np.concatenate((times, bounded)))
        stored, asked = np.searchsorted(ranks, times), np.searchsorted(ranks, bounded)
        width = len(ranks)
    # Versions are in order of (key, time), and so are these numbers. What stands before may be of another key.
    at = np.searchsorted(known.key * width + stored, key * width + asked, side="right") - 1
    return np.where((at >= 0) & (known.key[at] == key), at, _NO_RECORD)


def _load(kv: OrderedKV, rows: RowKeys, horizon: int, keys: Sequence[bytes], start: Ints, end: Ints) -> _Known:
    """Fetch each key's head, and the chunks that may hold versions valid within ``[start, end]`` of that key."""
    fetched = kv.get_many([rows.head + key for key in keys])
    owner = np.fromiter((i for i, row in enumerate(fetched) if row is not None), np.int64)
    stored = [row for row in fetched if row is not None]
    heads = decode_blocks(stored)
    first = heads.times[heads.ends - heads.counts]
    behind = np.flatnonzero((heads.directories > 0) & (start[owner] < first) & (start[owner] <= end[owner]))
    upper = np.full(len(owner), NEVER, np.int64)
    if not len(behind):
        return _arranged(heads, owner, upper)
    wanted: list[tuple[int, int]] = []
    ends = np.cumsum(heads.directories)
    for at in behind.tolist():
        mine = int(owner[at])
        directory = heads.uppers[int(ends[at] - heads.directories[at]) : int(ends[at])].tolist()
        # A chunk holds versions that were valid before its upper: the first wanted one is the first that ends later
        # than `start`, the last wanted one that in which `end` lies. What the horizon has passed counts as gone.
        low = bisect_right(directory, max(int(start[mine]), horizon))
        high = bisect_right(directory, int(end[mine])) + 1
        wanted += [(mine, chunk) for chunk in directory[low:high]]
    chunks = chunk_rows(kv, [rows.chunk_key(chunk, keys[mine]) for mine, chunk in wanted])
    owners, uppers = np.array(wanted, np.int64).reshape(-1, 2).T
    return _arranged(decode_blocks(chunks + stored), np.append(owners, owner), np.append(uppers, upper))


def _arranged(blocks: Blocks, owner: Ints, upper: Ints) -> _Known:
    """Sort the versions of these blocks by (key, time); `owner` and `upper` are each block's key and end."""
    ends = blocks.ends
    valid_to = np.empty_like(blocks.times)
    valid_to[:-1] = blocks.times[1:]
    valid_to[ends - 1] = upper
    newest = np.zeros(len(blocks.times), np.bool_)
    newest[ends[upper == NEVER] - 1] = True
    key = owner[blocks.block]
    known = _Known(blocks.values, key, blocks.times, valid_to, blocks.deleted, blocks.element, newest)
    if len(owner) < 2 or bool(np.all(owner[1:] > owner[:-1])):
        return known
    order = np.lexsort((upper, owner))
    return known.take(spread((ends - blocks.counts)[order], blocks.counts[order]))
