"""`merge`: the records of several streams, each as it comes, with the value columns in one order."""

from __future__ import annotations

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.expressions import Row

__all__ = ["Merge"]


class Merge:
    """Takes the records of one of the inputs."""

    __slots__ = ("_chosen", "_forward")

    def __init__(self, chosen: tuple[int, ...], forward: RecordConsumer) -> None:
        self._chosen = None if chosen == tuple(range(len(chosen))) else chosen
        self._forward = forward

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record; one without value goes on without one."""
        if value is not None and self._chosen is not None:
            value = tuple([value[i] for i in self._chosen])
        self._forward(key, value, time)
