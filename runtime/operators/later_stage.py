"""A stage other than 0 at work on one vsc partition: batches in, batches out, all state in a key-value store.

Sort once, encode keys once, run each node once over the whole batch. What comes out depends on the records and their
order only: not on how they were cut into batches and calls, nor on a restart over the same store. It is what the
record-by-record operators of `tests/oracle` give.

Not for routing: the caller partitions each node's records by key (`partition_of`) and carries them to their stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Plan, Schema
from vsc.runtime.metrics import Metrics
from vsc.runtime.operators.collector import collector_paused
from vsc.runtime.operators.columns.failures import Failures
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.keyspace import KeySpaces
from vsc.runtime.operators.columns.moments import Moments, Routes, processing, turns
from vsc.runtime.operators.context import RunOptions, expression_error
from vsc.runtime.operators.layout import hands_out
from vsc.runtime.operators.result import StageResult, drained
from vsc.runtime.operators.run import StageBatch
from vsc.runtime.operators.views.catalog import held_back
from vsc.runtime.records import Batch, Int64s, Order, Origin, processing_order, unified_origins
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.values import arrow_type

__all__ = ["LaterStage"]


class LaterStage:
    """A stage other than 0, for one partition.

    `kv` holds all of its state; nothing else survives a call. `observe` names the nodes whose records the caller wants
    beside those that later stages read. `partition` is the number of the partition: it orders what the end of the input
    brings out of several of them.
    """

    def __init__(
        self,
        plan: Plan,
        stage_id: int,
        kv: OrderedKV,
        options: RunOptions,
        observe: frozenset[str],
        partition: int = 0,
    ) -> None:
        self._plan, self._stage, self._kv, self._partition = plan, plan.stages[stage_id], kv, partition
        self._schemas = {n.name: n.schema for n in plan.nodes}
        self._options = options
        self._depth = self._stage.depth
        self._holding = [n for n in map(plan.node, self._stage.nodes) if n.operation.waits]
        handed_out = hands_out(self._stage, observe)
        reachable = dict.fromkeys([*self._stage.nodes, *(i.node for i in self._stage.inputs)])
        self._handed_out = [name for name in reachable if name in handed_out]
        self._moved = self._stage.moved
        self._routes = Routes(plan, self._stage, handed_out)

    def process(self, inputs: Sequence[tuple[str, Batch]], drain: bool = False) -> StageResult:
        """Processes the records of `inputs` (node, batch) in D12's order.

        `drain`: afterwards everything that waits (for its grace, for its window's end, in a `suppress`) comes out, as
        if the input had ended; what one node lets out goes through the next ones before these are drained. Raises
        ExpressionError where an expression fails and the options do not say that the record is to be dropped.
        """
        present = [
            (name, replace(batch, order=batch.order.deepened(self._depth))) for name, batch in inputs if len(batch)
        ]
        with collector_paused():
            results = [self._processed(present)] if present else []
            if drain:
                results += [self._released(node.name, place) for place, node in enumerate(self._holding)]
        metrics = Metrics()
        found: dict[str, list[Batch]] = {}
        for result in results:
            metrics.merge(result.metrics)
            for name, batch in result.batches:
                found.setdefault(name, []).append(batch)
        return StageResult(tuple((name, Batch.concat(parts)) for name, parts in found.items()), metrics)

    @property
    def held(self) -> int:
        """How many records, windows without final result and suppressed rows wait in the stage."""
        return sum(held_back(self._kv, self._stage, node) for node in self._holding)

    def _processed(self, inputs: Sequence[tuple[str, Batch]]) -> StageResult:
        spaces = KeySpaces()
        flows, permutation = self._entering(inputs, spaces)
        origins, order = _concatenated_order([batch for _, batch in inputs])
        order = order.take(permutation)
        failures = Failures(self._options.on_error, Metrics())
        run = StageBatch(self._plan, self._stage, self._kv, self._routes, spaces, lambda: _roots(order), failures)
        run.process(flows)
        return self._done(run, failures, origins, order)

    def _released(self, name: str, place: int) -> StageResult:
        """Lets out what waits in node `name`, the `place`-th that holds something: each is a cause of its own."""
        failures = Failures(self._options.on_error, Metrics())
        order = Order.empty(1)
        run = StageBatch(self._plan, self._stage, self._kv, self._routes, KeySpaces(), lambda: _roots(order), failures)
        step, waiting = run.waiting(name)
        if not waiting:
            return StageResult((), failures.metrics)
        origins, order = drained(self._stage.id, place, self._partition, [at for at, _ in waiting])
        run.release(name, step, waiting)
        return self._done(run, failures, origins, order)

    def _done(self, run: StageBatch, failures: Failures, origins: tuple[Origin, ...], order: Order) -> StageResult:
        self._check(failures, origins, order)
        batches = self._batches(origins, order, run.flows)
        run.commit()
        return StageResult(tuple(batches), failures.metrics)

    def _check(self, failures: Failures, origins: tuple[Origin, ...], order: Order) -> None:
        if failures.first is not None:
            moment, failure = failures.first
            cause = self._routes.cause_of(moment)
            raise expression_error(failure, origins[int(order.origin[cause])], int(order.offset[cause]))

    def _entering(self, inputs: Sequence[tuple[str, Batch]], spaces: KeySpaces) -> tuple[dict[str, Flow], Int64s]:
        """Each input's records in the order of processing, and that order of all of them."""
        permutation = processing_order([batch for _, batch in inputs])
        arrival = np.empty(len(permutation), dtype=np.int64)
        arrival[permutation] = np.arange(len(permutation))
        parts: dict[str, list[tuple[Int64s, Batch]]] = {}
        start = 0
        for name, batch in inputs:
            parts.setdefault(name, []).append((arrival[start : start + len(batch)], batch))
            start += len(batch)
        return {name: self._flow(name, found, spaces) for name, found in parts.items()}, permutation

    def _flow(self, name: str, parts: Sequence[tuple[Int64s, Batch]], spaces: KeySpaces) -> Flow:
        cause = np.concatenate([cause for cause, _ in parts])
        batch = Batch.concat([batch for _, batch in parts])
        if (cause[1:] < cause[:-1]).any():
            order = np.argsort(cause, kind="stable")
            cause, batch = cause[order], batch.take(order)
        space = spaces.of(self._schemas[name])
        key = space.columns(batch.keys, len(batch))
        at = self._routes.enter(name, cause)
        return Flow(at, key, space, batch.timestamps, batch.present, batch.keys, batch.values)

    def _batches(self, origins: tuple[Origin, ...], order: Order, flows: Mapping[str, Flow]) -> list[tuple[str, Batch]]:
        leaving = [(name, flow, self._routes.leave(flow.at, name)) for name, flow in self._leaving(flows)]
        causes, places = self._places([at for _, _, at in leaving])
        found = []
        for (name, flow, _), cause, place in zip(leaving, causes, places, strict=True):
            if flow.void is not None:
                cause, place, flow = cause[~flow.void], place[~flow.void], flow.select(~flow.void)
            extended = order.take(cause).extended(place, name in self._moved)
            schema = self._schemas[name]
            found.append((name, Batch(schema, origins, extended, flow.time, flow.present, flow.keys, flow.values)))
        nothing = [name for name in self._handed_out if name not in flows]
        return found + [(name, _nothing(self._schemas[name], origins, order.depth)) for name in nothing]

    def _leaving(self, flows: Mapping[str, Flow]) -> list[tuple[str, Flow]]:
        return [(name, flows[name]) for name in self._handed_out if name in flows]

    def _places(self, leaving: Sequence[Moments]) -> tuple[list[Int64s], list[Int64s]]:
        """For records that leave: their causes, and their places, from 1, among all that leaves for the same cause."""
        if not leaving:
            return [], []
        every = Moments.concat(leaving)
        cause = self._routes.cause(every)
        place = turns(cause)
        if len(leaving) > 1:
            order = processing(every)
            place[order] = turns(cause[order])
        ends = np.cumsum([len(at) for at in leaving])[:-1]
        return np.split(cause, ends), np.split(place, ends)


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
