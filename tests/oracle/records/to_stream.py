"""`to_stream`: every change of a table is a record; one of an older version too, and a tombstone without value."""

from __future__ import annotations

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.expressions import Row

__all__ = ["ToStream"]


class ToStream:
    """Sends on the new row. What was the newest, and whether this one is, is not told any further."""

    __slots__ = ("_forward",)

    def __init__(self, forward: RecordConsumer) -> None:
        self._forward = forward

    def process(self, key: Row, new: Row | None, old: Row | None, latest: bool, time: int) -> None:
        """Takes a table's change."""
        self._forward(key, new, time)
