"""The order in which what goes over a plan takes its nodes."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.plan.nodes import Node, Plan

__all__ = ["ordered"]


def ordered(plan: Plan) -> Iterator[Node]:
    """The nodes, inputs first."""
    nodes, seen = {node.name: node for node in plan.nodes}, set[str]()
    for node in plan.nodes:
        waiting = [node]
        while waiting:
            top = waiting[-1]
            missing = [nodes[name] for name in top.inputs if name not in seen]
            waiting += missing
            if not missing:
                waiting.pop()
                if top.name not in seen:
                    seen.add(top.name)
                    yield top
