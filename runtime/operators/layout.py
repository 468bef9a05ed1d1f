"""Who hands what to whom: the questions about a plan's stages that the engines and the routers ask.

Pure functions over the plan. What they guarantee together is Kafka's order: a record goes depth-first through the
consumers of its node, in the order in which these stand in the plan, and one that leaves the stage leaves it at the
place of the first consumer that it has outside.
"""

from __future__ import annotations

from collections.abc import Iterable

from vsc.plan.nodes import Filter, Map, Node, Plan, Rekey, Stage, StreamTableJoin

__all__ = [
    "consumers",
    "dedupes",
    "depth_first",
    "handed_on",
    "hands_out",
    "old_wanted",
    "outside",
    "owner",
    "provider",
    "stage_of_store",
    "stored_ancestor",
]


def consumers(plan: Plan, stage: Stage, name: str) -> list[Node]:
    """The nodes of `stage` to which the records of `name` go, in the stage's order.

    A stream-table join takes its stream's records only: it looks into the table when it needs it.
    """
    nodes = {n.name: n for n in plan.nodes}
    return [nodes[n] for n in stage.nodes if name in _fed_by(nodes[n])]


def _fed_by(node: Node) -> tuple[str, ...]:
    return node.inputs[:1] if isinstance(node.operation, StreamTableJoin) else node.inputs


def provider(plan: Plan, name: str) -> int:
    """The stage whose records of `name` later stages take as their input.

    For a source it is stage 0, where it is parsed, even if a later stage (which stores it) emits what became of it.
    """
    if name in plan.stages[0].nodes:
        return 0
    return next(s.id for s in plan.stages if name in s.emits)


def handed_on(plan: Plan, stage: Stage) -> dict[str, tuple[int, ...]]:
    """The nodes that later stages read from `stage`, and the ids of those stages."""
    found: dict[str, list[int]] = {}
    for later in plan.stages:
        for source in later.inputs:
            if provider(plan, source.node) == stage.id:
                found.setdefault(source.node, []).append(later.id)
    return {name: tuple(ids) for name, ids in found.items()}


def hands_out(plan: Plan, stage: Stage, observe: Iterable[str]) -> frozenset[str]:
    """The nodes whose records `stage` returns: read by later stages, or emitted here and observed."""
    return frozenset(handed_on(plan, stage)) | (frozenset(observe) & frozenset(stage.emits))


def owner(name: str) -> str:
    """The node that the user wrote, for one that the lowering made (``JOIN#rekey`` belongs to ``JOIN``)."""
    return name.removesuffix("#rekey")


def outside(plan: Plan, stage: Stage, name: str) -> int:
    """The place in the plan of the first consumer of `name` that is in no later place of `stage`, or -1.

    A re-keyed stream leaves for a repartition: in Kafka that is behind all that stays in the sub-topology, which the
    engine sees to; here it counts like every other consumer.
    """
    later = {n for s in plan.stages if s.id in handed_on(plan, stage).get(name, ()) for n in s.nodes}
    inside = set(stage.nodes)
    for place, node in enumerate(plan.nodes):
        if name in _fed_by(node) and node.name in later and node.name not in inside:
            return place
    return -1


def stored_ancestor(plan: Plan, name: str) -> Node | None:
    """The node whose store a look-up into table `name` reads: itself, or behind filters and maps; None without one."""
    node = plan.node(name)
    while node.store is None and isinstance(node.operation, Filter | Map):
        node = plan.node(node.inputs[0])
    return node if node.store is not None else None


def dedupes(plan: Plan, node: Node) -> bool:
    """D7: on an unversioned table that has a store, repeated tombstones of a filter are not sent on."""
    table = plan.node(node.inputs[0])
    versioned = table.status is not None and table.status.versioned
    return not versioned and stored_ancestor(plan, table.name) is not None


def old_wanted(plan: Plan, stage: Stage, name: str) -> bool:
    """Whether a consumer of table `name` asks for the row that was the newest before a change."""
    for node in consumers(plan, stage, name):
        if node.kind != "table" or node.store is not None:
            continue  # a store of its own knows what it held
        if isinstance(node.operation, Filter) and dedupes(plan, node):
            return True
        if isinstance(node.operation, Filter | Map) and old_wanted(plan, stage, node.name):
            return True
    return False


def stage_of_store(plan: Plan, name: str) -> Stage | None:
    """A stage that keeps the store of node `name`: the one that emits it, else the first; None if there is none."""
    holding = [s for s in plan.stages if s.id > 0 and name in s.nodes]
    return next((s for s in holding if name in s.emits), holding[0] if holding else None)


def depth_first(plan: Plan, stage: Stage, start: str) -> list[str]:
    """The nodes of a stateless stage behind `start`, itself included, in the order in which they hand records out.

    Those behind a `rekey` come last: in Kafka they would pass through a repartition topic.
    """
    place = {n.name: i for i, n in enumerate(plan.nodes)}
    kept: list[str] = []
    rekeyed: list[str] = []

    def visit(name: str, behind: bool) -> None:
        behind = behind or isinstance(plan.node(name).operation, Rekey)
        leaves = outside(plan, stage, name)
        steps = [(leaves, name, True)] + [(place[c.name], c.name, False) for c in consumers(plan, stage, name)]
        for _, step, own in sorted(steps, key=lambda s: (s[0], not s[2])):
            if own:
                (rekeyed if behind else kept).append(step)
            else:
                visit(step, behind)

    visit(start, False)
    return kept + rekeyed
