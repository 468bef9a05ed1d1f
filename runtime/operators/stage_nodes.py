"""Runs the nodes of one stage: takes records by entrance, returns by node those that leave the stage, in order.

Both kinds of stage use it: stage 0, which makes records from rows (`source.stage_zero`), and the others, which keep
state (`later_stage`). Each node runs once on a batch, then each store is written once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from vsc.plan.nodes import Node, Plan, Stage, StreamTableJoin
from vsc.plan.results import shows_results
from vsc.runtime.operators.clock import InputClock, StageClocks
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.keyspace import KeySpaces
from vsc.runtime.operators.columns.moments import Moments, Routes, processing, turns
from vsc.runtime.operators.dead_letters import Letters, Losses, Lost, letters_of
from vsc.runtime.operators.late_versions import count_late
from vsc.runtime.operators.layout import hands_out, repeated
from vsc.runtime.operators.operator import Step, operator_of
from vsc.runtime.operators.result import StageResult, drained
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.tables.store import open_columns
from vsc.runtime.records import Batch, Int64s, Order, Origin
from vsc.runtime.state.kv import OrderedKV

__all__ = ["StageBatch", "StageNodes"]

_NO_STARTS: Mapping[str, int] = {}


class StageNodes:
    """The nodes of `stage`, with their state in `kv`. `observe`: see `LaterStage`."""

    def __init__(
        self,
        plan: Plan,
        stage: Stage,
        kv: OrderedKV,
        on_error: Literal["drop", "fail"],
        observe: frozenset[str],
    ) -> None:
        self._plan, self._stage, self._kv, self._on_error = plan, stage, kv, on_error
        self._letters, self._repeated = Letters(plan), repeated(stage)
        handed_out = hands_out(stage, observe)
        reachable = dict.fromkeys([*stage.nodes, *(i.node for i in stage.inputs)])
        self._handed_out = [name for name in reachable if name in handed_out]
        self.routes = Routes(plan, stage, handed_out)
        self._clocks = StageClocks.of(plan, stage) if plan.clock == "input" and stage.id else None
        self.quiet: Mapping[str, int] = {}
        """By source, the time to which its clock has gone on at last while it brought nothing."""

    def losses(self) -> Losses:
        """What a new batch loses: nothing so far."""
        return Losses(self._letters, self.routes, self._on_error, self._repeated)

    def process(
        self,
        entering: Mapping[str, Flow],
        spaces: KeySpaces,
        origins: tuple[Origin, ...],
        order: Order,
        losses: Losses | None = None,
        starts: Mapping[str, int] = _NO_STARTS,
    ) -> StageResult:
        """The results of the entering records; `order` is that of their causes, in the order of processing.

        `losses`: those of the batch so far. `starts`: by source, its clock when the epoch began.
        """
        batch = self._batch(spaces, losses or self.losses(), origins, order, starts)
        batch.process(entering)
        return self._done(batch, origins)

    def close(self, name: str, most: int, step: Batch, starts: Mapping[str, int]) -> StageResult:
        """Emits the first `most` windows of node `name` that a step closes, ahead of all that comes with it."""
        batch = self._batch(KeySpaces(), self.losses(), step.origins, step.order, starts)
        batch.close(name, most)
        return self._done(batch, step.origins)

    def release(
        self, name: str, place: int, partition: int, first: bool = False, starts: Mapping[str, int] = _NO_STARTS
    ) -> StageResult:
        """Emits what node `name`, the `place`-th that holds something, holds: each is its own cause.

        `first`: the results come before all others of the epoch, not after them.
        """
        batch = self._batch(KeySpaces(), self.losses(), (), Order.empty(), starts)
        waiting = batch.step(name).waiting()
        if not waiting:
            return StageResult((), batch.losses.metrics)
        batch.origins, batch.order = origins, _ = drained(
            self._stage.id, place, partition, [at for at, _ in waiting], first
        )
        batch.clock = self._clock(origins, batch.order, starts)
        batch.release(name, waiting)
        return self._done(batch, origins)

    def _batch(
        self, spaces: KeySpaces, losses: Losses, origins: tuple[Origin, ...], order: Order, starts: Mapping[str, int]
    ) -> StageBatch:
        clock = self._clock(origins, order, starts)
        return StageBatch(self._plan, self._stage, self._kv, self.routes, spaces, losses, origins, order, clock)

    def _clock(self, origins: tuple[Origin, ...], order: Order, starts: Mapping[str, int]) -> InputClock | None:
        if self._clocks is None:
            return None
        return InputClock(self._clocks, starts, self.routes, origins, order, self.quiet)

    def _done(self, batch: StageBatch, origins: tuple[Origin, ...]) -> StageResult:
        losses, order = batch.losses, batch.order
        losses.check(origins, order)
        batches = self._leaving(origins, batch)
        batch.commit()
        if not self._stage.id:  # lost rows may have no time: all losses are in the order of the source partition alone
            order = replace(order, time=np.zeros_like(order.time))

        def placed(lost: Lost) -> tuple[Order, Int64s]:
            if lost.at is None or not self._stage.id:
                return order.take(lost.cause), batch.number(lost.cause)
            return batch.order_of(lost.at)

        return StageResult((*batches, *letters_of(self._letters, losses.found, origins, placed)), losses.metrics)

    def _leaving(self, origins: tuple[Origin, ...], batch: StageBatch) -> tuple[tuple[str, Batch], ...]:
        leaving = [(name, batch.flows[name]) for name in self._handed_out if name in batch.flows]
        moments = [self.routes.leave(flow.at, name) for name, flow in leaving]
        found = []
        for (name, flow), (order, place) in zip(leaving, self._placed(batch, leaving, moments), strict=True):
            if flow.void is not None:
                order, place, flow = order.take(~flow.void), place[~flow.void], flow.select(~flow.void)
            extended = order.extended(place, name in self._stage.moved)
            schema = self._plan.node(name).schema
            columns = (flow.time, flow.present, flow.keys, flow.values, flow.latest)
            found.append((name, Batch(schema, origins, extended, *columns)))
        return tuple(found)

    def _placed(
        self, batch: StageBatch, leaving: Sequence[tuple[str, Flow]], moments: Sequence[Moments]
    ) -> Iterator[tuple[Order, Int64s]]:
        """For leaving records: the places of their causes, and their own, from 1, among all that leave for the same
        cause, or for the same thing that time has released.

        In stage 0, re-keyed records have the last places.
        """
        if not leaving:
            return
        counts = [len(at) for at in moments]
        every = Moments.concat(moments)
        order, cause = batch.order_of(every)
        place = turns(cause)
        if len(leaving) > 1:
            if not self._stage.id:
                moved = np.repeat([name in self._stage.moved for name, _ in leaving], counts)
                every = Moments((2 * cause + moved, *every.levels))
            sorting = processing(every)
            place[sorting] = turns(cause[sorting])
        start = 0
        for count in counts:
            rows = slice(start, start + count)
            yield order.take(rows), place[rows]
            start += count


class StageBatch:
    """One batch: the flows of the nodes, and what it changes in the stores.

    `order` is that of the causes, in the order of processing, `origins` where they were read. `spaces` hold the batch's
    keys.
    """

    def __init__(
        self,
        plan: Plan,
        stage: Stage,
        kv: OrderedKV,
        routes: Routes,
        spaces: KeySpaces,
        losses: Losses,
        origins: Sequence[Origin],
        order: Order,
        clock: InputClock | None,
    ) -> None:
        self._routes, self.losses, self.order, self.clock = routes, losses, order, clock
        self.origins = origins
        self._numbers = None if stage.id else _numbers(order.offset)
        self._nodes = {name: plan.node(name) for name in stage.nodes}
        self.flows: dict[str, Flow] = {}
        stored = [n for n in self._nodes.values() if n.store is not None and stage.id]  # stage 0 keeps nothing
        self._tables = {
            n.name: open_columns(
                kv,
                stage,
                n,
                spaces.of(n.schema),
                None if clock is None else clock.horizon(n.name),
                shows_results(plan, n.name),
            )
            for n in stored
        }
        self._steps: dict[str, Step] = {}
        self._sites = {
            name: Site(plan, stage, node, kv, routes, spaces, self, losses, self._tables)
            for name, node in self._nodes.items()
        }

    def process(self, entering: Mapping[str, Flow]) -> None:
        """Runs every node that records reach."""
        self.flows.update((name, flow) for name, flow in entering.items() if name not in self._nodes)
        for name, node in self._nodes.items():
            if name in self.flows:
                continue
            feeding = [entering[name]] if name in entering else self._feeding(node)
            if self.clock is not None and (node.waits or node.operation.watches) and feeding[0] is None:
                feeding[0] = self._sites[name].nothing()  # time may release what is held, or remove what is kept
            if any(flow is not None for flow in feeding):
                self.flows[name] = self.step(name).fed(feeding)
            if isinstance(node.operation, StreamTableJoin) and node.operation.counts_late:
                count_late(self._sites[name], node.operation)

    def release(self, name: str, waiting: list[tuple[int, Any]]) -> None:
        """Emits what node `name` held, each as its own cause, and runs the nodes that this reaches."""
        cause = np.arange(len(waiting), dtype=np.int64)
        self.flows[name] = self.step(name).release(waiting, self._routes.released(cause, name))
        self.process({})

    def close(self, name: str, most: int) -> None:
        """Emits windows of node `name`, and runs the nodes that this reaches."""
        self.flows[name] = self.step(name).closing(most)
        self.process({})

    def commit(self) -> None:
        """Writes all stores. Nothing more can be run."""
        for table in self._tables.values():
            table.commit()
        for step in self._steps.values():
            step.commit()
        # They refer back to the batch: the cycle would keep all of its records until the garbage collector runs.
        self._steps.clear()
        self._sites.clear()

    def step(self, name: str) -> Step:
        """The operator of node `name`, the same for the whole batch."""
        if name not in self._steps:
            operation = self._nodes[name].operation
            self._steps[name] = operator_of(operation).build(self._sites[name], operation)
        return self._steps[name]

    def _feeding(self, node: Node) -> list[Flow | None]:
        """The records that reach each input of the node; none at one that is only looked into, or of a source."""
        taken, site = len(node.taken), self._sites[node.name]
        found: list[Flow | None] = [] if node.inputs else [None]  # a source has its own records
        for port, name in enumerate(node.inputs):
            flow = self.flows.get(name) if port < taken else None
            if flow is not None:
                flow = replace(flow, at=self._routes.reach(flow.at, node.name, port))
                flow = site.with_key(flow, port) if node.operation.needs_key else flow
            found.append(flow)
        return found

    def order_of(self, at: Moments) -> tuple[Order, Int64s]:
        """The places of events in the order of records, and for each a number of its cause: of the record that entered,
        or of what time has released."""
        if self.clock is not None:
            return self.clock.order_of(at)
        cause = self._routes.cause(at)
        return self.order.take(cause), self.number(cause)

    def number(self, cause: Int64s) -> Int64s:
        """Numbers of causes: rows of a source at one place, in stage 0, are one cause of all records that they give."""
        return cause if self._numbers is None else self._numbers[cause]

    def roots(self, at: Moments) -> Int64s:
        """For each event the number of its source record, or of what time has released on its way."""
        order, _ = self.order_of(at)
        levels = [order.time, order.origin, order.offset, *(() if order.moment is None else order.moment.T)]
        sorting, found = np.lexsort(levels[::-1]), np.zeros(len(at), dtype=np.int64)
        for level in levels:
            ordered = level[sorting]
            found[1:] |= ordered[1:] != ordered[:-1]
        numbers = np.empty(len(at), dtype=np.int64)
        numbers[sorting] = np.cumsum(found)
        return numbers


def _numbers(offsets: Int64s) -> Int64s | None:
    """The number of each row's place in its source partition; None if no place has several rows."""
    begins = np.append(True, offsets[1:] != offsets[:-1])[: len(offsets)]
    return None if begins.all() else np.cumsum(begins, dtype=np.int64) - 1
