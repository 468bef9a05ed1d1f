"""The nodes of one stage at work on one batch in columns: each runs once, then each store is written once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from vsc.plan.nodes import (
    Aggregate,
    Answer,
    Filter,
    Map,
    Node,
    Plan,
    Rekey,
    Stage,
    StreamTableJoin,
    Subscribe,
    TableTableJoin,
    ToStream,
    ToTable,
)
from vsc.runtime.metrics import Metrics
from vsc.runtime.operators.aggregate.state import open_aggregate
from vsc.runtime.operators.columnar.answer import AnswerColumns
from vsc.runtime.operators.columnar.evaluation import Evaluation
from vsc.runtime.operators.columnar.flow import Flow
from vsc.runtime.operators.columnar.folding import Folding
from vsc.runtime.operators.columnar.groups import GroupColumns
from vsc.runtime.operators.columnar.keyspace import KeySpaces
from vsc.runtime.operators.columnar.lookups import Pairs, lookup
from vsc.runtime.operators.columnar.moments import Give, Moments, Routes
from vsc.runtime.operators.columnar.operators import (
    JoinColumns,
    RekeyColumns,
    StreamFilterColumns,
    StreamMapColumns,
    TableColumnsOperator,
)
from vsc.runtime.operators.columnar.subscribe import SubscribeColumns
from vsc.runtime.operators.columnar.support import asks_for_latest, behind_windows
from vsc.runtime.operators.columnar.table_table_join import TableJoinColumns
from vsc.runtime.operators.columnar.tables import open_columns
from vsc.runtime.operators.columnar.windows import WindowColumns
from vsc.runtime.operators.layout import stored_ancestor
from vsc.runtime.operators.old_values import dedupes, wanted
from vsc.runtime.operators.stores import store_prefix
from vsc.runtime.records import Int64s
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.subscriptions import SubscriptionStore
from vsc.runtime.state.unversioned import TimestampedStore

__all__ = ["StageRun"]


class StageRun:
    """One batch: the flows of the nodes, the stores' part in it, and what was counted.

    `spaces` hold the batch's keys. `roots` gives for each cause the number of the source record that is behind it.
    """

    def __init__(
        self, plan: Plan, stage: Stage, kv: OrderedKV, routes: Routes, spaces: KeySpaces, roots: Callable[[], Int64s]
    ) -> None:
        self._plan, self._stage, self._kv = plan, stage, kv
        self._routes, self._spaces, self._roots = routes, spaces, roots
        self._nodes = {n.name: n for n in plan.nodes}
        self._order = [self._nodes[name] for name in stage.nodes]
        self.metrics = Metrics()
        self.flows: dict[str, Flow] = {}
        windows = behind_windows(plan, stage)  # their keys are not those of the batch
        stored = [n for n in self._order if n.store is not None and n.name not in windows]
        self._tables = {n.name: open_columns(kv, stage, n, spaces.of([c.type for c in n.schema.key])) for n in stored}
        self._answers: list[AnswerColumns] = []
        self._aggregates: list[GroupColumns | WindowColumns] = []

    def process(self, entering: Mapping[str, Flow]) -> None:
        """Runs every node that records reach."""
        self.flows = {name: flow for name, flow in entering.items() if name not in self._stage.nodes}
        for node in self._order:
            if node.name in entering:
                self.flows[node.name] = self._operate(node, entering[node.name])
                continue
            feeding = self._feeding(node)
            if all(flow is None for flow in feeding):
                continue
            match node.operation:
                case TableTableJoin() as join:
                    self.flows[node.name] = self._table_join(node, join).process(*feeding)
                case Answer() as step:
                    space = self._spaces.of([c.type for c in self._nodes[node.inputs[1]].schema.key])
                    given = (
                        Flow.empty(self._nodes[name].schema, space) if flow is None else flow
                        for name, flow in zip(node.inputs, feeding, strict=True)
                    )
                    self.flows[node.name] = self._answer(node, step).process(*given)
                case _ if feeding[0] is not None:
                    self.flows[node.name] = self._operate(node, feeding[0])

    def _feeding(self, node: Node) -> list[Flow | None]:
        """The records that reach each input of the node."""
        looks_up = isinstance(node.operation, StreamTableJoin)
        found: list[Flow | None] = []
        for port, name in enumerate(node.inputs):
            flow = None if looks_up and port else self.flows.get(name)
            found.append(None if flow is None else replace(flow, at=self._routes.reach(flow.at, node.name, port)))
        return found

    def commit(self) -> None:
        """Writes all stores."""
        for table in self._tables.values():
            table.commit()
        for answer in self._answers:
            answer.commit()
        for aggregate in self._aggregates:
            aggregate.commit()

    def _operate(self, node: Node, flow: Flow) -> Flow:
        match node.operation:
            case Aggregate():
                aggregate = self._aggregate(node, node.operation)
                self._aggregates.append(aggregate)
                return aggregate.process(flow)
            case ToStream():
                return replace(flow, old=None, latest=None)
            case _ if node.kind == "table":
                return self._table(node).process(flow)
            case Filter():
                return StreamFilterColumns(self._plan, node, node.operation).process(flow)
            case Map():
                return StreamMapColumns(self._plan, node, node.operation).process(flow)
            case Rekey():
                return RekeyColumns(self._plan, node, node.operation, self.metrics).process(flow)
            case Subscribe() as step:
                return SubscribeColumns(self._plan, node, step, self._give(node), self.metrics).process(flow)
            case StreamTableJoin():
                return self._join(node, node.operation).process(flow)
            case other:
                raise ValueError(f"node '{node.name}': {other.op} cannot run on whole columns")

    def _aggregate(self, node: Node, operation: Aggregate) -> GroupColumns | WindowColumns:
        folding, old = Folding(node, operation), wanted(self._plan, self._stage, node.name)
        state = open_aggregate(self._kv, self._stage, node, folding.numbered)
        if operation.window is None:
            return GroupColumns(node.name, folding, state, self._tables.get(node.name), old, self.metrics)
        store = None if node.store is None else TimestampedStore(self._kv, store_prefix(self._stage, node.name))
        space = self._spaces.of([c.type for c in node.schema.key[:-2]], windowed=True)
        return WindowColumns(node, operation, folding, state, store, space, old, self._give(node), self.metrics)

    def _table(self, node: Node) -> TableColumnsOperator:
        before = self._nodes[node.inputs[0]].schema if node.inputs else node.schema
        predicate = rows = None
        match node.operation:
            case Filter(item):
                predicate = Evaluation([item], [before])
            case ToTable(item) if item is not None:
                predicate = Evaluation([item], [before])
            case Map(items):
                rows = Evaluation(items, [before])
            case _:
                pass
        dedupe = isinstance(node.operation, Filter) and dedupes(self._plan, node)
        return TableColumnsOperator(
            node.name, predicate, isinstance(node.operation, ToTable), rows, self._tables.get(node.name), dedupe,
            *self._asked(node), self.metrics,
        )  # fmt: skip

    def _asked(self, node: Node) -> tuple[bool, bool]:
        """Whether a reader of the table's changes needs the rows before them, and whether they are the newest."""
        return wanted(self._plan, self._stage, node.name), asks_for_latest(self._plan, self._stage, node.name)

    def _table_join(self, node: Node, operation: TableTableJoin) -> TableJoinColumns:
        left, right = (lookup(self._plan, self._tables, name) for name in node.inputs)
        return TableJoinColumns(
            node.name, operation, Pairs(self._plan, node, operation), left, right, self._tables.get(node.name),
            *self._asked(node), self.metrics,
        )  # fmt: skip

    def _answer(self, node: Node, operation: Answer) -> AnswerColumns:
        store = SubscriptionStore(self._kv, store_prefix(self._stage, node.name))
        look_up = lookup(self._plan, self._tables, node.inputs[1])
        step = AnswerColumns(self._plan, node, operation, look_up, store, self._root, self._give(node), self.metrics)
        self._answers.append(step)
        return step

    def _root(self, at: Moments) -> Int64s:
        return self._roots()[self._routes.cause(at)]

    def _give(self, node: Node) -> Give:
        return lambda at, turn: self._routes.given(at, node.name, turn)

    def _join(self, node: Node, operation: StreamTableJoin) -> JoinColumns:
        behind = stored_ancestor(self._plan, node.inputs[1])
        assert behind is not None
        chain: list[Node] = []
        link = self._nodes[node.inputs[1]]
        while link.name != behind.name:
            chain.insert(0, link)
            link = self._nodes[link.inputs[0]]
        return JoinColumns(self._plan, node, operation, chain, self._tables[behind.name], self.metrics)
