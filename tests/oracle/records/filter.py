"""`filter` on streams and on tables."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle.records.consumer import Before, ChangeConsumer, RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row
from tests.oracle.records.put import TablePut

__all__ = ["StreamFilter", "TableFilter"]


class StreamFilter:
    """Keeps a record for which the predicate is true. In one without value the value columns are null (D14)."""

    __slots__ = ("_absent", "_context", "_forward", "_holds")

    def __init__(self, holds: Callable[..., bool], width: int, context: Context, forward: RecordConsumer) -> None:
        self._holds = holds
        self._absent: Row = (None,) * width
        self._context = context
        self._forward = forward

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record."""
        try:
            kept = self._holds(key + (self._absent if value is None else value), None, time, None)
        except NodeFailure as failure:
            self._context.failed(failure)
            return
        if kept:
            self._forward(key, value, time)


class TableFilter:
    """Makes a row that fails the predicate a tombstone.

    `dedupe` (D7): a tombstone after which and before which the filtered table has no row is not sent on. With a store
    of its own (`put`) the row before is that store's newest one, else it is the old row that came with the change.
    """

    __slots__ = ("_context", "_dedupe", "_forward", "_holds", "_intervals", "_name", "_old", "_put")

    def __init__(
        self,
        name: str,
        holds: Callable[..., bool],
        dedupe: bool,
        old_wanted: bool,
        intervals: bool,
        put: TablePut | None,
        context: Context,
        forward: ChangeConsumer,
    ) -> None:
        self._name = name
        self._holds = holds
        self._dedupe = dedupe
        self._old, self._intervals = old_wanted or dedupe or intervals, intervals
        self._put = put
        self._context = context
        self._forward = forward

    def process(self, key: Row, new: Row | None, old: Before | None, latest: bool, time: int) -> None:
        """Takes a table's change."""
        self._context.computed(self._name, key, False)
        try:
            if new is not None and not self._holds(key + new, None, time, None):
                new = None
        except NodeFailure as failure:
            self._context.failed(failure)
            self._context.computed(self._name, key, True)
            before = self._before(key, old, time) if self._old and self._put is None else None
            if before is not None or (self._intervals and self._put is None):
                self._forward(key, None, before, latest, time)
            return
        put = self._put
        before = self._before(key, old, time) if self._old else None
        if self._dedupe and new is None and before is None:
            return
        if put is None:
            self._forward(key, new, before, latest, time)
        else:
            put.process(key, new, before, time)

    def _before(self, key: Row, old: Before | None, time: int) -> Before | None:
        if self._put is not None:
            return self._put.before(key, time)
        try:
            return old if old is not None and self._holds(key + old, None, old.time, None) else None
        except NodeFailure:
            return None  # it failed, and was dealt with, when it was the new row
