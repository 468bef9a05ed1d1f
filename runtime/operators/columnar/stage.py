"""One stage at work on whole columns: sort once, encode keys once, run each node once, write each store once.

Guarantees: results, their order, metrics and state are those of the record-by-record engine, for every cut of the
records into batches. State is written after everything has been computed; a batch on which an expression fails is
given back untouched (`NotColumnar`), for the other engine to deal with record by record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Plan, Schema
from vsc.runtime.metrics import Metrics
from vsc.runtime.operators.columnar.flow import Flow, NotColumnar, turns
from vsc.runtime.operators.columnar.run import StageRun
from vsc.runtime.operators.columnar.support import behind_windows, hand_out_order, supports
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.layout import hands_out, moved
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
        windows = behind_windows(plan, self._stage)
        self._leaving = {
            i: [
                tuple(block)
                for _, block in groupby(
                    hand_out_order(plan, self._stage, i, handed_out), key=lambda name: windows.get(name, name)
                )
            ]
            for i in self._inputs
        }
        self._codec = KeyCodec([c.type for c in self._nodes[self._inputs[0]].schema.key])

    def process(self, inputs: Sequence[tuple[str, Batch]]) -> StageResult:
        """Processes the records of `inputs` (node, batch) in D12's order.

        Raises NotColumnar, before anything is written, where an expression fails on a record.
        """
        present = [(name, batch) for name, batch in inputs if len(batch)]
        if not present:
            return StageResult((), Metrics())
        keys, flows, permutation = _entering(present, self._codec)
        origins, order = _concatenated_order([batch for _, batch in present])
        order = order.take(permutation)
        run = StageRun(self._plan, self._stage, self._kv, keys, lambda: _roots(order))
        run.process(flows)
        entered = np.repeat([self._inputs.index(name) for name, _ in present], [len(batch) for _, batch in present])
        batches = self._batches(entered[permutation], origins, order, run.flows)
        run.commit()
        return StageResult(tuple(batches), run.metrics)

    def _batches(
        self, entered: Int64s, origins: tuple[Origin, ...], order: Order, flows: Mapping[str, Flow]
    ) -> list[tuple[str, Batch]]:
        counters = _counters(self._inputs, self._leaving, entered, flows)
        found = []
        for name in self._handed_out:
            flow = flows.get(name)
            if flow is None:
                found.append((name, _nothing(self._nodes[name].schema, origins, order.depth)))
                continue
            places = counters[name]
            if flow.void is not None:
                places, flow = places[~flow.void], flow.select(~flow.void)
            extended = order.take(flow.cause).extended(places, name in self._moved)
            schema = self._nodes[name].schema
            found.append((name, Batch(schema, origins, extended, flow.time, flow.present, flow.keys, flow.values)))
        return found


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
    inputs: Sequence[str], leaving: Mapping[str, Sequence[tuple[str, ...]]], entered: Int64s, flows: Mapping[str, Flow]
) -> dict[str, Int64s]:
    """For the records of each node their places, from 1, among all that is handed out for the same cause.

    `entered` tells by which of the `inputs` each cause came, `leaving` in which order nodes hand out what that gives.
    Nodes behind the same windows stand together: each record that leaves the windows goes through all of them before
    the next one does.
    """
    given = np.zeros(len(entered), dtype=np.int64)
    found = {name: np.zeros(len(flow), dtype=np.int64) for name, flow in flows.items()}
    for number, start in enumerate(inputs):
        for block in leaving[start]:
            names = [name for name in block if name in flows]
            if not names:
                continue
            mine = [entered[flows[name].cause] == number for name in names]
            cause = np.concatenate([flows[name].cause[own] for name, own in zip(names, mine, strict=True)])
            places = given[cause] + _places(cause, [flows[name] for name in names])
            given += np.bincount(cause, minlength=len(given))
            begin = 0
            for name, own in zip(names, mine, strict=True):
                end = begin + int(np.count_nonzero(own))
                found[name][own] = places[begin:end]
                begin = end
    return found


def _places(cause: Int64s, flows: Sequence[Flow]) -> Int64s:
    """The places of the records of a node, or of several nodes behind the same windows, among those of their cause."""
    if len(flows) == 1:
        return turns(cause)
    turn = np.concatenate([flow.turn for flow in flows if flow.turn is not None])
    order = np.lexsort((turn, cause))  # which keeps the order of the nodes
    places = np.empty(len(cause), dtype=np.int64)
    places[order] = turns(cause[order])
    return places


def _roots(order: Order) -> Int64s:
    """For each cause, in the order of processing, the number of the source record that is behind it, ascending."""
    found = np.zeros(len(order), dtype=np.int64)
    for level in (order.time, order.origin, order.offset):
        found[1:] |= level[1:] != level[:-1]
    return np.cumsum(found)


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
