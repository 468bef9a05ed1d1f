"""Who asks for the old row of a change (its key's newest before), and whether the change is its key's newest.

Kafka's rules (KTable.enableSendingOldValues), read off the plan: a table sends old rows if one of its consumers needs
them, and those without a store of their own pass the wish on to what they read.
"""

from __future__ import annotations

from vsc.plan.nodes import Node, Plan, Stage
from vsc.runtime.operators import layout

__all__ = ["asks_for_latest", "dedupes", "wanted"]


def wanted(plan: Plan, stage: Stage, name: str) -> bool:
    """Whether a consumer of table `name` in `stage` asks for the old row."""
    return any(
        node.operation.asks_old(port)
        or _dedupes(plan, node)
        or ((_computed(node) or node.operation.old_of_inputs) and wanted(plan, stage, node.name))
        for node, port in layout.readers(plan, stage, name)
    )


def asks_for_latest(plan: Plan, stage: Stage, name: str) -> bool:
    """Whether a consumer of table `name` in `stage` needs to know which changes are their key's newest."""
    return any(
        node.operation.asks_latest(port) or (_computed(node) and asks_for_latest(plan, stage, node.name))
        for node, port in layout.readers(plan, stage, name)
    )


def dedupes(plan: Plan, node: Node) -> bool:
    """D7: on an unversioned table that has a store, repeated tombstones of a filter are not sent on."""
    table = plan.node(node.inputs[0])
    versioned = table.status is not None and table.status.versioned
    return not versioned and layout.stored_ancestor(plan, table.name) is not None


def _dedupes(plan: Plan, node: Node) -> bool:
    return node.operation.op == "filter" and _computed(node) and dedupes(plan, node)


def _computed(node: Node) -> bool:
    """Whether a table is computed from its input's rows, without a store that knows what it held."""
    return node.kind == "table" and node.store is None and node.operation.row_by_row
