"""What the accumulators on whole columns share: the states of many groups, and the records that change them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.runtime.operators.columnar.segments import Segments
from vsc.runtime.records import Int64s, Mask

__all__ = ["ColumnAccumulator", "Rows", "State", "floats", "integers", "part", "valid"]

State = tuple[Any, ...]
"""Columns of numpy or Arrow, one element a group (or a record)."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The records that are added: the arguments of a call (or of all), event times, numbers of arrival."""

    args: tuple[pa.Array, ...]
    time: Int64s
    arrival: Int64s

    def take(self, places: Int64s) -> Rows:
        """The records at `places`."""
        chosen = pa.array(places)
        return Rows(tuple(c.take(chosen) for c in self.args), self.time[places], self.arrival[places])


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


def valid(column: pa.Array) -> Mask:
    """Where there is a value."""
    if not column.null_count:
        return np.ones(len(column), dtype=np.bool_)
    valid: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def integers(column: pa.Array) -> Int64s:
    """Integers of any width, 0 for null."""
    found: Int64s = (column.fill_null(0) if column.null_count else column).to_numpy().astype(np.int64, copy=False)
    return found


def floats(column: pa.Array) -> npt.NDArray[np.float64]:
    """Floats of any width, 0.0 for null."""
    found: npt.NDArray[np.float64] = (column.fill_null(0.0) if column.null_count else column).to_numpy()
    return found.astype(np.float64, copy=False)
