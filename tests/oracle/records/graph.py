"""Builds the operators of one stage from its plan and joins them into a graph of plain calls.

Guarantees Kafka's order: a record is processed depth-first, through the consumers of its node in the order in which
these stand in the stage, each to its end; it is handed out at the place of its first consumer outside of the stage.
How the operator of a node is built: `graph_streams`, `graph_tables`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.oracle.records.building import Built, Consumer, Parts, ports
from tests.oracle.records.collect import Collector
from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.graph_streams import stream_operator
from tests.oracle.records.graph_tables import table_operator
from vsc.plan.nodes import Plan, Stage
from vsc.runtime.operators import evaluate, layout
from vsc.runtime.state.kv import OrderedKV

__all__ = ["StageGraph"]


class StageGraph:
    """The operators of a stage over its key-value store.

    `entries` takes the records of each input; `collectors` hold what is handed out, by node; `tables` are the stores
    and `waiting` the grace buffers of the stage, by node, in the stage's order.
    `finishers` have to be called behind the last record of a batch.
    """

    def __init__(self, plan: Plan, stage: Stage, kv: OrderedKV, context: Context, handed_out: frozenset[str]) -> None:
        self._plan, self._stage = plan, stage
        self._parts = Parts(plan, stage, kv, context)
        self._nodes = self._parts.nodes
        self._place = {n.name: i for i, n in enumerate(plan.nodes)}
        self.tables = self._parts.tables
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

        def change(kb: bytes, key: evaluate.Row, value: evaluate.Row | None, time: int) -> None:
            forward(kb, key, value, None, True, time)  # what the table held before is not known here (D10)

        return change

    def _forward(self, name: str) -> Consumer:
        targets: list[tuple[tuple[int, int], Consumer]] = []
        for consumer, position in layout.readers(self._plan, self._stage, name):
            place = (self._place[consumer.name], position)
            targets.append((place, ports(self._built[consumer.name], position)))
        collector = self.collectors.get(name)
        if collector is not None:
            leaves = layout.outside(self._plan, self._stage, name)
            take = collector.stream if self._nodes[name].kind == "stream" else collector.table
            targets.append(((leaves, 0), take))
        return _fan_out([target for _, target in sorted(targets, key=lambda t: t[0])])


def _fan_out(targets: Sequence[Consumer]) -> Consumer:
    """One call for all of `targets`, in their order."""
    match targets:
        case []:
            return _ignore
        case [only]:
            return only
        case [first, second]:

            def both(*change: Any) -> None:
                first(*change)
                second(*change)

            return both

    def each(*change: Any) -> None:
        for target in targets:
            target(*change)

    return each


def _ignore(*change: Any) -> None:
    """Nobody reads the node here."""
