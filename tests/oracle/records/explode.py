"""`explode`: one record for each element of an array, with its position or without."""

from __future__ import annotations

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row, Values
from vsc.runtime.metrics import Dropped

__all__ = ["Explode"]


class Explode:
    """A null or an empty array gives no record. A record without value has no array: it is dropped and counted."""

    __slots__ = ("_array", "_context", "_forward", "_name", "_places")

    def __init__(self, name: str, array: Values, places: list[int], context: Context, forward: RecordConsumer) -> None:
        self._name = name
        self._array = array
        self._places = places
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
        for position, element in enumerate(elements or ()):
            columns = dict(enumerate(value))
            given = (position, element) if len(self._places) == 2 else (element,)
            columns.update(zip(self._places, given, strict=True))
            self._forward(key, tuple(columns[place] for place in range(len(columns))), time)
