"""Which stages can run on whole columns, and what their nodes ask of each other: questions about the plan alone."""

from __future__ import annotations

from vsc.plan.nodes import Filter, Map, Materialize, Node, Plan, Rekey, Source, Stage, StreamTableJoin, ToTable
from vsc.runtime.operators.layout import consumers, outside, stored_ancestor
from vsc.runtime.operators.old_values import dedupes, wanted

__all__ = ["hand_out_order", "roots", "supports"]


def supports(plan: Plan, stage: Stage) -> bool:
    """Whether `ColumnarStage` can run `stage`, with the very results of the record-by-record engine.

    It cannot run joins that wait (grace), nor joins whose stream and table come from one input of the stage: what one
    record gives rise to in such a stage depends on the order in which it reaches its nodes.
    """
    if stage.id == 0 or not stage.inputs:
        return False
    nodes = {n.name: n for n in plan.nodes}
    keys = {tuple(c.type for c in nodes[i.node].schema.key) for i in stage.inputs}
    if len(keys) != 1 or keys == {()}:
        return False
    origin = roots(plan, stage)
    return all(name in origin and _supported(plan, stage, nodes[name], origin) for name in stage.nodes)


def _supported(plan: Plan, stage: Stage, node: Node, origin: dict[str, str]) -> bool:
    match node.operation:
        case Filter() if node.kind == "table" and node.store is not None and node.store.kind == "versioned":
            return not dedupes(plan, node) and not wanted(plan, stage, node.name)
        case Source() | ToTable():
            return node.kind == "table" and (node.store is not None or node.name not in _inputs(stage))
        case Filter() | Map() | Rekey() | Materialize():
            return node.name not in _inputs(stage)
        case StreamTableJoin(grace=grace):
            stream, table = node.inputs
            behind = stored_ancestor(plan, table)
            stored_here = behind is not None and behind.name in stage.nodes
            return grace is None and stored_here and origin.get(stream) != origin.get(table)
        case _:
            return False


def _inputs(stage: Stage) -> set[str]:
    return {i.node for i in stage.inputs}


def roots(plan: Plan, stage: Stage) -> dict[str, str]:
    """For each node of `stage` the input whose records (of a join: whose stream) it comes from, if there is one."""
    found = {name: name for name in _inputs(stage)}
    nodes = {n.name: n for n in plan.nodes}
    for name in stage.nodes:
        if name not in found and nodes[name].inputs and nodes[name].inputs[0] in found:
            found[name] = found[nodes[name].inputs[0]]
    return found


def hand_out_order(plan: Plan, stage: Stage, start: str, handed_out: frozenset[str]) -> list[str]:
    """The nodes that hand records out, in the order in which they do so for one record that enters at `start`.

    Depth-first; a node's own records leave at the place of its first consumer outside of the stage.
    """
    place = {n.name: i for i, n in enumerate(plan.nodes)}
    order: list[str] = []

    def forward(name: str) -> None:
        steps = [(place[c.name], c.name) for c in consumers(plan, stage, name) if c.inputs[0] == name]
        if name in handed_out:
            steps.append((outside(plan, stage, name), ""))
        for _, target in sorted(steps, key=lambda step: step[0]):
            if target:
                forward(target)
            else:
                order.append(name)

    forward(start)
    return order
