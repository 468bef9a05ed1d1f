"""One stage at work on whole columns: sort once, encode keys once, run each node once, write each store once.

Guarantees: results, their order, metrics and state are those of the record-by-record engine, for every cut of the
records into batches. State is written after everything has been computed; a batch on which an expression fails is
given back untouched (`NotColumnar`), for the other engine to deal with record by record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Filter, Map, Node, Plan, Rekey, Schema, StreamTableJoin, TableTableJoin, ToTable
from vsc.runtime.metrics import Metrics
from vsc.runtime.operators.columnar.evaluation import Evaluation
from vsc.runtime.operators.columnar.flow import Flow, NotColumnar
from vsc.runtime.operators.columnar.lookups import Pairs, lookup
from vsc.runtime.operators.columnar.operators import (
    JoinColumns,
    RekeyColumns,
    StreamFilterColumns,
    StreamMapColumns,
    TableColumnsOperator,
)
from vsc.runtime.operators.columnar.support import asks_for_latest, hand_out_order, supports
from vsc.runtime.operators.columnar.table_table_join import TableJoinColumns
from vsc.runtime.operators.columnar.tables import TableColumns, open_columns
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.layout import hands_out, moved, stored_ancestor
from vsc.runtime.operators.old_values import dedupes, wanted
from vsc.runtime.operators.result import StageResult
from vsc.runtime.records import Batch, Int64s, Order, Origin, processing_order, unified_origins
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.values import arrow_type

__all__ = ["ColumnarStage", "NotColumnar", "supports"]


class ColumnarStage:
    """A stage other than 0, for one partition; only for stages that `supports` names.

    Keeps nothing between calls: stores are opened over `kv` in each of them. `observe` names the nodes whose records
    the caller wants beside those that later stages read. `options` are the other engine's concern: here nothing fails.
    """

    def __init__(self, plan: Plan, stage_id: int, kv: OrderedKV, options: RunOptions, observe: frozenset[str]) -> None:
        self._plan, self._stage, self._kv = plan, plan.stages[stage_id], kv
        self._nodes = {n.name: n for n in plan.nodes}
        self._inputs = [i.node for i in self._stage.inputs]
        handed_out = hands_out(plan, self._stage, observe)
        reachable = [*self._stage.nodes, *(i for i in self._inputs if i not in self._stage.nodes)]
        self._handed_out = [name for name in reachable if name in handed_out]
        self._moved = moved(plan, self._stage)
        self._leaving = {i: hand_out_order(plan, self._stage, i, handed_out) for i in self._inputs}
        self._codec = KeyCodec([c.type for c in self._nodes[self._inputs[0]].schema.key])

    def process(self, inputs: Sequence[tuple[str, Batch]]) -> StageResult:
        """Processes the records of `inputs` (node, batch) in D12's order.

        Raises NotColumnar, before anything is written, where an expression fails on a record.
        """
        present = [(name, batch) for name, batch in inputs if len(batch)]
        if not present:
            return StageResult((), Metrics())
        run = _Run(self._plan, self._stage.id, self._kv, self._nodes)
        keys, flows, permutation = _entering(present, self._codec)
        run.process(flows, keys)
        batches = self._batches(present, permutation, run.flows)
        run.commit()
        return StageResult(tuple(batches), run.metrics)

    def _batches(
        self, inputs: Sequence[tuple[str, Batch]], permutation: Int64s, flows: dict[str, Flow]
    ) -> list[tuple[str, Batch]]:
        origins, order = _concatenated_order([batch for _, batch in inputs])
        entered = np.repeat(
            np.array([self._inputs.index(name) for name, _ in inputs]), [len(batch) for _, batch in inputs]
        )[permutation]
        counters = _counters(self._inputs, self._leaving, entered, flows)
        found = []
        for name in self._handed_out:
            flow = flows.get(name)
            if flow is None:
                found.append((name, _nothing(self._nodes[name].schema, origins, order.depth)))
                continue
            extended = order.take(permutation[flow.cause]).extended(counters[name], name in self._moved)
            schema = self._nodes[name].schema
            found.append((name, Batch(schema, origins, extended, flow.time, flow.present, flow.keys, flow.values)))
        return found


class _Run:
    """One batch: the flows of the nodes, the stores' part in it, and what was counted."""

    def __init__(self, plan: Plan, stage_id: int, kv: OrderedKV, nodes: dict[str, Node]) -> None:
        self._plan, self._stage, self._kv, self._nodes = plan, plan.stages[stage_id], kv, nodes
        self.metrics = Metrics()
        self.flows: dict[str, Flow] = {}
        self._tables: dict[str, TableColumns] = {}

    def process(self, entering: dict[str, Flow], keys: Sequence[bytes]) -> None:
        """Runs every node that records reach."""
        nodes = [self._nodes[name] for name in self._stage.nodes]
        self._tables = {n.name: open_columns(self._kv, self._stage, n, keys) for n in nodes if n.store is not None}
        self.flows = {name: flow for name, flow in entering.items() if name not in self._stage.nodes}
        for node in nodes:
            if node.name in entering:
                self.flows[node.name] = self._operate(node, entering[node.name])
                continue
            feeding = [self.flows.get(name) for name in node.inputs]
            if isinstance(node.operation, TableTableJoin):
                if any(flow is not None for flow in feeding):
                    self.flows[node.name] = self._table_join(node, node.operation).process(*feeding)
            elif feeding and feeding[0] is not None:
                self.flows[node.name] = self._operate(node, feeding[0])

    def commit(self) -> None:
        """Writes all stores."""
        for table in self._tables.values():
            table.commit()

    def _operate(self, node: Node, flow: Flow) -> Flow:
        if node.kind == "table":
            return self._table(node).process(flow)
        match node.operation:
            case Filter():
                return StreamFilterColumns(self._plan, node, node.operation).process(flow)
            case Map():
                return StreamMapColumns(self._plan, node, node.operation).process(flow)
            case Rekey():
                return RekeyColumns(self._plan, node, node.operation, self.metrics).process(flow)
            case StreamTableJoin():
                return self._join(node, node.operation).process(flow)
            case other:
                raise ValueError(f"node '{node.name}': {other.op} cannot run on whole columns")

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

    def _join(self, node: Node, operation: StreamTableJoin) -> JoinColumns:
        behind = stored_ancestor(self._plan, node.inputs[1])
        assert behind is not None
        chain: list[Node] = []
        link = self._nodes[node.inputs[1]]
        while link.name != behind.name:
            chain.insert(0, link)
            link = self._nodes[link.inputs[0]]
        return JoinColumns(self._plan, node, operation, chain, self._tables[behind.name], self.metrics)


def _entering(inputs: Sequence[tuple[str, Batch]], codec: KeyCodec) -> tuple[list[bytes], dict[str, Flow], Int64s]:
    """The batch's encoded keys, each input's records in the order of processing, and that order."""
    batches = [batch for _, batch in inputs]
    permutation = processing_order(batches)
    arrival = np.empty(len(permutation), dtype=np.int64)
    arrival[permutation] = np.arange(len(permutation))
    parts = zip(*(batch.keys for batch in batches), strict=True)
    keys, numbers = codec.encode_columns([pa.concat_arrays(list(part)) for part in parts])
    places: dict[str, list[tuple[int, Batch]]] = {}
    start = 0
    for name, batch in inputs:
        places.setdefault(name, []).append((start, batch))
        start += len(batch)
    return keys, {name: _flow(found, arrival, numbers) for name, found in places.items()}, permutation


def _flow(parts: Sequence[tuple[int, Batch]], arrival: Int64s, numbers: Int64s) -> Flow:
    rows = np.concatenate([np.arange(start, start + len(batch)) for start, batch in parts])
    cause = arrival[rows]
    batch = Batch.concat([batch for _, batch in parts])
    if (cause[1:] < cause[:-1]).any():
        order = np.argsort(cause, kind="stable")
        cause, rows, batch = cause[order], rows[order], batch.take(order)
    return Flow(cause, numbers[rows], batch.timestamps, batch.present, batch.keys, batch.values)


def _counters(
    inputs: Sequence[str], leaving: Mapping[str, Sequence[str]], entered: Int64s, flows: Mapping[str, Flow]
) -> dict[str, Int64s]:
    """For the records of each node their places, from 1, among all that is handed out for the same cause.

    `entered` tells by which of the `inputs` each cause came, `leaving` in which order nodes hand out what that gives.
    """
    given = np.zeros(len(entered), dtype=np.int64)
    found = {name: np.zeros(len(flow), dtype=np.int64) for name, flow in flows.items()}
    for number, start in enumerate(inputs):
        for name in leaving[start]:
            if name in flows:
                cause = flows[name].cause
                mine = entered[cause] == number
                given[cause[mine]] += 1
                found[name][mine] = given[cause[mine]]
    return found


def _concatenated_order(batches: Sequence[Batch]) -> tuple[tuple[Origin, ...], Order]:
    origins, indices = unified_origins(batches)
    depth = max(batch.order.depth for batch in batches)
    return origins, Order(
        np.concatenate([batch.order.time for batch in batches]),
        np.concatenate(indices),
        np.concatenate([batch.order.offset for batch in batches]),
        np.concatenate([batch.order.padded(depth) for batch in batches]),
    )


def _nothing(schema: Schema, origins: tuple[Origin, ...], depth: int) -> Batch:
    none = np.zeros(0, dtype=np.int64)
    keys = tuple(pa.array([], arrow_type(c.type)) for c in schema.key)
    values = tuple(pa.array([], arrow_type(c.type)) for c in schema.value)
    return Batch(schema, origins, Order.empty(depth + 1), none, none.astype(np.bool_), keys, values)
