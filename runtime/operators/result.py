"""What a task returns to its caller, and the place in the order of records that only the end of the input emits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec

import numpy as np

from vsc.runtime.operators.source.rows import EventTimes
from vsc.runtime.records import DRAIN, END_OF_TIME, LAST_RANK, Batch, Metrics, Order, Origin

__all__ = ["StageResult", "at_once", "drained"]

Given = ParamSpec("Given")

_PARTITIONS = 1 << 14
"""More than the possible number."""


@dataclass(frozen=True, slots=True)
class StageResult:
    """Batches by node, at most one per node, each in D12's order, and what was counted on the way.

    `clock` is for stage 0 alone: the highest event time so far in the source partition in this epoch, to pass to the
    next call for the same source partition and epoch; None before the first usable record. `seen` is also for stage 0:
    the event times of the rows, including those too far in the future; None if no row had one.
    """

    batches: tuple[tuple[str, Batch], ...]
    metrics: Metrics
    clock: int | None = None
    seen: EventTimes | None = None


def at_once(portions: Callable[Given, Iterator[StageResult]]) -> Callable[Given, StageResult]:
    """What is given the same as `portions`, and gives all its results as one."""

    @wraps(portions)
    def process(*args: Given.args, **named: Given.kwargs) -> StageResult:
        metrics = Metrics()
        found: dict[str, list[Batch]] = {}
        for result in portions(*args, **named):
            metrics.merge(result.metrics)
            for name, batch in result.batches:
                found.setdefault(name, []).append(batch)
        return StageResult(tuple((name, Batch.concat(parts)) for name, parts in found.items()), metrics)

    return process


def drained(
    stage: int, place: int, partition: int, times: Sequence[int], first: bool = False
) -> tuple[tuple[Origin, ...], Order]:
    """The order of records held in the `place`-th node of `stage` that holds any: after everything else, or before it
    (`first`), by time.

    Records that several partitions emit for one time never compare equal.
    """
    count = len(times)
    order = Order(
        np.full(count, -END_OF_TIME if first else END_OF_TIME, dtype=np.int64),
        np.zeros(count, dtype=np.int32),
        np.array(times, dtype=np.int64),
        (np.arange(1, count + 1, dtype=np.int64) * _PARTITIONS + partition).reshape(count, 1),
    )
    return (Origin(DRAIN, -1 if first else LAST_RANK, f"{stage:06d}.{place:06d}"),), order
