"""``count``, ``sum`` and ``avg`` over a stream, on whole columns: see `aggregate.numbers`, whose cells they keep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from vsc.plan.types import DataType, DecimalType
from vsc.runtime.operators.aggregate.integers import bytes_of, integers_of
from vsc.runtime.operators.aggregate.states import Rows, State, floats, integers, valid
from vsc.runtime.operators.columns.flow import NotColumnar
from vsc.runtime.operators.columns.segments import SAFE, Segments
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.values import arrow_type

__all__ = ["CountColumns", "ExactSumColumns", "FloatSumColumns"]

_EXACT_IN_DOUBLE = 2**53


class CountColumns:
    """``count(*)`` and ``count(e)``."""

    def load(self, cells: Sequence[pa.Array]) -> State:
        """See `ColumnAccumulator`."""
        return (integers(cells[0]),)

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        """See `ColumnAccumulator`."""
        counted = valid(rows.args[0]) if rows.args else np.ones(len(segments), dtype=np.bool_)
        running, ended = segments.sums(rows.signed(counted.astype(np.int64)), start[0])
        return (running,), (ended,)

    def results(self, state: State) -> pa.Array:
        """See `ColumnAccumulator`."""
        return pa.array(state[0])

    def store(self, state: State) -> tuple[pa.Array, ...]:
        """See `ColumnAccumulator`."""
        return (pa.array(state[0]),)


class ExactSumColumns:
    """``sum`` and ``avg`` of integers and narrow decimals, as unscaled numbers: how many there are, and their sum."""

    def __init__(self, of: DataType, to: DataType, average: bool) -> None:
        self._decimal = of if isinstance(of, DecimalType) else None
        self._to, self._average = to, average

    def load(self, cells: Sequence[pa.Array]) -> State:
        """See `ColumnAccumulator`."""
        return integers(cells[0]), integers_of(cells[1])

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        """See `ColumnAccumulator`."""
        column = rows.args[0]
        counts, count = segments.sums(rows.signed(valid(column).astype(np.int64)), start[0])
        sums, total = segments.sums(rows.signed(self._unscaled(column)), start[1])
        if rows.sign is None and not self._average:
            self._check(sums)
        return (counts, sums), (count, total)

    def results(self, state: State) -> pa.Array:
        """See `ColumnAccumulator`."""
        count, total = state
        nothing = count == 0
        if not self._average:
            self._check(total)
            return self._typed(total, nothing)
        divisor = np.where(nothing, 1, count)
        if isinstance(self._to, DecimalType):
            return self._typed(self._mean(self._to, total, divisor), nothing)
        if len(total) and int(np.abs(total).max()) >= _EXACT_IN_DOUBLE:
            means = np.array([t / n for t, n in zip(total.tolist(), divisor.tolist(), strict=True)])
        else:
            means = total / divisor
        return pa.array(means, mask=nothing)

    def store(self, state: State) -> tuple[pa.Array, ...]:
        """See `ColumnAccumulator`."""
        return pa.array(state[0]), bytes_of(state[1])

    def _unscaled(self, column: pa.Array) -> Int64s:
        if self._decimal is None:
            return integers(column)
        halves = np.frombuffer(column.buffers()[1], np.int64, 2 * len(column), 16 * column.offset)
        low: Int64s = halves[::2]
        return np.where(valid(column), low, 0) if column.null_count else low

    def _check(self, sums: Int64s) -> None:
        """Refuses what does not fit the type, as ANSI mode does; that of integers, `Segments.sums` has checked."""
        if isinstance(self._to, DecimalType) and len(sums) and int(np.abs(sums).max()) >= 10**self._to.precision:
            raise NotColumnar

    def _mean(self, to: DecimalType, total: Int64s, count: Int64s) -> Int64s:
        assert self._decimal is not None
        factor = 10 ** (to.scale - self._decimal.scale)
        if len(total) and 2 * factor * int(np.abs(total).max()) + int(count.max()) >= SAFE:
            raise NotColumnar
        half_up = (2 * np.abs(total) * factor + count) // (2 * count)
        means: Int64s = np.where(total >= 0, half_up, -half_up)
        self._check(means)
        return means

    def _typed(self, values: Int64s, nothing: Mask) -> pa.Array:
        if not isinstance(self._to, DecimalType):
            return pa.array(values, mask=nothing)
        halves = np.empty(2 * len(values), dtype="<i8")
        halves[::2], halves[1::2] = values, values >> 63
        validity = pa.py_buffer(np.packbits(~nothing, bitorder="little"))
        return pa.Array.from_buffers(arrow_type(self._to), len(values), [validity, pa.py_buffer(halves)])


class FloatSumColumns:
    """``sum`` and ``avg`` of floats: how many there are, and their sum in the order of arrival."""

    def __init__(self, average: bool) -> None:
        self._average = average

    def load(self, cells: Sequence[pa.Array]) -> State:
        """See `ColumnAccumulator`."""
        return integers(cells[0]), floats(cells[1])

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        """See `ColumnAccumulator`. A null adds 0.0, which changes no sum: none is ever -0.0."""
        column = rows.args[0]
        counts, count = segments.sums(valid(column).astype(np.int64), start[0])
        sums, total = segments.float_sums(floats(column), start[1])
        return (counts, sums), (count, total)

    def results(self, state: State) -> pa.Array:
        """See `ColumnAccumulator`."""
        count, total = state
        nothing = count == 0
        return pa.array(total / np.where(nothing, 1, count) if self._average else total, mask=nothing)

    def store(self, state: State) -> tuple[pa.Array, ...]:
        """See `ColumnAccumulator`."""
        return pa.array(state[0]), pa.array(state[1])
