"""The order in which what goes over a plan takes its nodes, and the walk that takes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from vsc.plan.nodes import Node, Plan

__all__ = ["Walk", "ordered"]

Found = TypeVar("Found")


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


class Walk(Generic[Found]):
    """Finds something of each node from the same of its inputs, by a rule for its operation.

    The rule of an operation ``filter`` is the method ``_filter``: of the node, its operation, and what was `found` of
    its inputs.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.nodes = {node.name: node for node in plan.nodes}
        self.found: dict[str, Found] = {}

    def walk(self, but: tuple[type, ...] = ()) -> None:
        """Goes over the nodes, but those with operations of these kinds."""
        for node in ordered(self.plan):
            if not isinstance(node.operation, but):
                rule = getattr(self, f"_{node.operation.op}")
                self.found[node.name] = rule(node, node.operation, [self.found[name] for name in node.inputs])

    def behind(self, node: Node) -> Found:
        """What was found of the node from which the first input of `node` was made."""
        return self.found[self.nodes[node.inputs[0]].inputs[0]]
