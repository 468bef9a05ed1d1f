"""The records that a batch may give results of: kept ones for which its versions are valid, then its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.columns.flow import Flow, stacked, taken
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.correct.layout import Kept, Layout
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.corrected import Corrected, Place
from vsc.runtime.state.joined import unpacked

__all__ = ["Ranges", "Records", "records_of"]


@dataclass(frozen=True, slots=True)
class Ranges:
    """For which records versions are valid: their key, and the first and the last time of such a record."""

    key: Int64s
    low: Int64s
    high: Int64s

    def beside(self, flow: Flow) -> Ranges:
        """These, and the times of records themselves."""
        key, time = np.concatenate([self.key, flow.key]), flow.time
        return Ranges(key, np.concatenate([self.low, time]), np.concatenate([self.high, time]))


@dataclass(frozen=True, slots=True)
class Records:
    """`stored` of them come from the state, in the values at `places`, each record in that at `place`, as `rows`; the
    others are `came`. `key` are the numbers of the keys by which rows are looked up, `keys` their columns.

    Of a table, a record that came may replace or remove one before it: `row` numbers what they are records of. `old`
    says of which that came there was a row before, `new` for which there is one now. Of a stream, each is of its own.
    """

    stored: int
    places: tuple[Place, ...]
    place: Int64s
    rows: pa.BinaryArray
    came: Flow
    key: Int64s
    time: Int64s
    keys: tuple[pa.Array, ...]
    kept: Kept
    row: Int64s
    old: Mask
    new: Mask

    def __len__(self) -> int:
        return len(self.key)

    @property
    def revision(self) -> Int64s:
        """By row, how many results had gone out before the batch."""
        found = np.zeros(len(self), dtype=np.int64)
        found[self.row[: self.stored]] = self.kept.revision[: self.stored]
        return found


def records_of(
    state: Corrected,
    layout: Layout,
    came: Flow,
    by: Sequence[pa.Array],
    ranges: Ranges,
    change: tuple[Mask, Mask],
    together: Mask | None,
) -> Records:
    """The records that `came`, with the keys of their results and what they `change` (old, new), and the kept
    records in `ranges`. `together`: which of those that came are of one row with others; None: none of all."""
    space = came.space
    found = _found(state, space, ranges)
    place, time, rows = unpacked([value for _, value in found])
    key = space.encoded([at.key for at, _ in found])[place] if found else place
    count = len(came)
    kept = Kept(
        np.zeros(count, dtype=np.bool_),
        np.zeros(count, dtype=np.int32),
        tuple(by),
        layout.kept_of(came.values),
        layout.no_results(count),
    )
    keys = came.keys
    if len(key):
        old = layout.decoded(rows)
        numbers, back = np.unique(key, return_inverse=True)
        decoded = space.codec.decode_columns([space.keys[number] for number in numbers.tolist()])
        chosen = pa.array(back)
        kept = Kept(
            np.concatenate([old.sent, kept.sent]),
            np.concatenate([old.revision, kept.revision]),
            stacked(old.by, kept.by),
            stacked(old.left, kept.left),
            stacked(old.results, kept.results),
        )
        keys = stacked([column.take(chosen) for column in decoded], keys)
    stored, key, time = len(key), np.concatenate([key, came.key]), np.concatenate([time, came.time])
    row = np.arange(len(key), dtype=np.int64)
    if together is not None:
        these = np.concatenate([np.arange(stored), stored + np.flatnonzero(together)])
        begins = np.concatenate([np.ones(stored, dtype=np.bool_), ~change[0]])[these]
        row[these] = these[_first(layout, key[these], time[these], taken(kept.by, these), begins)]
    return Records(stored, tuple(at for at, _ in found), place, rows, came, key, time, keys, kept, row, *change)


def _first(layout: Layout, key: Int64s, time: Int64s, by: Sequence[pa.Array], begins: Mask) -> Int64s:
    """For each record the place of the first one of its row: of those with its key, time and name, the last that
    `begins` one."""
    if not len(key):
        return key
    _, name = layout.names.encode_columns(by)
    order = np.lexsort((name, time, key))  # it is stable
    same = np.column_stack([key, time, name])[order]
    first = begins[order]
    first[0] = True
    first[1:] |= (same[1:] != same[:-1]).any(axis=1)
    found = np.empty(len(order), dtype=np.int64)
    found[order] = order[np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))]
    return found


def _found(state: Corrected, space: KeySpace, ranges: Ranges) -> list[tuple[Place, bytes]]:
    """The values of the state in which records of the ranges may be, in order of key and arrival."""
    found: dict[Place, bytes] = {}
    asked = np.flatnonzero((ranges.low <= ranges.high) & (ranges.low <= state.newest))
    high = np.minimum(ranges.high, state.newest)
    for row in asked.tolist():
        key = space.keys[int(ranges.key[row])]
        found.update(state.between(key, int(ranges.low[row]), int(high[row])))
    return sorted(found.items(), key=lambda one: (one[0].key, one[0].write))
