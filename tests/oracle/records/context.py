"""Shared by every operator of a running stage: the options, the metrics, and the record being processed."""

from __future__ import annotations

from vsc.runtime.metrics import Dropped, Group, Metrics
from vsc.runtime.operators.context import NodeFailure, RunOptions, expression_error
from vsc.runtime.records import Order, Origin

__all__ = ["Context"]


class Context:
    """The state of a stage's run that is not in its store.

    `cause` is the row of `order` being processed, `counter` the number of records handed out for it so far.
    """

    __slots__ = ("cause", "counter", "metrics", "options", "order", "origins")

    def __init__(self, options: RunOptions) -> None:
        self.options = options
        self.metrics = Metrics()
        self.origins: tuple[Origin, ...] = ()
        self.order = Order.empty()
        self.cause = 0
        self.counter = 0

    def dropped(self, node: str, reason: Dropped) -> None:
        """Counts one dropped record, under the name that the user gave to the operation."""
        self.metrics.count(node, Group.DROPPED_RECORDS, reason)

    def failed(self, failure: NodeFailure) -> None:
        """Counts the record as dropped or raises ExpressionError, as the options say."""
        if self.options.on_error == "drop":
            self.dropped(failure.node, Dropped.EXPRESSION_FAILED)
            return
        origin = self.origins[int(self.order.origin[self.cause])]
        raise expression_error(failure, origin, int(self.order.offset[self.cause]))
