"""Which records that wait would not reach, under the new plan, all that reads them and still exists.

Records wait before the stages after the first one. A node that was read there directly and is now read through another
one, which is computed in the first stage, has already gone by: what it would have made of them is nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from vsc.changes.nodes import Nodes
from vsc.plan.nodes import Plan, Stage
from vsc.plan.order import ordered

__all__ = ["homeless"]


def homeless(old: Plan, new: Plan, nodes: Nodes, ways: frozenset[tuple[int, str]]) -> frozenset[str]:
    """The nodes of the old plan of which no record may wait. `ways`: the inputs of stages of the new plan, as stage and
    node, to which the waiting records of their predecessors go."""
    again: dict[str, set[str]] = {}
    for stage in old.stages[1:]:
        for entering in old.from_first(stage):
            reached = map(nodes.successors.get, _reached(old, stage, entering.node))
            again.setdefault(entering.node, set()).update(node.name for node in reached if node is not None)
    gone = {name for name in again if again[name] and name not in nodes.successors}
    return frozenset(gone.union(*(_passed_by(new, nodes, stage, ways, again) for stage in new.stages[1:])))


def _passed_by(
    new: Plan, nodes: Nodes, stage: Stage, ways: frozenset[tuple[int, str]], again: dict[str, set[str]]
) -> Iterator[str]:
    """The nodes of the old plan whose waiting records an input of a new stage lacks. `again`: by such a node, what is
    still there of all that its records go to."""
    for name in (entering.node for entering in new.from_first(stage)):
        if (stage.id, name) in ways:
            continue
        reached = _reached(new, stage, name)
        for above in _above(new, name):
            for before in nodes.gave(new.node(above)):
                if again.get(before.name, set()) & reached:
                    yield before.name


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
