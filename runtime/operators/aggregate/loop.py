"""`aggregate`, record by record: windows that move with their records, rows that are taken back, collected values.

The operators are those of `aggregate`.
"""

from __future__ import annotations

from vsc.plan.nodes import Aggregate, Node, Plan, Stage
from vsc.runtime.operators.aggregate.records.build import aggregate_operator
from vsc.runtime.operators.aggregate.records.results import Results
from vsc.runtime.operators.aggregate.records.windows import WindowedAggregate
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.loop import TableLoop
from vsc.runtime.operators.columns.moments import Moments
from vsc.runtime.state.kv import OrderedKV

__all__ = ["AggregateLoop"]


class AggregateLoop:
    """One aggregate in one batch, whose state is in `kv`."""

    def __init__(self, plan: Plan, stage: Stage, node: Node, kv: OrderedKV, loop: TableLoop, old: bool) -> None:
        operation = node.operation
        assert isinstance(operation, Aggregate)
        self._loop = loop
        results = Results(loop.put, old, loop.sent.table, loop.put, loop.grace)
        self._operator = aggregate_operator(plan, stage, node, operation, kv, results, loop.context)

    def process(self, flow: Flow) -> Flow:
        """The changes of the result."""
        self._loop.loop.records(flow, self._operator.process)
        return self._loop.flow(flow.at)

    def waiting(self) -> list[tuple[int, object]]:
        """Takes out the windows that wait for their final result: when each would close, and the window."""
        assert isinstance(self._operator, WindowedAggregate)
        return [(held.place, held) for held in self._operator.take_all()]

    def release(self, waiting: list[tuple[int, object]], at: Moments) -> Flow:
        """The final results of windows that waited, one for each moment."""
        assert isinstance(self._operator, WindowedAggregate)
        self._loop.loop.each(waiting, at, self._operator.release)
        return self._loop.flow(at)

    def commit(self) -> None:
        """What has changed is written already."""
