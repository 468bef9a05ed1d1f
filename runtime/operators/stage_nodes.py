"""Runs the nodes of one stage: takes records by entrance, returns by node those that leave the stage, in order.

Both kinds of stage use it: stage 0, which makes records from rows (`source.stage_zero`), and the others, which keep
state (`later_stage`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from vsc.plan.nodes import Plan, Stage
from vsc.runtime.operators.columns.failures import Failures
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.keyspace import KeySpaces
from vsc.runtime.operators.columns.moments import Moments, Routes, processing, turns
from vsc.runtime.operators.context import expression_error
from vsc.runtime.operators.dead_letters import Letters, Losses, letters_of
from vsc.runtime.operators.layout import hands_out
from vsc.runtime.operators.result import StageResult, drained
from vsc.runtime.operators.run import StageBatch
from vsc.runtime.operators.source.losses import SourceLosses
from vsc.runtime.records import Batch, Int64s, Order, Origin
from vsc.runtime.state.kv import OrderedKV

__all__ = ["StageNodes"]


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
        self.letters = Letters(plan)
        handed_out = hands_out(stage, observe)
        reachable = dict.fromkeys([*stage.nodes, *(i.node for i in stage.inputs)])
        self._handed_out = [name for name in reachable if name in handed_out]
        self.routes = Routes(plan, stage, handed_out)

    def process(
        self,
        entering: Mapping[str, Flow],
        spaces: KeySpaces,
        origins: tuple[Origin, ...],
        order: Order,
        read: SourceLosses | None = None,
    ) -> StageResult:
        """The results of the entering records; `order` is that of all of them, in the order of processing.

        `read`: what was lost earlier, from the rows of a source.
        """
        batch, failures = self._batch(spaces, lambda: order)
        batch.process(entering)
        return self._done(batch, failures, origins, order, read)

    def release(self, name: str, place: int, partition: int) -> StageResult:
        """Emits what node `name`, the `place`-th that holds something, holds: each is its own cause."""
        batch, failures = self._batch(KeySpaces(), lambda: order)  # `order` is set before anything reads it
        step, waiting = batch.waiting(name)
        if not waiting:
            return StageResult((), failures.metrics)
        origins, order = drained(self._stage.id, place, partition, [at for at, _ in waiting])
        batch.release(name, step, waiting)
        return self._done(batch, failures, origins, order)

    def _batch(self, spaces: KeySpaces, order: Callable[[], Order]) -> tuple[StageBatch, Failures]:
        failures = Failures(self._on_error, Losses(self.letters, self.routes))
        plan, stage, kv = self._plan, self._stage, self._kv
        return StageBatch(plan, stage, kv, self.routes, spaces, lambda: _roots(order()), failures), failures

    def _done(
        self,
        batch: StageBatch,
        failures: Failures,
        origins: tuple[Origin, ...],
        order: Order,
        read: SourceLosses | None = None,
    ) -> StageResult:
        if failures.first is not None:
            moment, failure = failures.first
            cause = self.routes.cause_of(moment)
            raise expression_error(failure, origins[int(order.origin[cause])], int(order.offset[cause]))
        batches = self._leaving(origins, order, batch.flows)
        batch.commit()
        found = failures.losses.found
        if read is not None:
            failures.metrics.merge(read.metrics)
            found, order = read.joined(found, order)
        return StageResult((*batches, *letters_of(self.letters, found, origins, order)), failures.metrics)

    def _leaving(
        self, origins: tuple[Origin, ...], order: Order, flows: Mapping[str, Flow]
    ) -> tuple[tuple[str, Batch], ...]:
        leaving = [(name, flows[name]) for name in self._handed_out if name in flows]
        causes, places = self._places([(name, self.routes.leave(flow.at, name)) for name, flow in leaving])
        found = []
        for (name, flow), cause, place in zip(leaving, causes, places, strict=True):
            if flow.void is not None:
                cause, place, flow = cause[~flow.void], place[~flow.void], flow.select(~flow.void)
            extended = order.take(cause).extended(place, name in self._stage.moved)
            schema = self._plan.node(name).schema
            columns = (flow.time, flow.present, flow.keys, flow.values, flow.latest)
            found.append((name, Batch(schema, origins, extended, *columns)))
        return tuple(found)

    def _places(self, leaving: Sequence[tuple[str, Moments]]) -> tuple[list[Int64s], list[Int64s]]:
        """For leaving records: their causes, and their places, from 1, among all that leave for the same cause.

        In stage 0, re-keyed records have the last places.
        """
        if not leaving:
            return [], []
        counts = [len(at) for _, at in leaving]
        every = Moments.concat([at for _, at in leaving])
        cause = self.routes.cause(every)
        place = turns(cause)
        if len(leaving) > 1:
            if not self._stage.id:
                moved = np.repeat([name in self._stage.moved for name, _ in leaving], counts)
                every = Moments((2 * cause + moved, *every.levels))
            order = processing(every)
            place[order] = turns(cause[order])
        ends = np.cumsum(counts)[:-1]
        return np.split(cause, ends), np.split(place, ends)


def _roots(order: Order) -> Int64s:
    """For each cause, in the order of processing, the number of its source record, ascending."""
    found = np.zeros(len(order), dtype=np.int64)
    for level in (order.time, order.origin, order.offset):
        found[1:] |= level[1:] != level[:-1]
    return np.cumsum(found)
