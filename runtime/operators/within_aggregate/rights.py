"""The right records that left ones may find in one batch: of the state, and of the batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.columns.evaluation import Computed, Evaluation, Failed
from vsc.runtime.operators.columns.flow import Flow, stacked, taken
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.stream_stream_join.pairs import Rows
from vsc.runtime.operators.stream_stream_join.sides import Layout
from vsc.runtime.operators.within_aggregate.kept import Buckets
from vsc.runtime.records import Int64s
from vsc.runtime.state.joined import packed, unpacked

__all__ = ["Rights", "Spoilt"]


@dataclass(frozen=True, slots=True)
class Spoilt:
    """Records of the state on which a call fails, as it is another one than when they came: the numbers of their keys,
    times, rows and failures; and their buckets without them."""

    key: Int64s
    time: Int64s
    rows: pa.BinaryArray
    failed: Failed
    buckets: Buckets


@dataclass(frozen=True, slots=True)
class Rights:
    """Right rows, those of the state first, with the arguments of the calls."""

    rows: Rows
    args: tuple[pa.Array, ...]

    @staticmethod
    def of(
        buckets: Buckets, fresh: Flow, arrival: Int64s, args: tuple[pa.Array, ...], computed: Evaluation, layout: Layout
    ) -> tuple[Rights, Spoilt | None]:
        """The rows of `buckets` on which no call fails, then those of the batch, whose arguments are computed already;
        and the others of `buckets`."""
        of, time, stored = unpacked(list(buckets.values()))
        key = fresh.space.encoded([place.key for place in buckets])[of]
        found, spoilt = _arguments(stored, key, time, computed, layout, fresh.space), None
        if found.failed:
            bad = np.array(sorted(found.failed), dtype=np.int64)
            failed = {place: found.failed[row] for place, row in enumerate(bad.tolist())}
            whole = _without(bad, buckets, of, time, stored)
            spoilt = Spoilt(key[bad], time[bad], stored.take(pa.array(bad)), failed, whole)
            kept = np.delete(np.arange(len(key)), bad)
            key, time, found = key[kept], time[kept], Computed(taken(found.columns, kept))
        rows = Rows(
            np.concatenate([key, fresh.key]), np.concatenate([time, fresh.time]),
            np.concatenate([np.full(len(key), -1, dtype=np.int64), arrival]), len(key),
        )  # fmt: skip
        return Rights(rows, stacked(found.columns, args)), spoilt


def _without(bad: Int64s, buckets: Buckets, of: Int64s, time: Int64s, stored: pa.BinaryArray) -> Buckets:
    """The buckets in which these rows are, without them."""
    places, kept, found = list(buckets), np.ones(len(of), dtype=np.bool_), {}
    kept[bad] = False
    for number in np.unique(of[bad]).tolist():
        rows = np.flatnonzero(kept & (of == number))
        found[places[number]] = packed(None, time[rows], stored.take(pa.array(rows)).to_pylist())
    return found


def _arguments(
    stored: pa.BinaryArray, key: Int64s, time: Int64s, computed: Evaluation, layout: Layout, space: KeySpace
) -> Computed:
    """The arguments for rows of the state, of which only the columns that they read are decoded."""
    (wanted,), width = computed.wanted, len(space.codec.types)
    columns: list[pa.Array] = []
    if any(number < width for number in wanted):
        numbers, row = np.unique(key, return_inverse=True)
        names = space.codec.decode_columns([space.keys[number] for number in numbers.tolist()])
        columns = list(taken([names[number] for number in wanted if number < width], row))
    columns += layout.some(1, stored, [number - width for number in wanted if number >= width])
    return computed.seeing(columns, time)
