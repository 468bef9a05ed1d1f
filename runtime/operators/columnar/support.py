"""Which stages can run on whole columns, and what their nodes ask of each other: questions about the plan alone."""

from __future__ import annotations

from vsc.plan.nodes import (
    Aggregate,
    Answer,
    Filter,
    Map,
    Materialize,
    Node,
    Plan,
    Rekey,
    Source,
    Stage,
    StreamTableJoin,
    Subscribe,
    TableTableJoin,
    ToStream,
    ToTable,
)
from vsc.runtime.operators.columnar.folding import can_be_folded
from vsc.runtime.operators.layout import consumers, stored_ancestor
from vsc.runtime.operators.old_values import dedupes

__all__ = ["asks_for_latest", "behind_windows", "supports"]


def supports(plan: Plan, stage: Stage) -> bool:
    """Whether `ColumnarStage` can run `stage`, with the very results of the record-by-record engine."""
    if stage.id == 0 or not stage.inputs:
        return False
    nodes = {n.name: n for n in plan.nodes}
    windows = behind_windows(plan, stage)
    if any(windows[name] != name and not _keeps_nothing(nodes[name]) for name in stage.nodes if name in windows):
        return False
    return all(_supported(plan, stage, nodes[name]) for name in stage.nodes)


def _supported(plan: Plan, stage: Stage, node: Node) -> bool:
    match node.operation:
        case Filter() if node.kind == "table" and node.store is not None and node.store.kind == "versioned":
            return not dedupes(plan, node)
        case Source() | ToTable():
            return node.kind == "table" and (node.store is not None or node.name not in _inputs(stage))
        case Aggregate() as aggregate:
            return node.name not in _inputs(stage) and _can_be_aggregated(node, aggregate)
        case Filter() | Map() | Rekey() | Materialize() | Subscribe() | ToStream():
            return node.name not in _inputs(stage)
        case StreamTableJoin(grace=grace):
            behind = stored_ancestor(plan, node.inputs[1])
            stored_here = behind is not None and behind.name in stage.nodes
            return grace is None and stored_here
        case TableTableJoin():
            return all(_can_be_looked_into(plan, stage, side) for side in node.inputs)
        case Answer():
            return _can_be_looked_into(plan, stage, node.inputs[1])
        case _:
            return False


def _can_be_aggregated(node: Node, operation: Aggregate) -> bool:
    """Not: windows that move with their records, nor results in a versioned store, which may refuse them."""
    window, store = operation.window, node.store
    if window is not None and window.kind not in ("tumbling", "hopping"):
        return False
    return can_be_folded(operation) and (store is None or store.kind == "unversioned")


def _keeps_nothing(node: Node) -> bool:
    """Whether several records of one cause can pass through the node as they are."""
    return isinstance(node.operation, Filter | Map | Rekey | ToStream) and node.store is None


def _can_be_looked_into(plan: Plan, stage: Stage, name: str) -> bool:
    node = plan.node(name)
    if name not in stage.nodes:
        return False
    if node.store is not None:
        return True
    looks_behind = isinstance(node.operation, Filter | Map | TableTableJoin)
    return looks_behind and all(_can_be_looked_into(plan, stage, read) for read in node.inputs)


def _inputs(stage: Stage) -> set[str]:
    return {i.node for i in stage.inputs}


def behind_windows(plan: Plan, stage: Stage) -> dict[str, str]:
    """For each node of `stage` behind a windowed aggregate of the stage, and for that itself, the aggregate."""
    found: dict[str, str] = {}
    for name in stage.nodes:
        node = plan.node(name)
        if isinstance(node.operation, Aggregate) and node.operation.window is not None:
            found[name] = name
        else:
            found.update((name, found[read]) for read in node.inputs if read in found)
    return found


def asks_for_latest(plan: Plan, stage: Stage, name: str) -> bool:
    """Whether a consumer of table `name` in `stage` needs to know which changes are their key's newest."""
    return any(_asks_for_latest(plan, stage, consumer, name) for consumer in consumers(plan, stage, name))


def _asks_for_latest(plan: Plan, stage: Stage, node: Node, name: str) -> bool:
    match node.operation:
        case TableTableJoin(left_versioned=left, right_versioned=right):
            return left if node.inputs[0] == name else right
        case Subscribe(versioned=versioned) | Answer(versioned=versioned):
            return versioned
        case Filter() | Map():
            return node.kind == "table" and node.store is None and asks_for_latest(plan, stage, node.name)
        case _:
            return False
