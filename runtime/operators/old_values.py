"""Who asks for the old row of a change (its key's newest before), and whether the change is its key's newest.

Kafka's rules (KTable.enableSendingOldValues), read off the plan: a table sends old rows if one of its consumers needs
them, and those without a store of their own pass the wish on to what they read.
"""

from __future__ import annotations

from vsc.plan.nodes import Answer, Filter, GroupChanges, Map, Node, Plan, Stage, Subscribe, Suppress, TableTableJoin
from vsc.runtime.operators import layout

__all__ = ["asks_for_latest", "dedupes", "wanted"]


def wanted(plan: Plan, stage: Stage, name: str) -> bool:
    """Whether a consumer of table `name` in `stage` asks for the old row."""
    return any(_asks(plan, stage, c, name) for c in layout.consumers(plan, stage, name))


def _asks(plan: Plan, stage: Stage, node: Node, name: str) -> bool:
    match node.operation:
        case GroupChanges() | Subscribe() | Suppress():
            return True
        case TableTableJoin(mode=mode):
            return _join_asks(node, mode, name) or wanted(plan, stage, node.name)
        case Filter() if node.kind == "table" and node.store is None:
            return dedupes(plan, node) or wanted(plan, stage, node.name)
        case Map() if node.kind == "table" and node.store is None:
            return wanted(plan, stage, node.name)
        case _:
            return False  # it has no use for it, or a store of its own that knows what it held


def _join_asks(node: Node, mode: str, name: str) -> bool:
    """A left join tells by the old left row whether there was a result, an outer join by both."""
    return mode == "outer" or (mode == "left" and node.inputs[0] == name)


def dedupes(plan: Plan, node: Node) -> bool:
    """D7: on an unversioned table that has a store, repeated tombstones of a filter are not sent on."""
    table = plan.node(node.inputs[0])
    versioned = table.status is not None and table.status.versioned
    return not versioned and layout.stored_ancestor(plan, table.name) is not None


def asks_for_latest(plan: Plan, stage: Stage, name: str) -> bool:
    """Whether a consumer of table `name` in `stage` needs to know which changes are their key's newest."""
    return any(_asks_for_latest(plan, stage, consumer, name) for consumer in layout.consumers(plan, stage, name))


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
