"""Which nodes and stages pass records to which, and where state lies: answers for the operators and the routers.

Pure functions over the plan. Together they guarantee Kafka's order: a record goes depth-first through the consumers of
its node, in the order of the plan, and a record that leaves the stage leaves it at the place of its first consumer
outside.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from vsc.plan.nodes import Node, Plan, Stage

__all__ = [
    "above",
    "askers",
    "emitter",
    "entrances",
    "handed_on",
    "hands_out",
    "is_broadcast",
    "outside",
    "readers",
    "repeated",
    "scattered",
    "stage_of_store",
    "store_prefix",
]


def readers(plan: Plan, stage: Stage, name: str) -> list[tuple[Node, int]]:
    """The nodes of `stage` to which the records of `name` go, in the stage's order, with the number of the input.

    A node that takes them at several inputs comes once for each. A stream-table join takes only its stream's records:
    it looks into the table when needed.
    """
    nodes = [plan.node(n) for n in stage.nodes]
    return [(node, position) for node in nodes for position, fed in enumerate(node.taken) if fed == name]


def askers(plan: Plan, stage: Stage) -> dict[str, frozenset[str]]:
    """By node with a store, the nodes of `stage` that may look into it, also through tables without a store.

    Into a versioned store those alone that ask for its history: the newest row is there whatever the clock shows.
    """
    by_store: dict[str, frozenset[str]] = {}
    nodes = {node.name: node for node in plan.nodes}
    for name in stage.nodes:
        asking = nodes[name]
        of_history = asking.operation.counts_late or asking.complete or asking.operation.complete
        asked = list(_asked(asking))
        while asked:
            node = nodes[asked.pop()]
            if node.store is not None:
                if of_history or node.store.kind != "versioned":
                    by_store[node.name] = by_store.get(node.name, frozenset()) | {name}
            elif node.name in stage.nodes:
                asked += node.inputs
    return by_store


def _asked(node: Node) -> tuple[str, ...]:
    """The tables into which a node looks: a join of tables into both, for the other one's changes."""
    if node.operation.looks_up:
        return node.inputs[len(node.driving) :]
    return node.inputs if node.kind == "table" and len(node.inputs) > 1 else ()


def entrances(plan: Plan, stage: Stage) -> list[str]:
    """The nodes whose records enter `stage`: its inputs, or in stage 0 its sources."""
    return [i.node for i in stage.inputs] if stage.id else [n for n in stage.nodes if not plan.node(n).inputs]


def emitter(plan: Plan, name: str) -> Stage:
    """The stage that gives the records of node `name` to sinks."""
    return next(stage for stage in plan.stages if name in stage.emits)


def scattered(plan: Plan, stage: Stage) -> frozenset[str]:
    """The nodes of `stage` whose records of one key come from several partitions of it, or source partitions."""
    if stage.id == 0:
        return frozenset(name for name in stage.nodes if plan.node(name).schema.key)
    return frozenset(stage.moved)


def handed_on(stage: Stage) -> dict[str, tuple[int, ...]]:
    """The nodes that later stages read from `stage`, and the ids of those stages."""
    return {one.node: one.stages for one in stage.hands_on}


def is_broadcast(plan: Plan, name: str) -> bool:
    """Whether every partition gets all records of `name`, as those of a global table."""
    return plan.node(name).operation.global_


def hands_out(stage: Stage, observe: Iterable[str]) -> frozenset[str]:
    """The nodes whose records `stage` returns: read by later stages, or emitted here and observed."""
    return frozenset(handed_on(stage)) | (frozenset(observe) & frozenset(stage.emits))


def outside(plan: Plan, stage: Stage, name: str) -> int:
    """The place in the plan of the first consumer of `name` outside `stage`, or -1.

    A re-keyed stream leaves for a repartition: in Kafka that comes after everything in the sub-topology. The engine
    sees to that; here it counts like every other consumer.
    """
    later = {n for s in plan.stages if s.id in handed_on(stage).get(name, ()) for n in s.nodes}
    inside = set(stage.nodes)
    for place, node in enumerate(plan.nodes):
        if name in node.taken and node.name in later and node.name not in inside:
            return place
    return -1


def above(plan: Plan, stage: Stage, name: str) -> frozenset[str]:
    """Node `name`, and what it is computed from, as far as that is in `stage` or enters it."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        if (one := waiting.pop()) not in found:
            found.add(one)
            waiting.extend(plan.node(one).inputs if one in stage.nodes else ())
    return frozenset(found)


def repeated(stage: Stage) -> frozenset[str]:
    """The nodes of `stage` that another stage emits: it has the same rows of them, and loses the same."""
    return frozenset(stage.nodes) - frozenset(stage.emits) if stage.id else frozenset()


def stage_of_store(plan: Plan, name: str) -> Stage | None:
    """The stage that keeps the store of node `name`: the one that emits it, else the first; None without a store."""
    holding = [s for s in plan.stages if s.id > 0 and name in s.nodes]
    return next((s for s in holding if name in s.emits), holding[0] if holding else None)


def store_prefix(stage: Stage, node: str) -> bytes:
    """The prefix of the state of `node` in `stage`: no prefix is a prefix of another."""
    return struct.pack(">H", stage.nodes.index(node))
