"""The calls of an aggregate over a stream, on whole columns: the accumulators that need only what they have seen.

Each has the cells of the record-by-record accumulator of the same call (`aggregate.numbers`, `aggregate.running`),
which say more about what they mean. Between `load` and `store` its part of many groups is a `State`, a tuple of
columns; what cannot be done exactly is refused with `NotColumnar`. Not for what keeps entries beside its cells, nor for
tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.plan.nodes import AggregateCall
from vsc.plan.types import DataType, DecimalType, ScalarType
from vsc.runtime.operators.aggregate.numbers import is_float
from vsc.runtime.operators.columnar.flow import NotColumnar
from vsc.runtime.operators.columnar.integers import bytes_of, integers_of
from vsc.runtime.operators.columnar.ranks import can_be_ranked, ranks
from vsc.runtime.operators.columnar.segments import SAFE, Segments
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.values import arrow_type

__all__ = ["ColumnAccumulator", "Rows", "State", "column_accumulator", "part"]

State = tuple[Any, ...]
"""Columns of numpy or Arrow, one element a group (or a record)."""

_NARROW = 18
"""Decimals up to this precision are numbers of 64 bits."""
_EXACT_IN_DOUBLE = 2**53


@dataclass(frozen=True, slots=True)
class Rows:
    """The records that are added, in sorted order: the arguments of a call, event times, numbers of arrival."""

    args: tuple[pa.Array, ...]
    time: Int64s
    arrival: Int64s


class ColumnAccumulator(Protocol):
    """One call, for many groups at once."""

    def load(self, cells: Sequence[pa.Array]) -> State:
        """The groups' states of their cells; null cells are those of a group that is empty."""

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        """The state at each record, in sorted order, and at the end of each group."""

    def results(self, state: State) -> pa.Array:
        """The value of the call."""

    def store(self, state: State) -> tuple[pa.Array, ...]:
        """The cells."""


def part(state: State, places: Int64s) -> State:
    """The elements of a state at `places`."""
    return tuple(c[places] if isinstance(c, np.ndarray) else c.take(pa.array(places)) for c in state)


def column_accumulator(call: AggregateCall) -> ColumnAccumulator | None:
    """The accumulator of a call over a stream; None if it needs the record-by-record engine."""
    of = [arg.type for arg in call.args]
    if call.distinct:
        return None
    match call.function:
        case "count":
            return _Count()
        case "sum" | "avg" if is_float(of[0]):
            return _FloatSum(call.function == "avg")
        case "sum" | "avg" if _narrow(of[0]):
            return _ExactSum(of[0], call.type, call.function == "avg")
        case "min" | "max" if can_be_ranked(of[0]):
            return _Extreme(of[0], call.function == "max")
        case "min_by" | "max_by" if _plain(of[0]) and can_be_ranked(of[1]):
            return _ExtremeBy(of[1], call.function == "max_by")
        case "first" | "last" if _plain(of[0]):
            return _FirstLast(call.function == "last")
        case _:
            return None


def _narrow(data_type: DataType) -> bool:
    return not isinstance(data_type, DecimalType) or data_type.precision <= _NARROW


def _plain(data_type: DataType) -> bool:
    return isinstance(data_type, ScalarType | DecimalType)


class _Count:
    """``count(*)`` and ``count(e)``."""

    def load(self, cells: Sequence[pa.Array]) -> State:
        """See `ColumnAccumulator`."""
        return (_numbers(cells[0]),)

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        """See `ColumnAccumulator`."""
        counted = _valid(rows.args[0]) if rows.args else np.ones(len(segments), dtype=np.bool_)
        running, ended = segments.sums(counted.astype(np.int64), start[0])
        return (running,), (ended,)

    def results(self, state: State) -> pa.Array:
        """See `ColumnAccumulator`."""
        return pa.array(state[0])

    def store(self, state: State) -> tuple[pa.Array, ...]:
        """See `ColumnAccumulator`."""
        return (pa.array(state[0]),)


class _ExactSum:
    """``sum`` and ``avg`` of integers and narrow decimals, as unscaled numbers: how many there are, and their sum."""

    def __init__(self, of: DataType, to: DataType, average: bool) -> None:
        self._decimal = of if isinstance(of, DecimalType) else None
        self._to, self._average = to, average

    def load(self, cells: Sequence[pa.Array]) -> State:
        """See `ColumnAccumulator`."""
        return _numbers(cells[0]), integers_of(cells[1])

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        """See `ColumnAccumulator`."""
        column = rows.args[0]
        counts, count = segments.sums(_valid(column).astype(np.int64), start[0])
        sums, total = segments.sums(self._unscaled(column), start[1])
        if not self._average:
            self._check(sums)
        return (counts, sums), (count, total)

    def results(self, state: State) -> pa.Array:
        """See `ColumnAccumulator`."""
        count, total = state
        nothing = count == 0
        if not self._average:
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
            return _numbers(column)
        halves = np.frombuffer(column.buffers()[1], np.int64, 2 * len(column), 16 * column.offset)
        low: Int64s = halves[::2]
        return np.where(_valid(column), low, 0) if column.null_count else low

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


class _FloatSum:
    """``sum`` and ``avg`` of floats: how many there are, and their sum in the order of arrival."""

    def __init__(self, average: bool) -> None:
        self._average = average

    def load(self, cells: Sequence[pa.Array]) -> State:
        """See `ColumnAccumulator`."""
        return _numbers(cells[0]), _floats(cells[1])

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        """See `ColumnAccumulator`. A null adds 0.0, which changes no sum: none is ever -0.0."""
        column = rows.args[0]
        counts, count = segments.sums(_valid(column).astype(np.int64), start[0])
        sums, total = segments.float_sums(_floats(column), start[1])
        return (counts, sums), (count, total)

    def results(self, state: State) -> pa.Array:
        """See `ColumnAccumulator`."""
        count, total = state
        nothing = count == 0
        return pa.array(total / np.where(nothing, 1, count) if self._average else total, mask=nothing)

    def store(self, state: State) -> tuple[pa.Array, ...]:
        """See `ColumnAccumulator`."""
        return pa.array(state[0]), pa.array(state[1])


class _Extreme:
    """``min`` and ``max``: of equal values the one that came first."""

    def __init__(self, of: DataType, greatest: bool) -> None:
        self._of, self._greatest = of, greatest

    def load(self, cells: Sequence[pa.Array]) -> State:
        """See `ColumnAccumulator`."""
        return (cells[0],)

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        """See `ColumnAccumulator`."""
        values = pa.concat_arrays([start[0], rows.args[0]])
        rank, groups = ranks(values, self._of, self._greatest), segments.count
        known = _valid(values)
        running, ended = segments.winners(rank[groups:], known[groups:], rank[:groups], known[:groups])
        return part((values,), running), part((values,), ended)

    def results(self, state: State) -> pa.Array:
        """See `ColumnAccumulator`."""
        return state[0]

    def store(self, state: State) -> tuple[pa.Array, ...]:
        """See `ColumnAccumulator`."""
        return state


class _ExtremeBy:
    """``min_by`` and ``max_by``: of rows that are equal in what they are ordered by, the one that came last."""

    def __init__(self, by: DataType, greatest: bool) -> None:
        self._by, self._greatest = by, greatest

    def load(self, cells: Sequence[pa.Array]) -> State:
        """See `ColumnAccumulator`."""
        return cells[0], cells[1], _numbers(cells[2])

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        """See `ColumnAccumulator`."""
        value, by = (pa.concat_arrays([a, b]) for a, b in zip(start[:2], rows.args, strict=True))
        state = value, by, np.concatenate([start[2], rows.arrival])
        rank, known, groups = ranks(by, self._by, self._greatest), _valid(by), segments.count
        running, ended = segments.winners(rank[groups:], known[groups:], rank[:groups], known[:groups], True)
        return part(state, running), part(state, ended)

    def results(self, state: State) -> pa.Array:
        """See `ColumnAccumulator`."""
        return state[0]

    def store(self, state: State) -> tuple[pa.Array, ...]:
        """See `ColumnAccumulator`."""
        return state[0], state[1], pa.array(state[2])


class _FirstLast:
    """``first`` and ``last`` by (event time, arrival), nulls too."""

    def __init__(self, last: bool) -> None:
        self._last = last

    def load(self, cells: Sequence[pa.Array]) -> State:
        """See `ColumnAccumulator`."""
        time = cells[1].fill_null(-1) if cells[1].null_count else cells[1]
        return cells[0], time.to_numpy(), _numbers(cells[2])

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        """See `ColumnAccumulator`."""
        time = np.concatenate([start[1], rows.time])
        state = pa.concat_arrays([start[0], rows.args[0]]), time, np.concatenate([start[2], rows.arrival])
        groups, sign = segments.count, 1 if self._last else -1
        every = np.ones(len(segments), dtype=np.bool_)
        running, ended = segments.winners(
            sign * time[groups:], every, sign * time[:groups], start[1] >= 0, last_of_equal=self._last
        )
        return part(state, running), part(state, ended)

    def results(self, state: State) -> pa.Array:
        """See `ColumnAccumulator`."""
        return state[0]

    def store(self, state: State) -> tuple[pa.Array, ...]:
        """See `ColumnAccumulator`."""
        return state[0], pa.array(state[1]), pa.array(state[2])


def _valid(column: pa.Array) -> Mask:
    if not column.null_count:
        return np.ones(len(column), dtype=np.bool_)
    valid: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _numbers(column: pa.Array) -> Int64s:
    """Integers of any width, 0 for null."""
    found: Int64s = (column.fill_null(0) if column.null_count else column).to_numpy().astype(np.int64, copy=False)
    return found


def _floats(column: pa.Array) -> npt.NDArray[np.float64]:
    """Floats of any width, 0.0 for null."""
    found: npt.NDArray[np.float64] = (column.fill_null(0.0) if column.null_count else column).to_numpy()
    return found.astype(np.float64, copy=False)
