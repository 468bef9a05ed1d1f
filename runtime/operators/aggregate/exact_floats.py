"""``sum`` and ``avg`` of floats over a table, on whole columns, as in `aggregate.numbers.ExactFloatSum`.

Sums are integers of any size times a power of two, so they are added one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.aggregate.numbers import ExactFloatSum
from vsc.runtime.operators.aggregate.states import Rows, State
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.values import to_array, to_values

__all__ = ["ExactFloatColumns"]

_NONE: Any = None


class ExactFloatColumns:
    """The cells of the accumulator for one row, a tuple for each group; a value's is looked up in its cells."""

    def __init__(self, average: bool) -> None:
        self._sum = ExactFloatSum(average)

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
