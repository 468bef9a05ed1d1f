"""Who takes what an operator that goes through its records one by one sends on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from vsc.runtime.operators.evaluate import Row

__all__ = ["ChangeConsumer", "Put"]

ChangeConsumer = Callable[[bytes, Row, "Row | None", "Row | None", bool, int], None]
"""Takes a table's change: encoded key, key columns, new row, old row (each None: none), is_latest, event time in ms.

The old row is the newest one before the change, and None too where nothing downstream asks for it."""


class Put(Protocol):
    """The result table, as far as the results concern it: its writes and its newest rows."""

    def newest(self, kb: bytes) -> Row | None:
        """The row that is the key's newest; None without one."""

    def process(self, kb: bytes, key: Row, new: Row | None, old: Row | None, time: int) -> None:
        """Writes a row and sends it on."""
