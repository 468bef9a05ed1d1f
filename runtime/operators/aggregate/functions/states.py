"""Shared by the accumulators on whole columns: the states of many groups, and the records that change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.runtime.operators.aggregate.functions.calls import entry_tag
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.kv import OrderedKV

__all__ = [
    "ColumnAccumulator",
    "EntryRanges",
    "Refused",
    "Rows",
    "State",
    "Writes",
    "after",
    "floats",
    "integers",
    "part",
    "valid",
]

State = tuple[Any, ...]
"""Columns of numpy or Arrow, one element per group (or record)."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The records that are added: the arguments of a call (or of all), event times, arrivals.

    `sign` is -1 where a record is taken back, 0 where nothing happens; None: all are added. `ident` identifies a
    table's rows; None for a stream.
    """

    args: tuple[pa.Array, ...]
    time: Int64s
    arrival: Int64s
    sign: Int64s | None = None
    ident: npt.NDArray[np.object_] | None = None

    def take(self, places: Int64s) -> Rows:
        """The records at `places`."""
        chosen = pa.array(places)
        sign = None if self.sign is None else self.sign[places]
        ident = None if self.ident is None else self.ident[places]
        return Rows(tuple(c.take(chosen) for c in self.args), self.time[places], self.arrival[places], sign, ident)

    def of(self, args: slice) -> Rows:
        """The records with the arguments of one call."""
        return Rows(self.args[args], self.time, self.arrival, self.sign, self.ident)

    def signed(self, values: Int64s) -> Int64s:
        """The values with the sign of their records: what the records add."""
        return values if self.sign is None else values * self.sign


@dataclass(frozen=True, slots=True)
class EntryRanges:
    """Where groups keep their entries: under a prefix for each group.

    `stored`: which groups begin with the entries stored there; the others begin empty.
    """

    kv: OrderedKV
    prefixes: Sequence[bytes]
    stored: Mask

    def of(self, call: int) -> EntryRanges:
        """The ranges of one call of the aggregate."""
        tag = entry_tag(call)
        return EntryRanges(self.kv, [prefix + tag for prefix in self.prefixes], self.stored)


Refused = Mapping[int, str]
"""Why a state has no value, by its place."""

Writes = tuple[list[tuple[bytes, bytes]], list[bytes]]
"""What to put, and what to delete."""


class ColumnAccumulator:
    """One call, for many groups at once."""

    keeps = False
    """Whether it keeps entries beside its cells: see `aggregate.functions.entries`."""

    def load(self, cells: Sequence[pa.Array]) -> State:
        """The groups' states, from their cells; the cells of an empty group are null."""
        raise NotImplementedError

    def open(self, ranges: EntryRanges, state: State) -> State:
        """Opens the entries of the batch's groups, and returns the groups' states. Called before `fold`."""
        raise NotImplementedError

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        """The state at each record, in sorted order, and at the end of each group."""
        raise NotImplementedError

    def results(self, state: State) -> pa.Array:
        """The value of the call."""
        raise NotImplementedError

    def refused(self, state: State) -> Refused:
        """Which states have no value."""
        return {}

    def store(self, state: State) -> tuple[pa.Array, ...]:
        """The cells."""
        raise NotImplementedError

    def writes(self, chosen: Mask) -> Writes:
        """The changed entries of the `chosen` groups."""
        raise NotImplementedError


def part(state: State, places: Int64s) -> State:
    """The elements of a state at `places`."""
    return tuple(c[places] if isinstance(c, np.ndarray) else c.take(pa.array(places)) for c in state)


def after(first: State, second: State) -> State:
    """The elements of both states, one after the other."""
    return tuple(
        np.concatenate(both) if isinstance(both[0], np.ndarray) else pa.concat_arrays(both)
        for both in zip(first, second, strict=True)
    )


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
