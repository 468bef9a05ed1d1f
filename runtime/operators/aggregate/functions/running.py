"""Accumulators over streams that keep only the best row so far: min, max, min_by, max_by, first, last.

Each keeps that row in cells; a later row replaces it or is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vsc.plan.types import BIGINT, DataType
from vsc.runtime.operators.aggregate.functions.entries import At, Entries
from vsc.runtime.operators.aggregate.functions.order import comparable

__all__ = ["Extreme", "ExtremeBy", "FirstLast"]


class Extreme:
    """``min`` and ``max``: of equal values the one that came first."""

    has_entries = False

    def __init__(self, of: DataType, greatest: bool) -> None:
        self.types: tuple[DataType, ...] = (of,)
        self._greatest = greatest
        self._comparable: Callable[[Any], Any] = comparable(of)

    def start(self) -> tuple[Any, ...]:
        return (None,)

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        value, before = args[0], cells[i]
        if value is None:
            return
        if before is None:
            cells[i] = value
            return
        new, old = self._comparable(value), self._comparable(before)
        if (new > old) if self._greatest else (new < old):
            cells[i] = value

    def merge(self, cells: list[Any], i: int, other: list[Any], entries: Entries, others: Entries) -> None:
        self.add(cells, i, (other[i],), At(0, 0), entries)

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The least or greatest value; null without values."""
        return cells[i]


class ExtremeBy:
    """``min_by`` and ``max_by``: of rows with equal ordering values, the one that came last (as in Spark).

    Cells: the value, its ordering value, its arrival.
    """

    has_entries = False

    def __init__(self, of: DataType, by: DataType, greatest: bool) -> None:
        self.types: tuple[DataType, ...] = (of, by, BIGINT)
        self._greatest = greatest
        self._comparable: Callable[[Any], Any] = comparable(by)

    def start(self) -> tuple[Any, ...]:
        return None, None, 0

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        value, by = args
        if by is not None and self._wins(by, at.arrival, cells[i + 1], cells[i + 2]):
            cells[i : i + 3] = value, by, at.arrival

    def merge(self, cells: list[Any], i: int, other: list[Any], entries: Entries, others: Entries) -> None:
        self.add(cells, i, (other[i], other[i + 1]), At(0, other[i + 2]), entries)

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The value of the row that is first or last in order; null without rows."""
        return cells[i]

    def _wins(self, by: Any, arrival: int, before: Any, arrived: int) -> bool:
        if before is None:
            return True
        new, old = self._comparable(by), self._comparable(before)
        if new == old:
            return arrival > arrived
        return bool(new > old) is self._greatest


class FirstLast:
    """``first`` and ``last`` by (event time, arrival), including nulls. Cells: value, time (-1: none), arrival."""

    has_entries = False

    def __init__(self, of: DataType, last: bool) -> None:
        self.types: tuple[DataType, ...] = (of, BIGINT, BIGINT)
        self._last = last

    def start(self) -> tuple[Any, ...]:
        return None, -1, 0

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        place, before = (at.time, at.arrival), (cells[i + 1], cells[i + 2])
        if before[0] < 0 or (place > before) is self._last:
            cells[i : i + 3] = args[0], at.time, at.arrival

    def merge(self, cells: list[Any], i: int, other: list[Any], entries: Entries, others: Entries) -> None:
        if other[i + 1] >= 0:
            self.add(cells, i, (other[i],), At(other[i + 1], other[i + 2]), entries)

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The value of the first or the last row; null without rows."""
        return cells[i]
