"""How the steps of the input's clock travel from the tasks that read a source to the stages that have to know them.

Many partitions get the same steps, so these are packed: the differences from step to step, compressed. Guarantees: of
the steps of one time only the first is sent, of those at which the clock of the epoch's beginning stands none, and
where only windows of one kind wait just the first ones beyond each moment at which one can close; they arrive in D12's
order. Which stages and partitions get them is said in `vsc.runtime.operators.steps`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vsc.plan.clocks import moments_due
from vsc.plan.nodes import Plan
from vsc.runtime.operators.aggregate.windows.grid import grid_of
from vsc.runtime.operators.in_step import NO_COLUMNS
from vsc.runtime.operators.steps import rises, steps_to
from vsc.runtime.records import Batch, Int64s, Mask
from vsc.runtime.spark.exchange.pace import Pace
from vsc.runtime.spark.exchange.wire import WireRow, pieces
from vsc.runtime.state.waiting import STEPS

__all__ = ["StepsRouter", "packed", "unpacked"]

_FIRST = struct.Struct("<qq")
"""The time and the offset of the first step; the others differ by little."""
_FAST = 1


class StepsRouter:
    """Routes the steps of `source` in an epoch of `plan` that runs at `pace`."""

    def __init__(self, plan: Plan, source: str, partitions: int, pace: Pace) -> None:
        to = steps_to(plan).get(source)
        self._start = pace.starts.get(source)
        self._to = [] if to is None else [(s, p) for s in to.stages for p in to.partitions(s, partitions, pace.calls)]
        # where records may wait, the steps tell how far the source has come in what has gone on
        self._due = None if to is None or pace.calls else moments_due(plan)[source]

    def needed(self, steps: Batch) -> Batch:
        """The steps that somebody needs."""
        if not self._to:
            return steps.slice(0, 0)
        return steps if self._start is None else steps.filter(steps.order.time > self._start)

    def route(self, steps: Batch) -> Iterator[WireRow]:
        """The rows that carry steps that are `needed`."""
        ordered = steps.sorted()
        for piece in pieces(ordered.filter(self._passing(ordered.order.time))):
            payload = packed(piece)
            yield from (WireRow(stage, STEPS, partition, payload) for stage, partition in self._to)

    def _passing(self, time: Int64s) -> Mask:
        """Which of the steps, in order, are the first ones beyond a moment at which something can be due."""
        if self._due is None:
            return rises(time)
        found = np.zeros(len(time), dtype=np.bool_)
        for ends in self._due:
            found |= rises(grid_of(ends.window).ended(time - ends.after))
        return found


def packed(steps: Batch) -> bytes:
    """The bytes of some steps: at least one, in order."""
    order = steps.order
    time, offset = _differences(order.time), _differences(order.offset)
    bare = replace(steps, order=replace(order, time=time, offset=offset), timestamps=np.zeros(len(steps), np.int64))
    return _FIRST.pack(int(order.time[0]), int(order.offset[0])) + zlib.compress(bare.to_ipc(), _FAST)


def unpacked(data: bytes) -> Batch:
    """The steps that `packed` was given. They were written by another task of the same epoch."""
    bare = Batch.from_ipc(zlib.decompress(data[_FIRST.size :]), NO_COLUMNS)
    time, offset = (first + np.cumsum(column) for first, column in zip(
        _FIRST.unpack_from(data), (bare.order.time, bare.order.offset), strict=True
    ))  # fmt: skip
    return replace(bare, order=replace(bare.order, time=time, offset=offset), timestamps=time)


def _differences(values: Int64s) -> Int64s:
    return np.diff(values, prepend=values[:1])
