"""`to_table`: a stream's record is its key's new row; one without value, or that ``delete when`` names, a tombstone."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row
from tests.oracle.records.source_table import SourceTable
from vsc.runtime.metrics import Dropped

__all__ = ["ToTable"]


class ToTable:
    """Decides about tombstones, then does what a source table does."""

    __slots__ = ("_context", "_deleted", "_name", "_table")

    def __init__(self, name: str, table: SourceTable, deleted: Callable[..., bool] | None, context: Context) -> None:
        self._name = name
        self._table = table
        self._deleted = deleted
        self._context = context

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record; one without key is dropped (D26)."""
        if None in key:
            self._context.dropped(self._name, Dropped.NULL_JOIN_KEY)
            return
        if value is not None and self._deleted is not None:
            try:
                if self._deleted(key + value, None, time, None):
                    value = None
            except NodeFailure as failure:
                self._context.failed(failure)
                return
        self._table.process(key, value, time)
