"""Which records that wait would not reach, under the new plan, all that reads them and still exists.

Records wait before the stages after the first one. A node that was read there directly and is now read through another
one, which is computed in the first stage, has already gone by: what it would have made of them is nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from vsc.changes.lineage import ordered
from vsc.changes.nodes import Nodes
from vsc.plan.nodes import Plan, Stage

__all__ = ["homeless"]


def homeless(old: Plan, new: Plan, nodes: Nodes, ways: frozenset[tuple[int, str]]) -> frozenset[str]:
    """The nodes of the old plan of which no record may wait. `ways`: the inputs of stages of the new plan, as stage and
    node, to which the waiting records of their predecessors go."""
    waits = {name for stage in old.stages[1:] for name in _entering(old, stage)}
    again = {name: _again(old, nodes, name) for name in waits}
    gone = {name for name in waits if again[name] and name not in nodes.successors}
    return frozenset(gone.union(*(_passed_by(new, nodes, stage, ways, again) for stage in new.stages[1:])))


def _passed_by(
    new: Plan, nodes: Nodes, stage: Stage, ways: frozenset[tuple[int, str]], again: dict[str, set[str]]
) -> Iterator[str]:
    """The nodes of the old plan whose waiting records an input of a new stage lacks."""
    for name in _entering(new, stage):
        if (stage.id, name) in ways:
            continue
        reached = _reached(new, stage, name)
        for above in _above(new, name):
            before = nodes.pairs.get(above)
            if before is not None and again.get(before.name, set()) & reached:
                yield before.name


def _entering(plan: Plan, stage: Stage) -> list[str]:
    """The nodes of the first stage that a stage reads."""
    return [entering.node for entering in stage.inputs if entering.node in plan.stages[0].nodes]


def _again(old: Plan, nodes: Nodes, name: str) -> set[str]:
    """What is still there of all that waiting records of a node go to."""
    found = set[str]().union(*(_reached(old, stage, name) for stage in old.stages[1:] if name in _entering(old, stage)))
    return {nodes.successors[one].name for one in found if one in nodes.successors}


def _reached(plan: Plan, stage: Stage, name: str) -> set[str]:
    """What the records of a node reach as an input of a stage."""
    found = {one for one in stage.nodes if one == name or name in plan.node(one).inputs}
    for node in ordered(plan):
        if not found.isdisjoint(node.inputs):
            found.add(node.name)
    return found


def _above(plan: Plan, name: str) -> Iterator[str]:
    """A node and all that it is computed from."""
    yield name
    for before in plan.node(name).inputs:
        yield from _above(plan, before)
