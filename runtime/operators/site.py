"""Where an operator works: a node of a stage, and what there is for it in one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vsc.plan.nodes import Item, Node, Plan, Schema, Stage
from vsc.runtime.operators.columns.evaluation import Evaluation
from vsc.runtime.operators.columns.failures import Failures
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.keyspace import KeySpace, KeySpaces
from vsc.runtime.operators.columns.loop import TableLoop
from vsc.runtime.operators.columns.moments import Moments, Routes
from vsc.runtime.operators.operator import Step, operator_of
from vsc.runtime.operators.stores import store_prefix
from vsc.runtime.operators.tables.lookups import Lookup, stored
from vsc.runtime.operators.tables.store import TableColumns
from vsc.runtime.records import Int64s
from vsc.runtime.state.kv import OrderedKV

__all__ = ["Site"]


@dataclass(frozen=True, slots=True)
class Site:
    """A node at work on one batch: all that its operator is built from.

    `spaces` hold the batch's keys, `tables` the stores of the stage's tables, `failures` what cannot be computed.
    `roots` gives for each cause the number of the source record behind it, `step` the step of another node.
    """

    plan: Plan
    stage: Stage
    node: Node
    kv: OrderedKV
    routes: Routes
    spaces: KeySpaces
    roots: Callable[[], Int64s]
    failures: Failures
    tables: Mapping[str, TableColumns]
    step: Callable[[str], Step]

    @property
    def name(self) -> str:
        """Under what name the node is counted: the user's."""
        return self.node.owner

    @property
    def inputs(self) -> tuple[Schema, ...]:
        """The schemas of the node's inputs; a source has its own records as its input."""
        return tuple(self.plan.node(name).schema for name in self.node.inputs) or (self.node.schema,)

    @property
    def space(self) -> KeySpace:
        """The keys of the node's records."""
        return self.spaces.of(self.node.schema)

    @property
    def table(self) -> TableColumns | None:
        """The node's own store."""
        return self.tables.get(self.node.name)

    @property
    def prefix(self) -> bytes:
        """Where the node keeps what it keeps."""
        return store_prefix(self.stage, self.node.name)

    @property
    def old(self) -> bool:
        """Whether a reader of the table's changes needs the rows before them."""
        return self.node.name in self.stage.old

    @property
    def latest(self) -> bool:
        """Whether a reader of the table's changes needs to know which of them are their key's newest."""
        return self.node.name in self.stage.latest

    def evaluation(self, items: Sequence[Item], inputs: int = 1) -> Evaluation:
        """The expressions of the node, which see so many of its inputs."""
        return Evaluation(self.name, items, self.inputs[:inputs])

    def look_up(self, name: str, as_of: bool = False) -> Lookup:
        """The look-up into table `name`: in its store, or through what it is computed from.

        `as_of`: of the row valid at a record's time, else of the newest one.
        """
        if (table := self.tables.get(name)) is not None:
            return stored(table, as_of)
        node = self.plan.node(name)
        return operator_of(node.operation).look_up(replace(self, node=node), node.operation, as_of)

    def give(self, at: Moments, turn: Int64s) -> Moments:
        """The moments of what the node, which may give several records for one, gives at events."""
        return self.routes.given(at, self.node.name, turn)

    def opened(self, flow: Flow) -> Flow:
        """The flow, with moments as deep on all ways to the node."""
        if not self.routes.opens(self.node.name):
            return flow
        return replace(flow, at=self.give(flow.at, np.zeros(len(flow), dtype=np.int64)))

    def root(self, at: Moments) -> Int64s:
        """The number of the source record behind each event."""
        return self.roots()[self.routes.cause(at)]

    def loop(self) -> TableLoop:
        """A loop over the records of the node's input that makes its table."""
        give = self.give if self.routes.opens(self.node.name) else None
        return TableLoop(
            self.node, self.inputs[0], self.space, self.table, self.old, self.latest, give, self.failures
        )  # fmt: skip
