"""A stage other than 0 at work on one vsc partition: batches in, batches out, all state in a key-value store.

Sort once, encode keys once, run each node once over the whole batch. What comes out depends on the records and their
order only: not on how they were cut into batches and calls, nor on a restart over the same store. It is what the
record-by-record operators of `tests/oracle` give.

Not for routing: the caller partitions each node's records by key (`partition_of`) and carries them to their stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vsc.plan.nodes import Plan
from vsc.runtime.metrics import Metrics
from vsc.runtime.operators.collector import collector_paused
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.keyspace import KeySpaces
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.result import StageResult
from vsc.runtime.operators.stage_nodes import StageNodes
from vsc.runtime.operators.views.catalog import held_back
from vsc.runtime.records import Batch, Int64s, orders_together, processing_order
from vsc.runtime.state.kv import OrderedKV

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
        self._holding = [n for n in map(plan.node, self._stage.nodes) if n.operation.waits]
        self._nodes = StageNodes(plan, self._stage, kv, options.on_error, observe)

    def process(self, inputs: Sequence[tuple[str, Batch]], drain: bool = False) -> StageResult:
        """Processes the records of `inputs` (node, batch) in D12's order.

        `drain`: afterwards everything that waits (for its grace, for its window's end, in a `suppress`) comes out, as
        if the input had ended; what one node lets out goes through the next ones before these are drained. Raises
        ExpressionError where an expression fails and the options do not say that the record is to be dropped.
        """
        present = [
            (name, replace(batch, order=batch.order.deepened(self._stage.depth)))
            for name, batch in inputs
            if len(batch)
        ]
        with collector_paused():
            results = [self._processed(present)] if present else []
            if drain:
                held = enumerate(self._holding)
                results += [self._nodes.release(node.name, place, self._partition) for place, node in held]
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
        return sum(held_back(self._plan, self._stage, node, self._kv) for node in self._holding)

    def _processed(self, inputs: Sequence[tuple[str, Batch]]) -> StageResult:
        spaces = KeySpaces()
        flows, permutation = self._entering(inputs, spaces)
        origins, order = orders_together([batch for _, batch in inputs])
        return self._nodes.process(flows, spaces, origins, order.take(permutation))

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
        at = self._nodes.routes.enter(name, cause)
        return Flow(at, key, space, batch.timestamps, batch.present, batch.keys, batch.values)
