"""`rekey`: another key for a stream's records. They leave the stage behind it: the new key decides their partition."""

from __future__ import annotations

from operator import itemgetter

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row, Values
from vsc.runtime.metrics import Dropped

__all__ = ["Rekey"]


class Rekey:
    """A record without value is dropped and counted; so is one with a null in its new key, unless `keyless` are kept:
    in front of a left join (D26)."""

    __slots__ = ("_context", "_forward", "_key", "_keyless", "_name", "_values", "_width")

    def __init__(
        self,
        name: str,
        key: Values,
        kept: tuple[int, ...],
        keyless: bool,
        context: Context,
        forward: RecordConsumer,
    ) -> None:
        self._name = name
        self._key = key
        self._keyless = keyless
        self._width = len(kept)
        self._values = itemgetter(*kept) if kept else None
        self._context = context
        self._forward = forward

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record."""
        if value is None:
            self._context.dropped(self._name, Dropped.NO_VALUE)
            return
        row = key + value
        try:
            rekeyed = self._key(row, None, time, None)
        except NodeFailure as failure:
            self._context.failed(failure)
            return
        if None in rekeyed and not self._keyless:
            self._context.dropped(self._name, Dropped.NULL_JOIN_KEY)
            return
        self._forward(rekeyed, self._kept(row), time)

    def _kept(self, row: Row) -> Row:
        if self._values is None:
            return ()
        return (self._values(row),) if self._width == 1 else self._values(row)
