"""`explode`: one record for each element of an array."""

from __future__ import annotations

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row, Values
from vsc.runtime.metrics import Dropped

__all__ = ["Explode"]


class Explode:
    """A null or an empty array gives no record. A record without value has no array: it is dropped and counted."""

    __slots__ = ("_array", "_context", "_forward", "_name", "_place")

    def __init__(self, name: str, array: Values, place: int, context: Context, forward: RecordConsumer) -> None:
        self._name = name
        self._array = array
        self._place = place
        self._context = context
        self._forward = forward

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record."""
        if value is None:
            self._context.dropped(self._name, Dropped.NO_VALUE)
            return
        try:
            (elements,) = self._array(key + value, None, time, None)
        except NodeFailure as failure:
            self._context.failed(failure)
            return
        before, behind = value[: self._place], value[self._place + 1 :]
        for element in elements or ():
            self._forward(key, (*before, element, *behind), time)
