"""Sends an aggregate's results on: through its result table if it has one."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tests.oracle.records.consumer import ChangeConsumer, Put
from tests.oracle.records.expressions import Row

__all__ = ["Result", "Results"]


class Result(NamedTuple):
    """A change of the result table.

    Its old row is the newest of the store (D18), unless it does not replace that: Kafka Streams does not always send
    what it has sent before.
    """

    key: Row
    new: Row | None
    time: int
    replaces: bool = True


class Clock(Protocol):
    """When the result table was last written: see `TableStore`."""

    @property
    def versioned(self) -> bool:
        """Whether it is versioned."""

    @property
    def stream_time(self) -> int:
        """The highest time it has accepted."""


class ResultTable(Put, Protocol):
    """A result table from which windows are forgotten."""

    def forget(self, key: Row) -> None:
        """Removes a row and tells nobody."""


class Results:
    """`asked`: whether somebody downstream needs the old row. `put`: the result table, if it has a store."""

    __slots__ = (
        "_forward",
        "_grace",
        "_put",
        "_store",
        "asked",
    )

    def __init__(
        self, put: ResultTable | None, asked: bool, forward: ChangeConsumer, store: Clock | None, grace: int
    ) -> None:
        self._put = put
        self.asked = asked
        self._forward = forward
        self._store = store if store is not None and store.versioned else None
        self._grace = grace

    def refuses(self, time: int) -> bool:
        """Whether the store is versioned and would refuse a result at `time`."""
        return self._store is not None and time < self._store.stream_time - self._grace

    def send(self, result: Result) -> None:
        """Writes and sends one result."""
        put = self._put
        if put is None:
            raise ValueError("an aggregate without a store")
        old = put.before(result.key, result.time) if self.asked and result.replaces else None
        put.process(result.key, result.new, old, result.time)

    def forget(self, key: Row) -> None:
        """Removes a row that nothing can ask for any more; nobody gets a change."""
        if self._put is not None:
            self._put.forget(key)
