"""The nodes of one stage at work on one batch in columns: each runs once, then each store is written once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from vsc.plan.nodes import (
    Aggregate,
    Answer,
    Explode,
    Filter,
    GroupChanges,
    Map,
    Merge,
    Node,
    Plan,
    Rekey,
    Stage,
    StreamGlobalJoin,
    StreamTableJoin,
    Subscribe,
    Suppress,
    TableTableJoin,
    ToStream,
    ToTable,
)
from vsc.runtime.operators.aggregate.calls import Calls
from vsc.runtime.operators.aggregate.folding import Folding, can_be_folded
from vsc.runtime.operators.aggregate.group_changes import GroupChangesColumns
from vsc.runtime.operators.aggregate.groups import GroupColumns
from vsc.runtime.operators.aggregate.loop import AggregateLoop
from vsc.runtime.operators.aggregate.moving_windows import MovingWindows
from vsc.runtime.operators.aggregate.records.build import travelled
from vsc.runtime.operators.aggregate.session_windows import SessionColumns
from vsc.runtime.operators.aggregate.sliding_windows import SlidingColumns
from vsc.runtime.operators.aggregate.state import open_aggregate
from vsc.runtime.operators.aggregate.table_groups import TableGroupColumns
from vsc.runtime.operators.aggregate.window_results import WindowResults
from vsc.runtime.operators.aggregate.windows import WindowColumns
from vsc.runtime.operators.columns.evaluation import Evaluation
from vsc.runtime.operators.columns.failures import Failures
from vsc.runtime.operators.columns.flow import Flow, NotColumnar
from vsc.runtime.operators.columns.keyspace import KeySpaces
from vsc.runtime.operators.columns.loop import TableLoop
from vsc.runtime.operators.columns.moments import Give, Moments, Routes
from vsc.runtime.operators.foreign_key_join.answer import AnswerColumns
from vsc.runtime.operators.foreign_key_join.subscribe import SubscribeColumns
from vsc.runtime.operators.grace import GraceColumns
from vsc.runtime.operators.old_values import asks_for_latest, dedupes, wanted
from vsc.runtime.operators.operators import (
    ExplodeColumns,
    JoinColumns,
    RekeyColumns,
    StreamFilterColumns,
    StreamMapColumns,
    TableColumnsOperator,
)
from vsc.runtime.operators.places import value_order
from vsc.runtime.operators.stores import open_buffer, store_prefix
from vsc.runtime.operators.suppress.bounded import BoundedSuppress
from vsc.runtime.operators.suppress.unbounded import SuppressColumns
from vsc.runtime.operators.table_table_join import TableJoinColumns
from vsc.runtime.operators.tables.lookups import Lookup, Pairs, lookup
from vsc.runtime.operators.tables.store import open_columns
from vsc.runtime.records import Int64s
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.subscriptions import SubscriptionStore
from vsc.runtime.state.suppressed import Suppressed

__all__ = ["StageBatch"]

MOVING: dict[str, type[MovingWindows]] = {"session": SessionColumns, "sliding": SlidingColumns}
"""The windows whose bounds depend on their records."""


class Step(Protocol):
    """An operator that keeps something beside a table's rows, in one batch."""

    def process(self, flow: Flow) -> Flow:
        """What the records of its input give."""

    def commit(self) -> None:
        """Writes what has changed."""


class Waiting(Step, Protocol):
    """An operator in which something waits for stream time to go on."""

    def waiting(self) -> list[tuple[int, Any]]:
        """Takes out all that waits, in the order in which it would come out: when, ascending, and what it is."""

    def release(self, waiting: list[tuple[int, Any]], at: Moments) -> Flow:
        """Lets it out, each at its moment."""


class StageBatch:
    """One batch: the flows of the nodes, and the stores' part in it.

    `spaces` hold the batch's keys. `roots` gives for each cause the number of the source record that is behind it.
    """

    def __init__(
        self,
        plan: Plan,
        stage: Stage,
        kv: OrderedKV,
        routes: Routes,
        spaces: KeySpaces,
        roots: Callable[[], Int64s],
        failures: Failures,
    ) -> None:
        self._plan, self._stage, self._kv = plan, stage, kv
        self._routes, self._spaces, self._roots, self._failures = routes, spaces, roots, failures
        self._nodes = {n.name: n for n in plan.nodes}
        self._order = [self._nodes[name] for name in stage.nodes]
        self.flows: dict[str, Flow] = {}
        stored = [n for n in self._order if n.store is not None]
        self._tables = {n.name: open_columns(kv, stage, n, spaces.of(n.schema)) for n in stored}
        self._steps: list[Step | AnswerColumns] = []
        self._suppressed: dict[str, SuppressColumns | BoundedSuppress] = {}

    def process(self, entering: Mapping[str, Flow]) -> None:
        """Runs every node that records reach."""
        self.flows.update((name, flow) for name, flow in entering.items() if name not in self._stage.nodes)
        for node in self._order:
            if node.name in self.flows:
                continue
            if node.name in entering:
                self.flows[node.name] = self._operate(node, entering[node.name])
                continue
            feeding = self._feeding(node)
            if any(flow is not None for flow in feeding):
                self.flows[node.name] = self._fed(node, feeding)

    def waiting(self, name: str) -> tuple[Waiting, list[tuple[int, Any]]]:
        """Takes out what waits in node `name`."""
        step = self._waiting(self._nodes[name])
        return step, step.waiting()

    def release(self, name: str, step: Waiting, waiting: list[tuple[int, Any]]) -> None:
        """Lets out what waited in node `name`, each as a cause of its own, and runs what it reaches."""
        cause = np.arange(len(waiting), dtype=np.int64)
        self.flows[name] = step.release(waiting, self._routes.released(cause))
        self.process({})

    def commit(self) -> None:
        """Writes all stores."""
        for table in self._tables.values():
            table.commit()
        for step in self._steps:
            step.commit()

    def _feeding(self, node: Node) -> list[Flow | None]:
        """The records that reach each input of the node."""
        looks_up = isinstance(node.operation, StreamTableJoin | StreamGlobalJoin)
        found: list[Flow | None] = []
        for port, name in enumerate(node.inputs):
            flow = None if looks_up and port else self.flows.get(name)
            found.append(None if flow is None else replace(flow, at=self._routes.reach(flow.at, node.name, port)))
        return found

    def _fed(self, node: Node, feeding: list[Flow | None]) -> Flow:
        """What the records that reach the node's inputs give; there are some."""
        match node.operation:
            case TableTableJoin() as join:
                return self._opened(node, self._table_join(node, join).process(*feeding))
            case Merge():
                return self._opened(node, self._merged(node, feeding))
            case Answer() as step:
                space = self._spaces.of(self._nodes[node.inputs[1]].schema)
                given = (
                    Flow.empty(self._nodes[name].schema, space) if flow is None else flow
                    for name, flow in zip(node.inputs, feeding, strict=True)
                )
                return self._answer(node, step).process(*given)
            case _:
                flow = feeding[0]
                assert flow is not None
                return self._operate(node, flow)

    def _opened(self, node: Node, flow: Flow) -> Flow:
        """The flow, with moments as deep on all ways to the node."""
        if not self._routes.opens(node.name):
            return flow
        return replace(flow, at=self._routes.given(flow.at, node.name, np.zeros(len(flow), dtype=np.int64)))

    def _merged(self, node: Node, feeding: list[Flow | None]) -> Flow:
        parts = []
        for name, flow in zip(node.inputs, feeding, strict=True):
            if flow is not None:
                order = value_order(self._nodes[name].schema, node.schema)
                parts.append(replace(flow, values=tuple(flow.values[i] for i in order)))
        return Flow.merged(parts)

    def _operate(self, node: Node, flow: Flow) -> Flow:
        match node.operation:
            case Aggregate() as aggregate:
                return self._aggregate(node, aggregate, flow)
            case ToStream():
                return replace(flow, old=None, latest=None)
            case Suppress():
                return self._suppress(node).process(flow)
            case _ if node.kind == "table":
                return self._table(node).process(flow)
            case Filter():
                return StreamFilterColumns(self._plan, node, node.operation, self._failures).process(flow)
            case Map():
                return StreamMapColumns(self._plan, node, node.operation, self._failures).process(flow)
            case Rekey():
                return RekeyColumns(self._plan, node, node.operation, self._failures).process(flow)
            case Explode() as operation:
                return ExplodeColumns(self._plan, node, operation, self._give(node), self._failures).process(flow)
            case Subscribe() as step:
                return SubscribeColumns(self._plan, node, step, self._give(node), self._failures).process(flow)
            case GroupChanges() as step:
                return GroupChangesColumns(self._plan, node, step, self._give(node), self._failures).process(flow)
            case StreamTableJoin(grace=int()):
                return self._grace(node).process(flow)
            case StreamTableJoin() | StreamGlobalJoin() as join:
                return self._join(node, join).process(flow)
            case other:
                raise ValueError(f"node '{node.name}': {other.op} cannot run on whole columns")

    def _aggregate(self, node: Node, operation: Aggregate, flow: Flow) -> Flow:
        if can_be_folded(node, operation):
            attempt = self._failures.attempt()
            step: Step = self._folded(node, operation, attempt)
            try:
                found = step.process(flow)
            except NotColumnar:
                pass  # a result of some record cannot be computed, so the record is no part of its group
            else:
                self._failures.take(attempt)
                self._steps.append(step)
                return found
        moving = operation.window is not None and operation.window.kind in MOVING
        loop: Step = self._moving(node, operation) if moving else self._aggregate_loop(node)
        self._steps.append(loop)
        return loop.process(flow)

    def _moving(self, node: Node, operation: Aggregate) -> MovingWindows:
        assert operation.window is not None
        kind, calls = MOVING[operation.window.kind], Calls(node, operation)
        old, space = wanted(self._plan, self._stage, node.name), self._spaces.of(node.schema)
        state = open_aggregate(self._kv, self._stage, node, calls.numbered)
        results = WindowResults(node, space, old, self._give(node), self._loop(node))
        return kind(node, operation, calls, state, results, self._failures)

    def _aggregate_loop(self, node: Node) -> AggregateLoop:
        old = wanted(self._plan, self._stage, node.name)
        return AggregateLoop(self._plan, self._stage, node, self._kv, self._loop(node), old)

    def _loop(self, node: Node) -> TableLoop:
        give = self._give(node) if self._routes.opens(node.name) else None
        return TableLoop(
            node, self._nodes[node.inputs[0]].schema, self._spaces.of(node.schema), self._tables.get(node.name),
            *self._asked(node), give, self._failures,
        )  # fmt: skip

    def _suppress(self, node: Node) -> SuppressColumns | BoundedSuppress:
        if node.name not in self._suppressed:
            operation, prefix = node.operation, store_prefix(self._stage, node.name) + b"s"
            assert isinstance(operation, Suppress)
            if operation.max_records is None and operation.max_bytes is None:
                self._suppressed[node.name] = SuppressColumns(
                    node, Suppressed(self._kv, prefix), self._spaces.of(node.schema), self._tables.get(node.name),
                    *self._asked(node), self._give(node), self._failures,
                )  # fmt: skip
            else:
                self._suppressed[node.name] = BoundedSuppress(
                    node, self._nodes[node.inputs[0]].schema, self._kv, prefix, lambda: self._loop(node),
                    wanted(self._plan, self._stage, node.name), self._give(node),
                )  # fmt: skip
        return self._suppressed[node.name]

    def _grace(self, node: Node) -> GraceColumns:
        operation = node.operation
        assert isinstance(operation, StreamTableJoin) and operation.grace is not None
        stream = self._nodes[node.inputs[0]].schema
        return GraceColumns(
            node.name, operation.grace, stream, open_buffer(self._kv, self._stage, node.name),
            self._spaces.of(stream), self._join(node, operation), self._give(node), self._failures,
        )  # fmt: skip

    def _waiting(self, node: Node) -> Waiting:
        match node.operation:
            case Suppress():
                return self._suppress(node)
            case StreamTableJoin():
                return self._grace(node)
            case _:
                return self._aggregate_loop(node)

    def _folded(self, node: Node, operation: Aggregate, failures: Failures) -> Step:
        folding, old = Folding(node, operation), wanted(self._plan, self._stage, node.name)
        state = open_aggregate(self._kv, self._stage, node, folding.numbered)
        store = self._tables.get(node.name)
        if operation.over == "table":
            return TableGroupColumns(
                node.name, folding, travelled(self._plan, node, operation), state, store, *self._asked(node), failures
            )
        if operation.window is None:
            return GroupColumns(node.name, folding, state, store, old, failures)
        space = self._spaces.of(node.schema)
        return WindowColumns(node, operation, folding, state, store, space, old, self._give(node), failures)

    def _table(self, node: Node) -> TableColumnsOperator:
        before = self._nodes[node.inputs[0]].schema if node.inputs else node.schema
        predicate = rows = None
        match node.operation:
            case Filter(item):
                predicate = Evaluation(node.name, [item], [before])
            case ToTable(item) if item is not None:
                predicate = Evaluation(node.name, [item], [before])
            case Map(items):
                rows = Evaluation(node.name, items, [before])
            case _:
                pass
        dedupe = isinstance(node.operation, Filter) and dedupes(self._plan, node)
        return TableColumnsOperator(
            node.name, predicate, isinstance(node.operation, ToTable), rows, self._tables.get(node.name), dedupe,
            *self._asked(node), self._failures,
        )  # fmt: skip

    def _asked(self, node: Node) -> tuple[bool, bool]:
        """Whether a reader of the table's changes needs the rows before them, and whether they are the newest."""
        return wanted(self._plan, self._stage, node.name), asks_for_latest(self._plan, self._stage, node.name)

    def _table_join(self, node: Node, operation: TableTableJoin) -> TableJoinColumns:
        left, right = (self._lookup(name) for name in node.inputs)
        return TableJoinColumns(
            node.name, operation, Pairs(self._plan, node, operation), left, right, self._tables.get(node.name),
            *self._asked(node), self._failures,
        )  # fmt: skip

    def _answer(self, node: Node, operation: Answer) -> AnswerColumns:
        store = SubscriptionStore(self._kv, store_prefix(self._stage, node.name))
        look_up = self._lookup(node.inputs[1])
        step = AnswerColumns(self._plan, node, operation, look_up, store, self._root, self._give(node), self._failures)
        self._steps.append(step)
        return step

    def _lookup(self, name: str, as_of: bool = False) -> Lookup:
        return lookup(self._plan, self._tables, lambda node: self._suppress(node).lookup, name, as_of)

    def _root(self, at: Moments) -> Int64s:
        return self._roots()[self._routes.cause(at)]

    def _give(self, node: Node) -> Give:
        return lambda at, turn: self._routes.given(at, node.name, turn)

    def _join(self, node: Node, operation: StreamTableJoin | StreamGlobalJoin) -> JoinColumns:
        table = node.inputs[1]
        look_up = self._lookup(table, isinstance(operation, StreamTableJoin) and operation.as_of)
        space = self._spaces.of(self._nodes[table].schema)
        return JoinColumns(self._plan, node, operation, look_up, space, self._failures)
