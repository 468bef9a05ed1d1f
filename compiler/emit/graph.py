"""The topology as a graph for tools, in JSON: what the listing shows, as data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from typing import Any

from vsc.plan import Column, Connector, Node, Plan, Source
from vsc.plan.clocks import NodeClock, held_back_by, node_clocks
from vsc.plan.keyless import nullable_keys

__all__ = ["emit_graph"]


def emit_graph(plan: Plan) -> str:
    """A JSON object with `name`, `clock`, `nodes`, `edges`, `sinks`, `stages`. Edges refer to nodes by name.

    The `clock` of a node says by whose records it tells the time with ``input``, how far it is behind them at most, and
    how long it holds them back itself. It is the lowest of its `branches`: of each the clock of its sources, less its
    hold, which the nodes in `held_back_by` make up.
    """
    nullable, clocks = nullable_keys(plan), node_clocks(plan)
    stages = {node.name: [s.id for s in plan.stages if node.name in s.nodes] for node in plan.nodes}
    edges = [
        {"from": name, "to": node.name, "repartition": not set(stages[node.name]) <= set(stages[name])}
        for node in plan.nodes
        for name in node.inputs
    ]
    document = {
        "name": plan.name,
        "clock": plan.clock,
        "nodes": [
            _node(node, stages[node.name], nullable[node.name], _clock(plan, node.name, clocks)) for node in plan.nodes
        ],
        "edges": edges,
        "sinks": [
            {"id": sink.id, "node": sink.node, "connector": _connector(sink.connector), "line": sink.line}
            for sink in plan.sinks
        ],
        "stages": [
            {
                "id": stage.id,
                "nodes": list(stage.nodes),
                "inputs": [entry.node for entry in stage.inputs],
                "broadcast": [entry.node for entry in stage.inputs if entry.broadcast],
            }
            for stage in plan.stages
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _node(node: Node, stages: list[int], nullable: Set[str], clock: dict[str, Any]) -> dict[str, Any]:
    status, store = node.status, node.store
    return {
        "name": node.name,
        "kind": node.kind,
        "operation": node.operation.op,
        "inputs": list(node.inputs),
        "key": _columns(node.schema.key, nullable),
        "columns": _columns(node.schema.value),
        "versioned": None if status is None else status.versioned,
        "reason": None if status is None else status.reason,
        "decided_by": None if status is None else status.decided_by,
        "store": None
        if store is None
        else {
            "name": store.name,
            "kind": store.kind,
            "retention_ms": store.retention,
            "segment_ms": store.segment,
            "grace_ms": store.grace,
            "expire_ms": store.expire,
            **({"history": store.history} if store.history != "latest" else {}),
            "implied": store.implied,
        },
        "connector": _connector(node.operation.connector) if isinstance(node.operation, Source) else None,
        "clock": clock,
        "stages": stages,
        "line": node.line,
    }


def _clock(plan: Plan, name: str, clocks: Mapping[str, NodeClock]) -> dict[str, Any]:
    clock = clocks[name]
    branches = [
        {
            "sources": sorted(branch.sources),
            "hold_ms": branch.hold,
            "held_back_by": list(held_back_by(plan, name, branch, clocks)),
        }
        for branch in clock.branches
    ]
    return {"sources": sorted(clock.sources), "hold_ms": clock.hold, "holds_ms": clock.holds, "branches": branches}


def _columns(columns: tuple[Column, ...], nullable: Set[str] = frozenset()) -> list[dict[str, str | bool]]:
    """Columns; those of a key that may be null are `nullable`."""
    marked = ({"nullable": True} if column.name in nullable else {} for column in columns)
    return [{"name": c.name, "type": str(c.type), **mark} for c, mark in zip(columns, marked, strict=True)]


def _connector(connector: Connector) -> dict[str, Any]:
    return {
        "kind": connector.kind,
        "options": dict(connector.options),
        "spark_options": dict(connector.spark_options),
    }
