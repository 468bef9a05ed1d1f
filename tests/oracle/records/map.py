"""`map` on streams and on tables: other value columns, the same key."""

from __future__ import annotations

from tests.oracle.records.consumer import Before, ChangeConsumer, RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row, Values
from tests.oracle.records.put import TablePut
from vsc.runtime.metrics import Dropped

__all__ = ["StreamMap", "TableMap"]


class StreamMap:
    """Computes the value columns; a record without value goes on without one (D14).

    `timed`: the unit of the event time that the last of `values` is, in parts of a ms; None: it computes none.
    """

    __slots__ = ("_context", "_forward", "_name", "_timed", "_values")

    def __init__(self, name: str, values: Values, timed: int | None, context: Context, forward: RecordConsumer) -> None:
        self._name = name
        self._values = values
        self._timed = timed
        self._context = context
        self._forward = forward

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record."""
        if value is not None:
            try:
                value = self._values(key + value, None, time, None)
            except NodeFailure as failure:
                self._context.failed(failure)
                return
            if self._timed is not None:
                *kept, given = value
                value, own = tuple(kept), time
                if given is None:
                    self._context.dropped(self._name, Dropped.NULL_TIMESTAMP)
                    return
                time = given // self._timed
                if time < 0 or time > own:
                    why = Dropped.NEGATIVE_TIMESTAMP if time < 0 else Dropped.AHEAD_OF_RECORD
                    self._context.dropped(self._name, why)
                    return
        self._forward(key, value, time)


class TableMap:
    """Computes the rows; a tombstone stays one. `old_wanted`: whether somebody downstream needs the old row."""

    __slots__ = ("_context", "_forward", "_intervals", "_name", "_old", "_put", "_values")

    def __init__(
        self,
        name: str,
        values: Values,
        old_wanted: bool,
        intervals: bool,
        put: TablePut | None,
        context: Context,
        forward: ChangeConsumer,
    ) -> None:
        self._name = name
        self._values = values
        self._old, self._intervals = old_wanted or intervals, intervals
        self._put = put
        self._context = context
        self._forward = forward

    def process(self, key: Row, new: Row | None, old: Before | None, latest: bool, time: int) -> None:
        """Takes a table's change."""
        self._context.computed(self._name, key, False)
        if new is not None:
            try:
                new = self._values(key + new, None, time, None)
            except NodeFailure as failure:
                self._context.failed(failure)
                self._context.computed(self._name, key, True)
                before = self._before(key, old) if self._old and self._put is None else None
                if before is not None or (self._intervals and self._put is None):
                    self._forward(key, None, before, latest, time)
                return
        put = self._put
        if put is not None:
            put.process(key, new, put.before(key, time) if self._old else None, time)
        else:
            self._forward(key, new, self._before(key, old) if self._old else None, latest, time)

    def _before(self, key: Row, old: Before | None) -> Before | None:
        try:
            return None if old is None else Before.of(self._values(key + old, None, old.time, None), old.time)
        except NodeFailure:
            return None  # it failed, and was dealt with, when it was the new row
