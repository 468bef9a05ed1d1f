"""Where an operator sends its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tests.oracle.records.expressions import Row

__all__ = ["Before", "ChangeConsumer", "Put", "RecordConsumer"]


class Before(tuple[object, ...]):
    """The row before a change, and its event time."""

    time: int

    @classmethod
    def of(cls, row: Row, time: int) -> Before:
        """A row with its time."""
        before = cls(row)
        before.time = time
        return before


RecordConsumer = Callable[[Row, "Row | None", int], None]
"""Takes a stream's record: key columns, value columns (None: no value), event time in ms."""

ChangeConsumer = Callable[[Row, "Row | None", "Before | None", bool, int], None]
"""Takes a table's change: key columns, new row, old row (each None: none), is_latest, event time in ms.

The old row is the newest one before the change; also None if nothing downstream reads it."""


class Put(Protocol):
    """The result table as an operator needs it: its writes and its newest rows."""

    def newest(self, key: Row) -> Before | None:
        """The key's newest row; None without one."""

    def before(self, key: Row, time: int) -> Before | None:
        """The row before a change of that time."""

    def process(self, key: Row, new: Row | None, old: Before | None, time: int) -> None:
        """Writes a row and sends it on."""
