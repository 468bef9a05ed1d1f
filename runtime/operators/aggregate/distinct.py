"""``count(distinct e)`` on whole columns, with the same cells and entries as `aggregate.numbers.CountDistinct`.

A group's entries for the values in the batch are read all at once, and written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.plan.types import DataType, DecimalType, ScalarType
from vsc.runtime.operators.aggregate.integers import bytes_of, integers_of
from vsc.runtime.operators.aggregate.numbers import is_float
from vsc.runtime.operators.aggregate.order import order_bytes
from vsc.runtime.operators.aggregate.states import Beside, Rows, State, Writes, integers, valid
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.values import to_values

__all__ = ["CountDistinctColumns", "ordered"]


def ordered(of: DataType, column: pa.Array) -> tuple[Sequence[bytes], Int64s]:
    """The distinct values of a column without nulls, as `order_bytes`, and for each row which of them it has."""
    if isinstance(of, DecimalType) or (isinstance(of, ScalarType) and not is_float(of)):
        return KeyCodec([of]).encode_columns([column])
    encode, numbers = order_bytes(of), dict[bytes, int]()
    index = [numbers.setdefault(encode(value), len(numbers)) for value in to_values(column, of)]
    return list(numbers), np.array(index, dtype=np.int64)


class CountDistinctColumns:
    """The number of distinct values; an entry for each value has its count."""

    def __init__(self, of: DataType) -> None:
        self._of = of
        self._beside: Beside | None = None
        self._changed: tuple[Int64s, list[bytes], Int64s, Int64s] | None = None

    def open(self, beside: Beside, state: State) -> State:
        self._beside = beside
        return state

    def load(self, cells: Sequence[pa.Array]) -> State:
        return (integers(cells[0]),)

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        beside = self._beside
        assert beside is not None
        counted = np.flatnonzero(valid(rows.args[0]) & (rows.signed(np.ones(len(segments), dtype=np.int64)) != 0))
        change = np.zeros(len(segments), dtype=np.int64)
        if len(counted):
            values, index = ordered(self._of, rows.args[0].take(pa.array(counted)))
            pairs, pair = np.unique(segments.group[counted] * len(values) + index, return_inverse=True)
            group, value = pairs // len(values), (pairs % len(values)).tolist()
            entries = [beside.prefixes[g] + values[v] for g, v in zip(group.tolist(), value, strict=True)]
            known = self._known(beside, group, entries)
            by_pair = Segments(pair.reshape(-1), len(pairs))
            steps = np.ones(len(counted), dtype=np.int64) if rows.sign is None else rows.sign[counted]
            running = by_pair.counts(steps[by_pair.order], known)
            before = by_pair.before(running, known)
            change[counted[by_pair.order]] = (running > 0).astype(np.int64) - (before > 0)
            self._changed = group, entries, known, running[by_pair.ends - 1]
        counts, ended = segments.sums(change, start[0])
        return (counts,), (ended,)

    def results(self, state: State) -> pa.Array:
        return pa.array(state[0])

    def store(self, state: State) -> tuple[pa.Array, ...]:
        return (pa.array(state[0]),)

    def writes(self, chosen: Mask) -> Writes:
        if self._changed is None:
            return [], []
        group, entries, known, ended = self._changed
        put = np.flatnonzero(chosen[group] & (ended > 0))
        gone = np.flatnonzero(chosen[group] & (ended == 0) & (known > 0))
        counts = bytes_of(ended[put]).to_pylist()
        return [(entries[i], n) for i, n in zip(put.tolist(), counts, strict=True)], [entries[i] for i in gone.tolist()]

    def _known(self, beside: Beside, group: Int64s, entries: Sequence[bytes]) -> Int64s:
        """How often the group has had each value before."""
        known = np.zeros(len(entries), dtype=np.int64)
        stored = np.flatnonzero(beside.stored[group])
        found: list[Any] = beside.kv.get_many([entries[i] for i in stored.tolist()])
        known[stored] = integers_of(pa.array(found, pa.binary()))
        return known
