"""``min``, ``max``, ``min_by``, ``max_by``, ``first`` and ``last`` over a stream, on whole columns.

The cells are those of `aggregate.functions.running`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from vsc.plan.types import BIGINT, DataType
from vsc.runtime.operators.aggregate.functions.order import ranks
from vsc.runtime.operators.aggregate.functions.states import ColumnAccumulator, Rows, State, integers, part, valid
from vsc.runtime.operators.columns.segments import Segments

__all__ = ["ExtremeByColumns", "ExtremeColumns", "FirstLastColumns"]


class ExtremeColumns(ColumnAccumulator):
    """``min`` and ``max``: of equal values the one that came first."""

    def __init__(self, of: DataType, greatest: bool) -> None:
        self._of, self._greatest = of, greatest

    def load(self, cells: Sequence[pa.Array]) -> State:
        return (cells[0],)

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        values = pa.concat_arrays([start[0], rows.args[0]])
        return self._won((values,), values, segments)

    def _won(self, state: State, by: pa.Array, segments: Segments, last_of_equal: bool = False) -> tuple[State, State]:
        """The states, given the states of the groups, then of the records alone, and what they are compared by."""
        rank, known, groups = ranks(by, self._of, self._greatest), valid(by), segments.count
        running, ended = segments.winners(rank[groups:], known[groups:], rank[:groups], known[:groups], last_of_equal)
        return part(state, running), part(state, ended)

    def results(self, state: State) -> pa.Array:
        return state[0]

    def store(self, state: State) -> tuple[pa.Array, ...]:
        return tuple(pa.array(c) if isinstance(c, np.ndarray) else c for c in state)


class ExtremeByColumns(ExtremeColumns):
    """``min_by`` and ``max_by``: of rows with equal ordering values, the one that came last."""

    def load(self, cells: Sequence[pa.Array]) -> State:
        return cells[0], cells[1], integers(cells[2])

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        value, by = (pa.concat_arrays([a, b]) for a, b in zip(start[:2], rows.args, strict=True))
        return self._won((value, by, np.concatenate([start[2], rows.arrival])), by, segments, True)


class FirstLastColumns(ExtremeColumns):
    """``first`` and ``last`` by (event time, arrival), including nulls."""

    def __init__(self, last: bool) -> None:
        super().__init__(BIGINT, last)

    def load(self, cells: Sequence[pa.Array]) -> State:
        return cells[0], cells[1], integers(cells[2])

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        value, time = (pa.concat_arrays(pair) for pair in ([start[0], rows.args[0]], [start[1], pa.array(rows.time)]))
        return self._won((value, time, np.concatenate([start[2], rows.arrival])), time, segments, self._greatest)
