"""Makes the operator of an `Aggregate` from its node."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from tests.oracle.records.aggregate.groups import Calls
from tests.oracle.records.aggregate.results import Results
from tests.oracle.records.aggregate.session_windows import SessionWindows
from tests.oracle.records.aggregate.sliding_windows import SlidingWindows
from tests.oracle.records.aggregate.table_windows import TableWindows
from tests.oracle.records.aggregate.time_windows import TimeWindows
from tests.oracle.records.aggregate.unwindowed import StreamGroups, TableGroups, TravelledRows
from tests.oracle.records.aggregate.windows import WindowedAggregate
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import Row
from tests.oracle.records.tables import Content
from vsc.plan.nodes import Aggregate, Node, Plan

__all__ = ["aggregate_operator"]

_WINDOWS: dict[str, type[WindowedAggregate]] = {
    "tumbling": TimeWindows,
    "hopping": TimeWindows,
    "sliding": SlidingWindows,
    "session": SessionWindows,
}


class Operator(Protocol):
    """An aggregate at work."""

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a record of its input."""

    def content(self) -> Content:
        """What it keeps."""


def aggregate_operator(plan: Plan, node: Node, operation: Aggregate, results: Results, context: Context) -> Operator:
    """The operator of `node`. A `WindowedAggregate` that is final holds windows back."""
    if operation.window is not None and operation.over == "table":
        calls = Calls(node, replace(operation, over="stream"))
        return TableWindows(plan, node, operation.window, calls, results, context)
    calls = Calls(node, operation)
    if operation.window is not None:
        kind = _WINDOWS[operation.window.kind]
        return kind(node, operation.window, operation.final, calls, results, context)
    if operation.over == "stream":
        return StreamGroups(node, calls, results, context)
    return TableGroups(node, calls, TravelledRows(plan, node, operation), results, context)
