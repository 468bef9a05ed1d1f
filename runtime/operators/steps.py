"""The steps of the input's clock: which stages have to know them, and how far they say that sources have come.

A step is a place in D12's order at which the time of a source rises (D25). Where something waits for a source's time,
every partition takes its steps. What has gone on of the records that wait for other sources (`in_step`), the steps that
went on with them tell; of a source for whose time nothing waits, one partition is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from vsc.plan.clocks import node_clocks, stepping
from vsc.plan.nodes import Plan
from vsc.runtime.operators.in_step import NO_COLUMNS, Input
from vsc.runtime.operators.layout import handed_on
from vsc.runtime.records import (
    DRAIN,
    END_OF_TIME,
    LAST_RANK,
    MOMENT_COLUMNS,
    QUIET,
    STEP,
    Batch,
    Int64s,
    Mask,
    Order,
    Origin,
)
from vsc.runtime.state.waiting import STEPS

__all__ = [
    "StepsTo",
    "end_of_input",
    "entering",
    "gone_on",
    "of_sources",
    "quiet_step",
    "rises",
    "stages_in_step",
    "steps_at",
    "steps_of",
    "steps_to",
]


def stages_in_step(plan: Plan) -> tuple[int, ...]:
    """The stages in which records may have to wait for other sources: they read sources, or step."""
    reading = {id for ids in handed_on(plan.stages[0]).values() for id in ids}
    return tuple(sorted(reading | {id for id, sources in enumerate(stepping(plan)) if sources}))


@dataclass(frozen=True, slots=True)
class StepsTo:
    """Which stages take the steps of a source: each partition of the stages `everywhere`, whose nodes wait for them.

    `teller`: the stage that tells of each epoch how far the source has come in what has gone on. Its first partition
    takes the steps, if it is none of the others, while records may wait.
    """

    everywhere: tuple[int, ...]
    teller: int

    def partitions(self, stage: int, partitions: int, wait: bool) -> range:
        """The partitions of `stage`, which has so many, that take the steps; `wait`: records may wait."""
        return range(partitions if stage in self.everywhere else int(wait and stage == self.teller))

    @property
    def stages(self) -> tuple[int, ...]:
        """All stages that take the steps."""
        return self.everywhere or (self.teller,)


def steps_to(plan: Plan) -> dict[str, StepsTo]:
    """By source, where its steps go; without the sources of which no stage has to know the time."""
    if plan.clock == "records":
        return {}
    clocks, steps = node_clocks(plan), stepping(plan)
    found = {}
    for source in (node.name for node in plan.sources):
        taking = [id for node, ids in handed_on(plan.stages[0]).items() if source in clocks[node].sources for id in ids]
        everywhere = tuple(id for id, sources in enumerate(steps) if source in sources)
        if everywhere or taking:
            found[source] = StepsTo(everywhere, min(everywhere or taking))
    return found


def gone_on(portion: Sequence[Input]) -> dict[str, int]:
    """By source, the highest time of the steps in a portion, without the end of the input."""
    found: dict[str, int] = {}
    for node, batch in portion:
        if node == STEPS:
            for number, origin in enumerate(batch.origins):
                times = batch.order.time[batch.order.origin == number]
                if len(times) and origin.source != DRAIN:
                    found[origin.source] = max(int(times.max()), found.get(origin.source, -1))
    return found


def of_sources(portion: Sequence[Input], sources: frozenset[str]) -> list[Input]:
    """The portion with the steps of `sources` and the end of the input only."""
    found, taken = [], {*sources, DRAIN}
    for node, batch in portion:
        if node == STEPS and not all(origin.source in taken for origin in batch.origins):
            chosen = np.array([origin.source in taken for origin in batch.origins], dtype=np.bool_)
            batch = batch.filter(chosen[batch.order.origin])
        if len(batch):
            found.append((node, batch))
    return found


def entering(batch: Batch) -> Batch:
    """Steps as they enter a stage: each before its record, after what earlier stages have released there."""
    moment = np.zeros((len(batch), MOMENT_COLUMNS), dtype=np.int64)
    moment[:, 0] = STEP
    return replace(batch, order=replace(batch.order, moment=moment))


def steps_of(origin: Origin, order: Order, clock: int | None) -> Batch | None:
    """The steps of a source partition: where the `order` of its records has a higher time than before.

    `clock`: its highest time so far in the epoch; None before the first record. None if there are no steps.
    """
    rising = rises(order.time)
    if clock is not None:
        rising[:1] = order.time[:1] > clock
    return steps_at((origin,), order.take(rising)) if rising.any() else None


def rises(values: Int64s) -> Mask:
    """Where the values are higher than the ones before; the first one is."""
    higher: Mask = np.append(True, values[1:] > values[:-1])[: len(values)]
    return higher


def steps_at(origins: tuple[Origin, ...], order: Order) -> Batch:
    """Steps at these places."""
    return Batch(NO_COLUMNS, origins, order, order.time, np.ones(len(order), dtype=np.bool_), (), ())


def quiet_step(plan: Plan, source: str, time: int) -> Batch:
    """The step at which a source has brought nothing for so long that its clock goes on to `time`, in ms."""
    one = np.zeros(1, dtype=np.int64)
    order = Order(one + time, one.astype(np.int32), one, np.zeros((1, 0), dtype=np.int64))
    return steps_at((Origin(source, plan.node(source).source.rank, QUIET),), order)


def end_of_input() -> Batch:
    """The step at which everything comes out that waits."""
    one = np.zeros(1, dtype=np.int64)
    order = Order(one + END_OF_TIME, one.astype(np.int32), one, np.zeros((1, 0), dtype=np.int64))
    return steps_at((Origin(DRAIN, LAST_RANK, ""),), order)
