"""``count``, ``sum`` and ``avg`` on whole columns, with the same cells and entries as `aggregate.functions.numbers`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.plan.types import DataType, DecimalType
from vsc.runtime.operators.aggregate.functions.batch_entries import Counts
from vsc.runtime.operators.aggregate.functions.integers import bytes_of, decimals, integers_of, narrow, unscaled, wide
from vsc.runtime.operators.aggregate.functions.numbers import ExactFloatSum
from vsc.runtime.operators.aggregate.functions.order import ordered
from vsc.runtime.operators.aggregate.functions.states import (
    ColumnAccumulator,
    EntryRanges,
    Refused,
    Rows,
    State,
    Writes,
    floats,
    integers,
    valid,
)
from vsc.runtime.operators.columns.segments import SAFE, Segments
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.values import arrow_type, to_array, to_values

__all__ = ["CountColumns", "CountDistinctColumns", "ExactFloatColumns", "ExactSumColumns", "FloatSumColumns"]

_NONE: Any = None
_EXACT_IN_DOUBLE = 2**53


class CountColumns(ColumnAccumulator):
    """``count(*)`` and ``count(e)``."""

    def load(self, cells: Sequence[pa.Array]) -> State:
        return (integers(cells[0]),)

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        counted = valid(rows.args[0]) if rows.args else np.ones(len(segments), dtype=np.bool_)
        running, ended = segments.sums(rows.signed(counted.astype(np.int64)), start[0])
        return (running,), (ended,)

    def results(self, state: State) -> pa.Array:
        return pa.array(state[0])

    def store(self, state: State) -> tuple[pa.Array, ...]:
        return (pa.array(state[0]),)


class CountDistinctColumns(CountColumns):
    """The number of distinct values; an entry for each value has its count."""

    keeps = True
    _ranges: EntryRanges
    _counts: Counts

    def __init__(self, of: DataType) -> None:
        self._of = of

    def open(self, ranges: EntryRanges, state: State) -> State:
        self._ranges = ranges
        return state

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        steps = rows.signed(valid(rows.args[0]).astype(np.int64))
        counted = np.flatnonzero(steps)
        names, index = ordered(self._of, rows.args[0].take(pa.array(counted)))
        found = self._counts = Counts(self._ranges, segments, steps, counted, names, index, integers_of)
        counts, ended = segments.sums(found.change, start[0])
        return (counts,), (ended,)

    def writes(self, chosen: Mask) -> Writes:
        return self._counts.writes(chosen, lambda counts, _: bytes_of(counts).to_pylist())


class ExactSumColumns(ColumnAccumulator):
    """``sum`` and ``avg`` of integers and decimals, as unscaled numbers: their count and their sum."""

    def __init__(self, of: DataType, to: DataType, average: bool) -> None:
        self._decimal = of if isinstance(of, DecimalType) else None
        self._to, self._average = to, average

    def load(self, cells: Sequence[pa.Array]) -> State:
        return integers(cells[0]), integers_of(cells[1])

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        column = rows.args[0]
        counts, count = segments.sums(rows.signed(valid(column).astype(np.int64)), start[0])
        numbers = integers(column) if self._decimal is None else unscaled(column)
        numbers = numbers if narrow(numbers) else wide(numbers)
        sums, total = segments.sums(rows.signed(numbers), start[1])
        return (counts, sums), (count, total)

    def results(self, state: State) -> pa.Array:
        nothing, values = state[0] == 0, self._values(state)
        if self._average and self._decimal is None:
            return pa.array(values, mask=nothing)
        wrong = self._out(values)
        if wrong.any():
            nothing, values = nothing | wrong, np.where(wrong, 0, values)
        if isinstance(self._to, DecimalType):
            return decimals(values, nothing, arrow_type(self._to))
        return pa.array(values.astype(np.int64), mask=nothing)

    def refused(self, state: State) -> Refused:
        if self._average and self._decimal is None:
            return {}
        reason = "[ARITHMETIC_OVERFLOW] long overflow"
        if isinstance(self._to, DecimalType):
            reason = f"[NUMERIC_VALUE_OUT_OF_RANGE] the result does not fit {self._to}"
        out = self._out(self._values(state)) & (state[0] != 0)
        return dict.fromkeys(np.flatnonzero(out).tolist(), reason)

    def store(self, state: State) -> tuple[pa.Array, ...]:
        return pa.array(state[0]), bytes_of(state[1])

    def _values(self, state: State) -> Any:
        """The results as numbers: doubles, integers, unscaled decimals."""
        count, total = state
        if not self._average:
            return total
        divisor = np.where(count == 0, 1, count)
        if self._decimal is None:
            if narrow(total, _EXACT_IN_DOUBLE):
                return total.astype(np.int64) / divisor
            # Beyond 2**53 a double is not every integer; Python divides integers and rounds once.
            return np.array([t / n for t, n in zip(total.tolist(), divisor.tolist(), strict=True)])
        assert isinstance(self._to, DecimalType)
        factor = 10 ** (self._to.scale - self._decimal.scale)
        most = int(divisor.max()) if len(divisor) else 1
        if not narrow(total, (SAFE - most) // (2 * factor)):
            total, divisor = wide(total), wide(divisor)
        # floor(x + 1/2) of the amount, in whole numbers. Above, they were made wide if a product could leave 64 bits.
        half_up = (2 * np.abs(total) * factor + divisor) // (2 * divisor)
        return np.where(total >= 0, half_up, -half_up)

    def _out(self, values: Int64s) -> Mask:
        """Where numbers do not fit the type: ANSI mode refuses these."""
        least, most = -(2**63), 2**63 - 1
        if isinstance(self._to, DecimalType):
            most = 10**self._to.precision - 1
            least = -most
        if values.dtype != object and least <= -(2**63):
            return np.zeros(len(values), dtype=np.bool_)
        out: Mask = (values < least) | (values > most)
        return out.astype(np.bool_)


class FloatSumColumns(ColumnAccumulator):
    """``sum`` and ``avg`` of floats: their count, and their sum in the order of arrival."""

    def __init__(self, average: bool) -> None:
        self._average = average

    def load(self, cells: Sequence[pa.Array]) -> State:
        return integers(cells[0]), floats(cells[1])

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        """A null adds 0.0, which never changes a sum: no sum is ever -0.0."""
        column = rows.args[0]
        counts, count = segments.sums(valid(column).astype(np.int64), start[0])
        sums, total = segments.float_sums(floats(column), start[1])
        return (counts, sums), (count, total)

    def results(self, state: State) -> pa.Array:
        count, total = state
        nothing = count == 0
        return pa.array(total / np.where(nothing, 1, count) if self._average else total, mask=nothing)

    def store(self, state: State) -> tuple[pa.Array, ...]:
        return pa.array(state[0]), pa.array(state[1])


class ExactFloatColumns(ColumnAccumulator):
    """An `aggregate.numbers.ExactFloatSum` (or `ExactSpread`): its cells, as tuples.

    Sums are integers of any size times a power of two, so they are added one by one.
    """

    def __init__(self, of: ExactFloatSum) -> None:
        self._sum = of

    def load(self, cells: Sequence[pa.Array]) -> State:
        empty = self._sum.start()
        columns = [to_values(cell, of) for cell, of in zip(cells, self._sum.types, strict=True)]
        return (_objects([empty if row[0] is None else row for row in zip(*columns, strict=True)]),)

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        values: list[Any] = rows.args[0].to_pylist()
        signs = [1] * len(values) if rows.sign is None else rows.sign.tolist()
        running: list[tuple[Any, ...]] = []
        ended = list(start[0])
        starts, ends = segments.starts.tolist(), segments.ends.tolist()
        for group, (first, end) in enumerate(zip(starts, ends, strict=True)):
            now = ended[group]
            for value, sign in zip(values[first:end], signs[first:end], strict=True):
                if value is not None and sign:
                    cells = list(now)
                    self._sum.change(cells, 0, value, sign)
                    now = tuple(cells)
                running.append(now)
            ended[group] = now
        return (_objects(running),), (_objects(ended),)

    def results(self, state: State) -> pa.Array:
        return pa.array([self._sum.result(cells, 0, _NONE) for cells in state[0]], pa.float64())

    def store(self, state: State) -> tuple[pa.Array, ...]:
        columns = zip(*state[0], strict=True) if len(state[0]) else [()] * len(self._sum.types)
        return tuple(to_array(list(column), of) for column, of in zip(columns, self._sum.types, strict=True))


def _objects(found: Sequence[tuple[Any, ...]]) -> np.ndarray:
    array = np.empty(len(found), dtype=object)
    array[:] = found
    return array
