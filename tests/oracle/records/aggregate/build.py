"""Makes the operator of an `Aggregate` from its node."""

from __future__ import annotations

from typing import Protocol

from tests.oracle.records.aggregate.groups import StreamGroups, TableGroups, TravelledRows
from tests.oracle.records.aggregate.results import Results
from tests.oracle.records.aggregate.session_windows import SessionWindows
from tests.oracle.records.aggregate.sliding_windows import SlidingWindows
from tests.oracle.records.aggregate.taking_back import RecordCalls, RecordState
from tests.oracle.records.aggregate.time_windows import TimeWindows
from tests.oracle.records.aggregate.windows import WindowedAggregate
from tests.oracle.records.context import Context
from vsc.plan.nodes import Aggregate, Node, Plan, Stage
from vsc.runtime.operators.aggregate.state import SUFFIX
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.operators.layout import store_prefix
from vsc.runtime.state.kv import OrderedKV

__all__ = ["aggregate_operator"]

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
    calls = RecordCalls(node, operation)
    state = RecordState(kv, store_prefix(stage, node.name) + SUFFIX, calls.numbered)
    if operation.window is not None:
        kind = _WINDOWS[operation.window.kind]
        return kind(node, operation.window, operation.final, calls, state, results, context)
    if operation.over == "stream":
        return StreamGroups(node.name, calls, state, results, context)
    return TableGroups(node.name, calls, TravelledRows(plan, node, operation), state, results, context)
