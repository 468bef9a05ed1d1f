"""Source table: rows that stage 0 has parsed become changes, by way of the table's store if it has one."""

from __future__ import annotations

from tests.oracle.records.consumer import ChangeConsumer
from tests.oracle.records.expressions import Row
from tests.oracle.records.put import TablePut

__all__ = ["SourceTable"]


class SourceTable:
    """Without a store every row is sent on as it comes, as the newest and with no old row."""

    __slots__ = ("_forward", "_old", "_put")

    def __init__(self, put: TablePut | None, old_wanted: bool, forward: ChangeConsumer) -> None:
        self._put = put
        self._old = old_wanted
        self._forward = forward

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a row; None is a tombstone."""
        put = self._put
        if put is None:
            self._forward(key, value, None, True, time)
        else:
            put.process(key, value, put.before(key, time) if self._old else None, time)
