"""Where an operator sends its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tests.oracle.records.expressions import Row

__all__ = ["ChangeConsumer", "Put", "RecordConsumer"]

RecordConsumer = Callable[[Row, "Row | None", int], None]
"""Takes a stream's record: key columns, value columns (None: no value), event time in ms."""

ChangeConsumer = Callable[[Row, "Row | None", "Row | None", bool, int], None]
"""Takes a table's change: key columns, new row, old row (each None: none), is_latest, event time in ms.

The old row is the newest one before the change; also None if nothing downstream reads it."""


class Put(Protocol):
    """The result table as an operator needs it: its writes and its newest rows."""

    def newest(self, key: Row) -> Row | None:
        """The key's newest row; None without one."""

    def process(self, key: Row, new: Row | None, old: Row | None, time: int) -> None:
        """Writes a row and sends it on."""
