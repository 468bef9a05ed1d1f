"""First step of a corrected join of a table: its changes become records under the key by which rows are looked up.

A record says whether there was a row under this key and at this time, and whether there is one now. A row that gets
another key or time is two records, the old one's first.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row, Values
from vsc.plan.nodes import RowChanges as Operation
from vsc.runtime.metrics import Dropped

__all__ = ["RowChanges"]


class RowChanges:
    """`on` computes the key by which rows are looked up; `columns` are the places of the table's columns that go on."""

    def __init__(
        self, name: str, operation: Operation, on: Values, columns: Sequence[int], context: Context,
        forward: RecordConsumer,
    ) -> None:  # fmt: skip
        self._name, self._operation, self._on, self._columns = name, operation, on, columns
        self._context, self._forward = context, forward

    def process(self, key: Row, new: Row | None, old: Row | None, latest: bool, time: int) -> None:
        """Takes a table's change."""
        if self._operation.versioned and not latest:
            self._context.dropped(self._name, Dropped.OUT_OF_ORDER)
            return
        added = None if new is None else self._key(key + new, time, first=True)
        before = getattr(old, "time", time)
        taken = None if old is None else self._key(key + old, before)
        same = taken is not None and taken == added and before == time
        if taken is not None and old is not None and not same:
            self._send(taken, key + old, (True, False), before)
        if added is not None and new is not None:
            self._send(added, key + new, (same, True), time)

    def _key(self, row: Row, time: int, first: bool = False) -> Row | None:
        """The key of a row; None if it goes nowhere, which is counted when it comes `first`."""
        try:
            found = self._on(row, None, time, None)
        except NodeFailure as failure:
            if first:
                self._context.failed(failure)
            return None
        if None in found and not self._operation.left:
            if first:
                self._context.dropped(self._name, Dropped.NULL_JOIN_KEY)
            return None
        return found

    def _send(self, key: Row, row: Row, change: Row, time: int) -> None:
        self._forward(key, change + tuple(row[place] for place in self._columns), time)
