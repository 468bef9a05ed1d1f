"""Runs a stage other than 0 on one vsc partition: batches in, batches out, all state in a key-value store.

A batch is sorted once, its keys are encoded once, and each node runs once over it. The output depends only on the
records and their order: not on how they were cut into batches and calls, nor on a restart with the same store. It
equals that of the record-by-record operators of `tests/oracle`.

The caller does the routing: it partitions each node's records by key (`partition_of`) and brings them to their stages.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Plan
from vsc.runtime.expressions import bind
from vsc.runtime.operators.closing import AT_ONCE, Closing
from vsc.runtime.operators.columns.flow import Flow, taken
from vsc.runtime.operators.columns.keyspace import KeySpaces
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.in_step import parted
from vsc.runtime.operators.layout import store_prefix
from vsc.runtime.operators.operator import operator_of
from vsc.runtime.operators.result import StageResult, at_once
from vsc.runtime.operators.stage_nodes import StageNodes
from vsc.runtime.operators.steps import end_of_input, entering, gone_on
from vsc.runtime.operators.views.catalog import held_back
from vsc.runtime.records import Batch, Int64s, orders_together, sorted_places
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.waiting import STEPS

__all__ = ["LaterStage", "collector_paused"]

_NO_STARTS: Mapping[str, int] = {}


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pauses Python's cyclic garbage collector, and restores its state afterwards, also after an exception.

    A batch makes many objects that live until its end, without cycles that matter. Each pass of the collector visits
    all of them again, which costs loops over records about a quarter of their time.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


class LaterStage:
    """A stage other than 0, for one partition.

    `kv` holds all of its state; nothing else survives a call. `observe` names the nodes whose records the caller wants
    besides those that later stages read. `partition` is the partition's number: it orders what several partitions emit
    at the end of the input.
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
        bind(plan, options.functions)
        self._plan, self._stage, self._kv, self._partition = plan, plan.stages[stage_id], kv, partition
        self._schemas = {n.name: n.schema for n in plan.nodes}
        self._holding = [n for n in map(plan.node, self._stage.nodes) if n.operation.waits]
        nodes = [(name, operator_of(plan.node(name).operation).left) for name in self._stage.nodes]
        self._left = [(name, left) for name, left in nodes if left is not None and plan.node(name) not in self._holding]
        self._nodes = StageNodes(plan, self._stage, kv, options.on_error, observe)
        self._by_input = plan.clock == "input"
        self._closing = Closing.of(plan, self._stage, kv)

    def portions(
        self,
        inputs: Sequence[tuple[str, Batch]],
        drain: bool = False,
        starts: Mapping[str, int] = _NO_STARTS,
        quiet: Mapping[str, int] = _NO_STARTS,
    ) -> Iterator[StageResult]:
        """Processes the records of `inputs` (node, batch) in D12's order, and the steps of the input's clock (`STEPS`).

        The results come in portions where much closes at once (see `closing`). Take all of them.

        `drain`: afterwards everything held (for its grace, for its window's end, in a `suppress`) comes out, as
        if the input had ended. `starts`: by source, its clock when the epoch began: the highest event time, in
        ms, of what had gone on; only the clock of the input asks. `quiet`: as in `InputClock`. Raises
        ExpressionError if an expression fails and the options do not say to drop the record.
        """
        self._nodes.quiet = quiet
        ending = [(STEPS, end_of_input())] if drain and self._by_input else []
        present = [
            (name, replace(batch, order=batch.order.deepened(self._stage.depth)))
            for name, batch in (*inputs, *ending)
            if len(batch)
        ]
        yield from self._left_behind(starts)
        while self._closing is not None and present and (found := self._closing.step(present)) is not None:
            place, step = found
            ahead, present = parted(present, place)
            if ahead:
                yield self._processed(ahead, starts)
                passed = gone_on(ahead)
                starts = {**starts, **{name: max(time, starts.get(name, time)) for name, time in passed.items()}}
            else:
                yield self._closed(self._closing.name, step, starts)
        if present:
            yield self._processed(present, starts)
        if drain and not self._by_input:
            # The records of one node go through the next nodes before these are drained.
            for number, node in enumerate(self._holding):
                yield self._released(node.name, number)

    process = at_once(portions)

    @property
    def held(self) -> int:
        """How many records, windows without a final result and suppressed rows are held in the stage."""
        return sum(held_back(self._plan, self._stage, node, self._kv) for node in self._holding)

    def _left_behind(self, starts: Mapping[str, int]) -> Iterator[StageResult]:
        """What nodes hold that no longer let anything wait, since the topology has changed. Once."""
        nodes, self._left = self._left, []
        for place, (name, left) in enumerate(nodes):
            if left(self._kv, store_prefix(self._stage, name)):
                yield self._released(name, place, first=True, starts=starts)

    @collector_paused()
    def _released(
        self, name: str, place: int, first: bool = False, starts: Mapping[str, int] = _NO_STARTS
    ) -> StageResult:
        return self._nodes.release(name, place, self._partition, first=first, starts=starts)

    @collector_paused()
    def _closed(self, name: str, step: Batch, starts: Mapping[str, int]) -> StageResult:
        return self._nodes.close(name, AT_ONCE, step, starts)

    @collector_paused()
    def _processed(self, inputs: Sequence[tuple[str, Batch]], starts: Mapping[str, int]) -> StageResult:
        spaces = KeySpaces()
        if any(name != STEPS and batch.order.moment is not None for name, batch in inputs):
            inputs = [(name, entering(batch) if name == STEPS else batch) for name, batch in inputs]
        else:  # nothing was released that a step comes behind: it comes before its record where that is the later input
            inputs = sorted(inputs, key=lambda one: one[0] != STEPS)
        origins, order = orders_together([batch for _, batch in inputs])
        permutation = sorted_places(order)
        flows = self._entering(inputs, permutation, spaces)
        return self._nodes.process(flows, spaces, origins, order.take(permutation), starts=starts)

    def _entering(self, inputs: Sequence[tuple[str, Batch]], permutation: Int64s, spaces: KeySpaces) -> dict[str, Flow]:
        """Each input's records in the order of processing, which `permutation` is for all of them."""
        arrival = np.empty(len(permutation), dtype=np.int64)
        arrival[permutation] = np.arange(len(permutation))
        parts: dict[str, list[tuple[Int64s, Batch]]] = {}
        start = 0
        for name, batch in inputs:
            if name != STEPS:  # a step is a cause without records
                parts.setdefault(name, []).append((arrival[start : start + len(batch)], batch))
            start += len(batch)
        return {name: self._flow(name, found, spaces) for name, found in parts.items()}

    def _flow(self, name: str, parts: Sequence[tuple[Int64s, Batch]], spaces: KeySpaces) -> Flow:
        batches = [batch for _, batch in parts]
        cause = np.concatenate([cause for cause, _ in parts])
        time = np.concatenate([batch.timestamps for batch in batches])
        present = np.concatenate([batch.present for batch in batches])
        keys, values = _together([batch.keys for batch in batches]), _together([batch.values for batch in batches])
        if (cause[1:] < cause[:-1]).any():
            order = np.argsort(cause, kind="stable")
            cause, time, present = cause[order], time[order], present[order]
            keys, values = taken(keys, order), taken(values, order)
        space = spaces.of(self._schemas[name])
        key = space.columns(keys, len(time))
        at = self._nodes.routes.enter(name, cause)
        return Flow(at, key, space, time, present, keys, values)


def _together(parts: Sequence[tuple[pa.Array, ...]]) -> tuple[pa.Array, ...]:
    """The columns of all parts, one part after the other."""
    return parts[0] if len(parts) == 1 else tuple(map(pa.concat_arrays, zip(*parts, strict=True)))
