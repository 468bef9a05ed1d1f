"""Builds the operators of one stage from its plan and joins them into a graph of plain calls.

Guarantees Kafka's order: a record is processed depth-first, through the consumers of its node in the order in which
these stand in the stage, each to its end; it is handed out at the place of its first consumer outside of the stage.
How the operator of a node is built: `graph_streams`, `graph_tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.oracle.records.building import Built, Consumer, Parts, ports
from tests.oracle.records.collect import Collector
from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import Row
from tests.oracle.records.graph_streams import stream_operator
from tests.oracle.records.graph_tables import table_operator
from tests.oracle.records.suppress import Size
from tests.oracle.records.tables import Content
from vsc.plan.nodes import Plan, Schema, Stage

__all__ = ["StageGraph"]


class StageGraph:
    """The operators of a stage, and what they keep.

    `entries` takes the records of each input; `collectors` hold what is handed out, by node; `waiting` are
    the operators in which something waits, by node, in the stage's order.
    `finishers` have to be called behind the last record of a batch.
    """

    def __init__(
        self, plan: Plan, stage: Stage, context: Context, handed_out: frozenset[str], size: Callable[[Schema], Size]
    ) -> None:
        self._plan, self._stage = plan, stage
        self._parts = Parts(plan, stage, context, size)
        self._nodes = self._parts.nodes
        self._place = {n.name: i for i, n in enumerate(plan.nodes)}
        inputs = [i.node for i in stage.inputs]
        reachable = [*stage.nodes, *(i for i in inputs if i not in stage.nodes)]
        moved = stage.moved
        self.collectors = {
            n: Collector(self._nodes[n].schema, context, n in moved) for n in reachable if n in handed_out
        }
        self._built: dict[str, Built] = {}
        for name in reversed(stage.nodes):
            node = self._nodes[name]
            build = stream_operator if node.kind == "stream" else table_operator
            self._built[name] = build(self._parts, node, self._forward(name))
        waiting = self._parts.waiting
        self.waiting = {name: waiting[name] for name in stage.nodes if name in waiting}
        self.finishers = tuple(self._parts.finishers)
        self.entries: dict[str, RecordConsumer] = {name: self._entry(name) for name in inputs}

    def _entry(self, name: str) -> RecordConsumer:
        if name in self._stage.nodes:
            return ports(self._built[name], 0)
        forward = self._forward(name)
        if self._nodes[name].kind == "stream":
            return forward

        def change(key: Row, value: Row | None, time: int) -> None:
            forward(key, value, None, True, time)  # what the table held before is not known here (D10)

        return change

    def _forward(self, name: str) -> Consumer:
        targets: list[tuple[tuple[int, int], Consumer]] = []
        for consumer in self._stage.nodes:
            for position, read in enumerate(self._nodes[consumer].taken):
                if read == name:
                    turn = self._nodes[consumer].operation.turn_of(position)
                    targets.append(((self._place[consumer], turn), ports(self._built[consumer], position)))
        collector = self.collectors.get(name)
        if collector is not None:
            take = collector.stream if self._nodes[name].kind == "stream" else collector.table
            targets.append(((self._leaves(name), 0), take))
        return _fan_out([target for _, target in sorted(targets, key=lambda t: t[0])])

    def _leaves(self, name: str) -> int:
        """The place in the plan of the first consumer of `name` that is in a later stage only; -1 without one."""
        ids = {i for handed in self._stage.hands_on if handed.node == name for i in handed.stages}
        later = {n for i in ids for n in self._plan.stages[i].nodes} - set(self._stage.nodes)
        return min((self._place[n] for n in later if name in self._nodes[n].taken), default=-1)

    def content(self) -> dict[tuple[str, str], Content]:
        """What is kept, by node and by what it is: its own store, or what the operator keeps beside it."""
        found = {(name, "table"): table.content() for name, table in self._parts.tables.items()}
        return found | {(name, "beside"): content() for name, content in self._parts.beside.items()}


def _fan_out(targets: Sequence[Consumer]) -> Consumer:
    """One call for all of `targets`, in their order."""

    def each(*change: Any) -> None:
        for target in targets:
            target(*change)

    return each
