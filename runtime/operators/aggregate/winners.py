"""``min``, ``max``, ``min_by``, ``max_by``, ``first`` and ``last`` over a stream, on whole columns.

The cells are those of `aggregate.running`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from vsc.plan.types import DataType
from vsc.runtime.operators.aggregate.ranks import ranks
from vsc.runtime.operators.aggregate.states import Rows, State, integers, part, valid
from vsc.runtime.operators.columns.segments import Segments

__all__ = ["ExtremeByColumns", "ExtremeColumns", "FirstLastColumns"]


class ExtremeColumns:
    """``min`` and ``max``: of equal values the one that came first."""

    def __init__(self, of: DataType, greatest: bool) -> None:
        self._of, self._greatest = of, greatest

    def load(self, cells: Sequence[pa.Array]) -> State:
        return (cells[0],)

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        values = pa.concat_arrays([start[0], rows.args[0]])
        rank, groups = ranks(values, self._of, self._greatest), segments.count
        known = valid(values)
        running, ended = segments.winners(rank[groups:], known[groups:], rank[:groups], known[:groups])
        return part((values,), running), part((values,), ended)

    def results(self, state: State) -> pa.Array:
        return state[0]

    def store(self, state: State) -> tuple[pa.Array, ...]:
        return state


class ExtremeByColumns:
    """``min_by`` and ``max_by``: of rows with equal ordering values, the one that came last."""

    def __init__(self, by: DataType, greatest: bool) -> None:
        self._by, self._greatest = by, greatest

    def load(self, cells: Sequence[pa.Array]) -> State:
        return cells[0], cells[1], integers(cells[2])

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        value, by = (pa.concat_arrays([a, b]) for a, b in zip(start[:2], rows.args, strict=True))
        state = value, by, np.concatenate([start[2], rows.arrival])
        rank, known, groups = ranks(by, self._by, self._greatest), valid(by), segments.count
        running, ended = segments.winners(rank[groups:], known[groups:], rank[:groups], known[:groups], True)
        return part(state, running), part(state, ended)

    def results(self, state: State) -> pa.Array:
        return state[0]

    def store(self, state: State) -> tuple[pa.Array, ...]:
        return state[0], state[1], pa.array(state[2])


class FirstLastColumns:
    """``first`` and ``last`` by (event time, arrival), including nulls."""

    def __init__(self, last: bool) -> None:
        self._last = last

    def load(self, cells: Sequence[pa.Array]) -> State:
        time = cells[1].fill_null(-1) if cells[1].null_count else cells[1]
        return cells[0], time.to_numpy(), integers(cells[2])

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        time = np.concatenate([start[1], rows.time])
        state = pa.concat_arrays([start[0], rows.args[0]]), time, np.concatenate([start[2], rows.arrival])
        groups, sign = segments.count, 1 if self._last else -1
        every = np.ones(len(segments), dtype=np.bool_)
        running, ended = segments.winners(
            sign * time[groups:], every, sign * time[:groups], start[1] >= 0, last_of_equal=self._last
        )
        return part(state, running), part(state, ended)

    def results(self, state: State) -> pa.Array:
        return state[0]

    def store(self, state: State) -> tuple[pa.Array, ...]:
        return state[0], pa.array(state[1]), pa.array(state[2])
