"""Windows that one step closes, in portions: so that what they take in memory does not grow with how many they are.

By the clock of the input, windows close ahead of the record that moves it: the step of that clock. `Closing` finds the
step that closes more windows of a stage than go at once. What comes ahead of the step is processed first; then the
windows go, `AT_ONCE` at a time; the step and what comes behind it have the last of them. The results are the same: the
step is the cause of all, and their moments order them.

Only for windows with a final result that nothing in their stage looks into, keeps or waits behind, and that close by
one clock: not by the lowest of several. Those go at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from vsc.plan.clocks import node_clocks
from vsc.plan.nodes import Aggregate, Explode, Filter, Map, Merge, Node, Plan, Rekey, Stage, ToStream
from vsc.runtime.operators.aggregate.groups.state import SUFFIX, AggregateState
from vsc.runtime.operators.aggregate.windows.grid import grid_of
from vsc.runtime.operators.in_step import Frontier, Input
from vsc.runtime.operators.layout import askers, store_prefix
from vsc.runtime.operators.steps import entering
from vsc.runtime.records import DRAIN, STEP, Batch
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.waiting import STEPS

__all__ = ["AT_ONCE", "Closing"]

AT_ONCE = 20_000
"""How many windows close at once."""
_PASSED_ON = (Explode, Filter, Map, Merge, Rekey, ToStream)


@dataclass(frozen=True, slots=True)
class Closing:
    """The windows of `name` in the state `kv` of one partition. `sources` move its clock, `hold` ms ahead of it."""

    name: str
    operation: Aggregate
    kv: OrderedKV
    prefix: bytes
    sources: frozenset[str]
    hold: int

    @staticmethod
    def of(plan: Plan, stage: Stage, kv: OrderedKV) -> Closing | None:
        """The windows of a stage that close in portions; None if it has none such."""
        nodes = [plan.node(name) for name in stage.nodes]
        waiting = [node for node in nodes if node.waits]
        if plan.clock == "records" or len(waiting) != 1 or not _closes_alone(plan, stage, nodes, waiting[0]):
            return None
        (node,) = waiting
        assert isinstance(node.operation, Aggregate)
        branch, *others = node_clocks(plan)[node.name].branches
        prefix = store_prefix(stage, node.name) + SUFFIX
        return None if others else Closing(node.name, node.operation, kv, prefix, branch.sources, branch.hold)

    def step(self, inputs: Sequence[Input]) -> tuple[Frontier, Batch] | None:
        """The first step among the inputs by which more than `AT_ONCE` windows close, and its place; None if none does.

        None, too, where records come that time has released on their way at the step: they come between the windows.
        """
        steps = [batch for name, batch in inputs if name == STEPS]
        due = self._due() if steps else None
        if due is None:
            return None
        found: list[tuple[Frontier, Batch]] = []
        for batch in steps:
            own = [n for n, origin in enumerate(batch.origins) if origin.source in (*self.sources, DRAIN)]
            passing = np.flatnonzero((batch.order.time >= due) & np.isin(batch.order.origin, own))
            found += [
                (Frontier.at(one), one) for one in (batch.take(passing[at : at + 1]) for at in range(len(passing)))
            ]
        if not found:
            return None
        place, step = min(found, key=lambda one: one[0])
        between = any(_released_at(batch, place) for name, batch in inputs if name != STEPS)
        return None if between else (place, entering(step))

    def _due(self) -> int | None:
        """What the clock of the input shows when one window more than go at once is due; None if there are fewer."""
        state = AggregateState(self.kv, self.prefix, False)
        if state.open <= AT_ONCE:
            return None
        row_key = next(islice(state.places(state.closed + 1, None), AT_ONCE, None), None)
        window = self.operation.window
        if row_key is None or window is None:
            return None
        _, start, _ = state.indexed(row_key)
        return int(grid_of(window).ends_of(np.array([start]))[0]) + window.lingers + self.hold


def _closes_alone(plan: Plan, stage: Stage, nodes: Sequence[Node], node: Node) -> bool:
    """Whether nothing in the stage but the windows of `node` knows when they close."""
    operation = node.operation
    if not isinstance(operation, Aggregate) or not operation.final or operation.over != "stream":
        return False
    if operation.window is None or operation.window.kind not in ("tumbling", "hopping"):
        return False
    copies = sum(node.name in other.nodes for other in plan.stages)
    known = {*stage.old, *stage.latest, *stage.intervals, *askers(plan, stage)}
    if copies > 1 or node.name in known or any(one.operation.looks_up for one in nodes):
        return False
    behind = {node.name}
    for one in nodes:
        if behind.intersection(one.inputs):
            behind.add(one.name)
            if one.store is not None or not isinstance(one.operation, _PASSED_ON):
                return False
    return True


def _released_at(batch: Batch, place: Frontier) -> bool:
    order = batch.order
    if order.moment is None:
        return False
    released = np.flatnonzero((order.moment[:, 0] < STEP) & (order.time == place.time) & (order.offset == place.offset))
    origins = (batch.origins[number] for number in order.origin[released].tolist())
    return any((origin.rank, origin.part) == (place.rank, place.part) for origin in origins)
