"""Builds the operators of one stage from its plan and joins them into a graph of plain calls.

Guarantees Kafka's order: a record is processed depth-first, through the consumers of its node in the order in which
these stand in the stage, each to its end; it is handed out at the place of its first consumer outside of the stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vsc.plan import nodes as plan_nodes
from vsc.plan.nodes import Filter, Map, Materialize, Node, Plan, Rekey, Source, Stage, StreamTableJoin, ToTable
from vsc.runtime.operators import (
    evaluate,
    filter,
    getters,
    grace,
    layout,
    map,
    materialize,
    rekey,
    source_table,
    stream_table_join,
    to_table,
)
from vsc.runtime.operators.collect import Collector
from vsc.runtime.operators.context import Context
from vsc.runtime.operators.put import ChangeConsumer, RecordConsumer, TablePut
from vsc.runtime.operators.stores import TableStore, open_buffer, open_table
from vsc.runtime.state.kv import OrderedKV

__all__ = ["StageGraph"]

Consumer = Callable[..., None]


class StageGraph:
    """The operators of a stage over its key-value store.

    `entries` takes the records of each input; `collectors` hold what is handed out, by node; `tables` are the stores
    and `waiting` the grace buffers of the stage, by node, in the stage's order.
    """

    def __init__(self, plan: Plan, stage: Stage, kv: OrderedKV, context: Context, handed_out: frozenset[str]) -> None:
        self._plan, self._stage, self._context = plan, stage, context
        self._nodes = {n.name: n for n in plan.nodes}
        own = [self._nodes[name] for name in stage.nodes]
        self._place = {n.name: i for i, n in enumerate(plan.nodes)}
        self._kv = kv
        self.tables: dict[str, TableStore] = {n.name: open_table(kv, stage, n) for n in own if n.store is not None}
        self.waiting: dict[str, grace.GraceBuffer] = {}
        self._inputs = [i.node for i in stage.inputs]
        reachable = [*stage.nodes, *(i for i in self._inputs if i not in stage.nodes)]
        self.collectors = {n: Collector(self._nodes[n].schema, context) for n in reachable if n in handed_out}
        self._built: dict[str, Consumer] = {}
        for name in reversed(stage.nodes):
            self._built[name] = self._operator(self._nodes[name])
        self.waiting = {name: self.waiting[name] for name in stage.nodes if name in self.waiting}
        self.entries: dict[str, RecordConsumer] = {name: self._entry(name) for name in self._inputs}

    # --------------------------------------------------------------------------------------- how nodes are joined

    def _entry(self, name: str) -> RecordConsumer:
        if name in self._stage.nodes:
            return self._built[name]
        forward = self._forward(name)
        if self._nodes[name].kind == "stream":
            return forward

        def change(kb: bytes, key: evaluate.Row, value: evaluate.Row | None, time: int) -> None:
            forward(kb, key, value, None, True, time)  # what the table held before is not known here (D10)

        return change

    def _forward(self, name: str) -> Consumer:
        targets = [(self._place[c.name], self._built[c.name]) for c in layout.consumers(self._plan, self._stage, name)]
        collector = self.collectors.get(name)
        if collector is not None:
            leaves = layout.outside(self._plan, self._stage, name)
            take = collector.stream if self._nodes[name].kind == "stream" else collector.table
            targets.append((leaves, take))
        return _fan_out([target for _, target in sorted(targets, key=lambda t: t[0])])

    # ------------------------------------------------------------------------------------------------ one node each

    def _operator(self, node: Node) -> Consumer:
        operation, forward = node.operation, self._forward(node.name)
        if node.kind == "table":
            return self._table_operator(node, forward)
        match operation:
            case Filter():
                before = self._schema(node)
                holds = evaluate.condition(node.name, operation.predicate, [before])
                return filter.StreamFilter(holds, len(before.value), self._context, forward).process
            case Map():
                values = evaluate.items(node.name, operation.items, [self._schema(node)])
                return map.StreamMap(values, self._context, forward).process
            case Rekey():
                before = self._schema(node)
                key = evaluate.items(node.name, operation.items, [before])
                kept = rekey.kept_columns(before, node.schema)
                return rekey.Rekey(node.name, key, kept, self._context, forward).process
            case StreamTableJoin():
                return self._join(node, operation, forward)
            case _:
                raise ValueError(f"node '{node.name}': {operation.op} of a stream cannot run in a stage with state")

    def _table_operator(self, node: Node, forward: ChangeConsumer) -> Consumer:
        operation, old = node.operation, layout.old_wanted(self._plan, self._stage, node.name)
        store = self.tables.get(node.name)
        put = None if store is None else TablePut(node.name, store, self._context, forward)
        match operation:
            case Source():
                return source_table.SourceTable(put, old, forward).process
            case ToTable():
                table = source_table.SourceTable(put, old, forward)
                deleted = operation.delete_when
                holds = None if deleted is None else evaluate.condition(node.name, deleted, [self._schema(node)])
                return to_table.ToTable(table, holds, self._context).process
            case Filter():
                holds = evaluate.condition(node.name, operation.predicate, [self._schema(node)])
                dedupe = layout.dedupes(self._plan, node)
                return filter.TableFilter(holds, dedupe, old, put, self._context, forward).process
            case Map():
                values = evaluate.items(node.name, operation.items, [self._schema(node)])
                return map.TableMap(values, old, put, self._context, forward).process
            case Materialize():
                if put is None:
                    raise ValueError(f"node '{node.name}': materialize without a store")
                return materialize.Materialize(put, old).process
            case _:
                raise ValueError(f"node '{node.name}': {operation.op} does not make a table")

    def _join(self, node: Node, operation: StreamTableJoin, forward: RecordConsumer) -> RecordConsumer:
        stream, table = (self._nodes[name] for name in node.inputs)
        values = evaluate.items(node.name, operation.items, [stream.schema, table.schema])
        behind = layout.stored_ancestor(self._plan, table.name)
        if behind is None or behind.name not in self.tables:
            raise ValueError(f"node '{node.name}': table '{table.name}' has no store in this stage")
        join = stream_table_join.StreamTableJoin(
            node.name, operation.left, operation.as_of, self.getter(table.name), self.tables[behind.name],
            values, self._context, forward,
        )  # fmt: skip
        if operation.grace is None:
            return join.process
        buffer = open_buffer(self._kv, self._stage, node.name)
        waiting = grace.GraceBuffer(node.name, operation.grace, stream.schema, buffer, join, self._context)
        self.waiting[node.name] = waiting
        return waiting.process

    def getter(self, name: str) -> getters.Getter:
        """The look-up into table `name`, by its own store or the one behind it."""
        store = self.tables.get(name)
        if store is not None:
            lookup = store.lookup
            return lambda kb, key, as_of: lookup(kb, as_of)
        node = self._nodes[name]
        parent = self.getter(node.inputs[0])
        match node.operation:
            case Filter(predicate):
                return getters.filtered(parent, evaluate.condition(name, predicate, [self._schema(node)]))
            case Map(computed):
                return getters.mapped(parent, evaluate.items(name, computed, [self._schema(node)]))
            case _:
                raise ValueError(f"table '{name}' has no store to look into")

    def _schema(self, node: Node) -> plan_nodes.Schema:
        return self._nodes[node.inputs[0]].schema


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
