"""Makes the operator of an `Aggregate` from its node."""

from __future__ import annotations

from typing import Protocol

from vsc.plan.nodes import Aggregate, GroupChanges, Node, Plan, Stage
from vsc.runtime.operators.aggregate.calls import Calls
from vsc.runtime.operators.aggregate.records.groups import StreamGroups, TableGroups, Travelled
from vsc.runtime.operators.aggregate.records.results import Results
from vsc.runtime.operators.aggregate.records.session_windows import SessionWindows
from vsc.runtime.operators.aggregate.records.sliding_windows import SlidingWindows
from vsc.runtime.operators.aggregate.records.time_windows import TimeWindows
from vsc.runtime.operators.aggregate.records.windows import WindowedAggregate
from vsc.runtime.operators.aggregate.state import open_aggregate
from vsc.runtime.operators.context import Context
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.state.kv import OrderedKV

__all__ = ["aggregate_operator", "travelled"]

_WINDOWS: dict[str, type[WindowedAggregate]] = {
    "tumbling": TimeWindows,
    "hopping": TimeWindows,
    "sliding": SlidingWindows,
    "session": SessionWindows,
}


class Operator(Protocol):
    """An aggregate at work."""

    def process(self, kb: bytes, key: Row, value: Row | None, time: int) -> None:
        """Takes a record of its input."""


def aggregate_operator(
    plan: Plan, stage: Stage, node: Node, operation: Aggregate, kv: OrderedKV, results: Results, context: Context
) -> Operator:
    """The operator of `node`, whose state is in `kv`. A `WindowedAggregate` that is final holds windows back."""
    calls = Calls(node, operation)
    state = open_aggregate(kv, stage, node, calls.numbered)
    if operation.window is not None:
        kind = _WINDOWS[operation.window.kind]
        return kind(node, operation.window, operation.final, calls, state, results, context)
    if operation.over == "stream":
        return StreamGroups(node.name, calls, state, results, context)
    return TableGroups(node.name, calls, travelled(plan, node, operation), state, results, context)


def travelled(plan: Plan, node: Node, operation: Aggregate) -> Travelled:
    """Takes apart what comes to `node`, the aggregate of a table."""
    changes = plan.node(node.inputs[0])
    if not isinstance(changes.operation, GroupChanges):
        raise ValueError(f"node '{node.name}': a table is aggregated by its grouped changes only")
    return Travelled(changes.schema, operation.row, plan.node(changes.inputs[0]).schema)
