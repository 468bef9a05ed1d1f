"""The right records that left ones may find in one batch: of the state, and of the batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.columns.evaluation import Computed, Evaluation
from vsc.runtime.operators.columns.flow import Flow, stacked, taken
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.stream_stream_join.pairs import Rows
from vsc.runtime.operators.stream_stream_join.sides import Layout
from vsc.runtime.operators.within_aggregate.kept import Buckets
from vsc.runtime.records import Int64s
from vsc.runtime.state.joined import unpacked

__all__ = ["Rights"]


@dataclass(frozen=True, slots=True)
class Rights:
    """Right rows, those of the state first, with the arguments of the calls."""

    rows: Rows
    args: tuple[pa.Array, ...]

    @staticmethod
    def of(
        buckets: Buckets, fresh: Flow, arrival: Int64s, args: tuple[pa.Array, ...], computed: Evaluation, layout: Layout
    ) -> Rights:
        """The rows of `buckets`, then those of the batch, whose arguments are computed already."""
        of, time, stored = unpacked(list(buckets.values()))
        key = fresh.space.encoded([place.key for place in buckets])[of]
        found = _arguments(stored, key, time, computed, layout, fresh.space)
        if found.failed:  # the calls are others than when these came
            kept = np.delete(np.arange(len(key)), list(found.failed))
            key, time, found = key[kept], time[kept], Computed(taken(found.columns, kept))
        rows = Rows(
            np.concatenate([key, fresh.key]), np.concatenate([time, fresh.time]),
            np.concatenate([np.full(len(key), -1, dtype=np.int64), arrival]), len(key),
        )  # fmt: skip
        return Rights(rows, stacked(found.columns, args))


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
