"""Shared by every operator of a running stage: what to do with failures, the metrics, the record being processed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

from tests.oracle.records.expressions import NodeFailure
from vsc.runtime.errors import ExpressionError
from vsc.runtime.metrics import Dropped, Group, Metrics
from vsc.runtime.records import Order, Origin

__all__ = ["Context", "InputTime"]


class InputTime(Protocol):
    """The clock of the input at what is being processed."""

    def shown(self, node: str) -> int:
        """What the clock of a node shows: it never goes back."""

    def asked(self, node: str) -> int:
        """By what a node's look-ups go: where the end of the input has moved its clock on, they do not."""

    def of_input(self, node: str) -> int:
        """The clock of all sources of a node, whatever has been held back above it."""

    def ahead_of(self, node: str) -> int:
        """What the clock of a node shows before what is being processed moves it."""

    def soonest_ahead_of(self, node: str, table: str) -> int:
        """As `ahead_of`, by the records that have been held back above the node for the shortest time; where the rows
        of the table have been held back, as `ahead_of`."""

    def kept(self, node: str) -> int:
        """By what a node forgets: the end of the input lets it forget nothing."""


class Context:
    """The state of a stage's run that is not in its stores.

    `cause` is the row of `order` being processed, `counter` the number of records handed out for it so far.
    `clock`: that of the input; None: Kafka's, which the records move. `asker`: the node that looks something up. What
    `repeated` nodes drop is counted in another stage. `number` goes up with each row of `order`, in all batches.
    """

    __slots__ = (
        "_failing",
        "_on_error",
        "asker",
        "cause",
        "clock",
        "counter",
        "metrics",
        "number",
        "order",
        "origins",
        "repeated",
    )

    def __init__(self, on_error: Literal["drop", "fail"], repeated: frozenset[str] = frozenset()) -> None:
        self._on_error, self.repeated = on_error, repeated
        self.metrics = Metrics()
        self.origins: tuple[Origin, ...] = ()
        self.order = Order.empty()
        self.cause = 0
        self.counter = 0
        self.clock: InputTime | None = None
        self.asker = ""
        self.number = 0
        self._failing: dict[tuple[str, object], tuple[int, bool, bool]] = {}

    @property
    def place(self) -> tuple[object, ...]:
        """Where the record was read that is being processed; what time has released comes before such records."""
        origin = self.origins[int(self.order.origin[self.cause])]
        released = not origin.source
        return (0,) if released else (1, origin.rank, origin.part, int(self.order.offset[self.cause]))

    @property
    def by_input(self) -> bool:
        """Whether the clock is that of the input."""
        return self.clock is not None

    def stream_time_after(self, node: str, stream_time: int, time: int) -> int:
        """What the clock of a node shows with a record of this time, if it has shown `stream_time` before."""
        return max(stream_time, time) if self.clock is None else self.clock.shown(node)

    def begin(self, cause: int) -> None:
        """Goes on to a row of `order`."""
        self.cause, self.counter = cause, 0
        self.number += 1

    def computed(self, node: str, key: object, fails: bool) -> None:
        """Notes whether a table's newest row of a key cannot be computed."""
        number, ahead, now = self._failing.get((node, key), (-1, False, False))
        self._failing[node, key] = self.number, ahead if number == self.number else now, fails

    def failed_ahead(self, nodes: Iterable[str], key: object) -> bool:
        """Whether one of the tables had such a row ahead of the record being processed."""
        found = (self._failing.get((node, key), (-1, False, False)) for node in nodes)
        return any(ahead if number == self.number else now for number, ahead, now in found)

    def dropped(self, node: str, reason: Dropped) -> None:
        """Counts one dropped record, under the name that the user gave to the operation."""
        if node not in self.repeated:
            self.metrics.count(node, Group.DROPPED_RECORDS, reason)

    def failed(self, failure: NodeFailure, asker: str | None = None) -> None:
        """Counts the record as dropped or raises ExpressionError, as the options say.

        `asker`: the node that looks something up, if it does; what fails on the way to that is counted where it asks.
        """
        if self._on_error == "drop":
            if (asker or failure.node) not in self.repeated:
                self.metrics.count(failure.node, Group.DROPPED_RECORDS, Dropped.EXPRESSION_FAILED)
            return
        origin, offset = self.origins[int(self.order.origin[self.cause])], int(self.order.offset[self.cause])
        raise ExpressionError(
            f"'{failure.node}': {failure.text} failed on record {offset} of {origin.part or 'its only partition'} of "
            f"source '{origin.source}': {failure.reason}",
            "guard the expression (try_cast, try_divide, case), or run with --on-error drop",
        )
