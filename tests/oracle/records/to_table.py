"""`to_table`: a stream's record is its key's new row; one without value, or that ``delete when`` names, a tombstone."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle.records.context import Context
from tests.oracle.records.source_table import SourceTable
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.evaluate import Row

__all__ = ["ToTable"]


class ToTable:
    """Decides about tombstones, then does what a source table does."""

    __slots__ = ("_context", "_deleted", "_table")

    def __init__(self, table: SourceTable, deleted: Callable[..., bool] | None, context: Context) -> None:
        self._table = table
        self._deleted = deleted
        self._context = context

    def process(self, kb: bytes, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record."""
        if value is not None and self._deleted is not None:
            try:
                if self._deleted(key + value, None, time, None):
                    value = None
            except NodeFailure as failure:
                self._context.failed(failure)
                return
        self._table.process(kb, key, value, time)
