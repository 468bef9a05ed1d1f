"""Which stages can run on whole columns, and what their nodes ask of each other: questions about the plan alone."""

from __future__ import annotations

from vsc.plan.nodes import (
    Answer,
    Filter,
    GroupChanges,
    Map,
    Node,
    Plan,
    Stage,
    Subscribe,
    TableTableJoin,
)
from vsc.runtime.operators.layout import consumers

__all__ = ["asks_for_latest", "supports"]


def supports(plan: Plan, stage: Stage) -> bool:
    """Whether `ColumnarStage` can run `stage`, with the very results of the record-by-record engine."""
    return stage.id > 0 and bool(stage.inputs)


def asks_for_latest(plan: Plan, stage: Stage, name: str) -> bool:
    """Whether a consumer of table `name` in `stage` needs to know which changes are their key's newest."""
    return any(_asks_for_latest(plan, stage, consumer, name) for consumer in consumers(plan, stage, name))


def _asks_for_latest(plan: Plan, stage: Stage, node: Node, name: str) -> bool:
    match node.operation:
        case TableTableJoin(left_versioned=left, right_versioned=right):
            return left if node.inputs[0] == name else right
        case Subscribe(versioned=versioned) | Answer(versioned=versioned) | GroupChanges(versioned=versioned):
            return versioned
        case Filter() | Map():
            return node.kind == "table" and node.store is None and asks_for_latest(plan, stage, node.name)
        case _:
            return False
