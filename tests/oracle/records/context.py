"""Shared by every operator of a running stage: what to do with failures, the metrics, the record being processed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from tests.oracle.records.expressions import NodeFailure
from vsc.runtime.errors import ExpressionError
from vsc.runtime.metrics import Dropped, Group, Metrics
from vsc.runtime.records import Order, Origin

__all__ = ["Context"]


class Context:
    """The state of a stage's run that is not in its stores.

    `cause` is the row of `order` being processed, `counter` the number of records handed out for it so far.
    `shown`: what the clock of the input shows now, by node; None: Kafka's clock, which the records move. `asker`: the
    node that looks something up.
    """

    __slots__ = ("_on_error", "asker", "cause", "counter", "metrics", "order", "origins", "shown")

    def __init__(self, on_error: Literal["drop", "fail"]) -> None:
        self._on_error = on_error
        self.metrics = Metrics()
        self.origins: tuple[Origin, ...] = ()
        self.order = Order.empty()
        self.cause = 0
        self.counter = 0
        self.shown: Callable[[str], int] | None = None
        self.asker = ""

    @property
    def by_input(self) -> bool:
        """Whether the clock is that of the input."""
        return self.shown is not None

    def moved(self, node: str, stream_time: int, time: int) -> int:
        """What the clock of a node shows with a record of this time, if it has shown `stream_time` before."""
        return max(stream_time, time) if self.shown is None else self.shown(node)

    def dropped(self, node: str, reason: Dropped) -> None:
        """Counts one dropped record, under the name that the user gave to the operation."""
        self.metrics.count(node, Group.DROPPED_RECORDS, reason)

    def failed(self, failure: NodeFailure) -> None:
        """Counts the record as dropped or raises ExpressionError, as the options say."""
        if self._on_error == "drop":
            self.dropped(failure.node, Dropped.EXPRESSION_FAILED)
            return
        origin, offset = self.origins[int(self.order.origin[self.cause])], int(self.order.offset[self.cause])
        raise ExpressionError(
            f"'{failure.node}': {failure.text} failed on record {offset} of {origin.part or 'its only partition'} of "
            f"source '{origin.source}': {failure.reason}",
            "guard the expression (try_cast, try_divide, case), or run with --on-error drop",
        )
