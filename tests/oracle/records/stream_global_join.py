"""Join of a stream with a global table (KIP-99): a record meets the newest row of the key that it computes.

The table is whole in every partition, so the stream stays where it is and keeps its key.
"""

from __future__ import annotations

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row, Values
from tests.oracle.records.getters import Getter
from vsc.runtime.metrics import Dropped, Group, Missed

__all__ = ["StreamGlobalJoin"]


class StreamGlobalJoin:
    """`on` computes the table's key; a null in it has no partner: a left join keeps the record, an inner one drops
    and counts it. A record without value is dropped and counted (D14). A row that is older than the record by more than
    `max_age` is not found."""

    __slots__ = ("_context", "_forward", "_get", "_left", "_max_age", "_name", "_on", "_values")

    def __init__(
        self,
        name: str,
        left: bool,
        on: Values,
        max_age: int | None,
        get: Getter,
        values: Values,
        context: Context,
        forward: RecordConsumer,
    ) -> None:
        self._name = name
        self._left = left
        self._on = on
        self._max_age = max_age
        self._get = get
        self._values = values
        self._context = context
        self._forward = forward

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record."""
        if value is None:
            self._context.dropped(self._name, Dropped.NO_VALUE)
            return
        row = key + value
        try:
            result = self._joined(row, time)
        except NodeFailure as failure:
            self._context.failed(failure, self._name)
            return
        if result is not None:
            self._forward(key, result, time)

    def _joined(self, row: Row, time: int) -> Row | None:
        wanted = self._on(row, None, time, None)
        if None in wanted:
            if not self._left:
                self._context.dropped(self._name, Dropped.NULL_JOIN_KEY)
                return None
            return self._values(row, None, time, None)
        found = self._get(wanted, None)
        if self._max_age is not None and isinstance(found, tuple) and time - found[1] > self._max_age:
            found = Missed.TOO_OLD
        if not isinstance(found, Missed):
            return self._values(row, wanted + found[0], time, found[1])
        self._context.metrics.count(self._name, Group.MISSED_LOOKUPS, found)
        return self._values(row, None, time, None) if self._left else None
