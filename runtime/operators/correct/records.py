"""The records that a batch may give results of: kept ones for which its versions are valid, then its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.columns.flow import Flow, stacked
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.correct.layout import Kept, Layout
from vsc.runtime.records import Int64s
from vsc.runtime.state.corrected import Corrected, Place
from vsc.runtime.state.joined import unpacked

__all__ = ["Ranges", "Records", "records_of"]


@dataclass(frozen=True, slots=True)
class Ranges:
    """For which records versions are valid: their key, and the first and the last time of such a record."""

    key: Int64s
    low: Int64s
    high: Int64s


@dataclass(frozen=True, slots=True)
class Records:
    """`stored` of them come from the state, in the values at `places`, each record in that at `place`, as `rows`; the
    others are `came`. `key` are the numbers of the keys by which rows are looked up, `keys` their columns."""

    stored: int
    places: tuple[Place, ...]
    place: Int64s
    rows: pa.BinaryArray
    came: Flow
    key: Int64s
    time: Int64s
    keys: tuple[pa.Array, ...]
    kept: Kept

    def __len__(self) -> int:
        return len(self.key)


def records_of(state: Corrected, layout: Layout, came: Flow, by: Sequence[pa.Array], ranges: Ranges) -> Records:
    """Those that `came`, with the keys of their results, and the kept ones in `ranges`."""
    space = came.space
    found = _found(state, space, ranges)
    place, time, rows = unpacked([value for _, value in found])
    key = space.encoded([at.key for at, _ in found])[place] if found else place
    count = len(came)
    fresh = Kept(
        np.zeros(count, dtype=np.bool_),
        np.zeros(count, dtype=np.int32),
        tuple(by),
        layout.kept_of(came.values),
        layout.no_results(count),
    )
    if not len(key):
        return Records(0, (), place, rows, came, came.key, came.time, came.keys, fresh)
    old = layout.decoded(rows)
    numbers, back = np.unique(key, return_inverse=True)
    decoded = space.codec.decode_columns([space.keys[number] for number in numbers.tolist()])
    chosen = pa.array(back)
    kept = Kept(
        np.concatenate([old.sent, fresh.sent]),
        np.concatenate([old.revision, fresh.revision]),
        stacked(old.by, fresh.by),
        stacked(old.left, fresh.left),
        stacked(old.results, fresh.results),
    )
    return Records(
        len(key), tuple(at for at, _ in found), place, rows, came, np.concatenate([key, came.key]),
        np.concatenate([time, came.time]), stacked([column.take(chosen) for column in decoded], came.keys), kept,
    )  # fmt: skip


def _found(state: Corrected, space: KeySpace, ranges: Ranges) -> list[tuple[Place, bytes]]:
    """The values of the state in which records of the ranges may be, in order of key and arrival."""
    found: dict[Place, bytes] = {}
    asked = np.flatnonzero((ranges.low <= ranges.high) & (ranges.low <= state.newest))
    high = np.minimum(ranges.high, state.newest)
    for row in asked.tolist():
        key = space.keys[int(ranges.key[row])]
        found.update(state.between(key, int(ranges.low[row]), int(high[row])))
    return sorted(found.items(), key=lambda one: (one[0].key, one[0].write))
