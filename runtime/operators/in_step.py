"""Inputs in step: a record waits, in state, until no input can still bring an earlier one in D12's order.

While sources are read piece by piece, one runs ahead of another. What has been read of a source shows how far it has
come; its next records do not come before that place. The lowest such place of all sources with more to read is the
`Frontier`: records before it go on, the others wait. So a stage processes its records in the same order, however a
history is cut into epochs. A task of Kafka Streams does the same when it takes the lowest head time of its partitions
while none of them is empty.

In the mode in which the input is the clock (D25), the steps of that clock wait as records do, and what has gone on is
what the clock is of: not what was read. The steps themselves tell how far each source has come there.

`InStep` does this for one stage and partition. Records go on in portions, one after the other in order, of bounded size
if much has waited. A record that comes before those that have already gone on is late: it goes on at once. The caller
knows which sources have more to read, and passes the frontier.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vsc.plan.nodes import Schema
from vsc.runtime.records import Batch, Mask, processing_order
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.waiting import STEPS, Place, Waiting, WaitingBatches

__all__ = ["NO_COLUMNS", "Frontier", "InStep", "Input", "parted"]

Input = tuple[str, Batch]
"""Records of a node that enter a stage."""

NO_COLUMNS = Schema((), ())
"""The schema of steps."""

_BATCH_BYTES = 1 << 20
"""The approximate size of a waiting batch: releasing a part of it may read and rewrite this much."""
_PORTION_BYTES = 8 << 20
"""About how much of the waiting records goes on at once."""


@dataclass(frozen=True, slots=True, order=True)
class Frontier:
    """The lowest place in D12's order at which a record may still come: time, source rank, source partition.

    `offset`: up to this offset of the source partition, no more records come.
    """

    time: int
    rank: int
    part: str
    offset: int = 0

    @classmethod
    def at(cls, batch: Batch) -> Frontier:
        """The place of the first record of `batch`."""
        origin = batch.origins[batch.order.origin[0]]
        return cls(int(batch.order.time[0]), origin.rank, origin.part, int(batch.order.offset[0]))

    @property
    def place(self) -> Place:
        """The frontier as a place: waiting records are ordered by theirs in state."""
        return Place(self.time, self.rank, self.part, self.offset)

    def before(self, batch: Batch) -> Mask:
        """Which records of `batch` come before it."""
        times = batch.order.time
        mask: Mask = times < self.time
        tied = times == self.time
        if tied.any():
            this, origin = (self.rank, self.part), batch.order.origin
            lower = np.array([(o.rank, o.part) < this for o in batch.origins], dtype=np.bool_)
            equal = np.array([(o.rank, o.part) == this for o in batch.origins], dtype=np.bool_)
            mask |= tied & (lower[origin] | (equal[origin] & (batch.order.offset < self.offset)))
        return mask


class InStep:
    """The waiting records of one stage and partition, in its `kv`. `schemas`: of the stage's inputs, by node."""

    def __init__(self, kv: OrderedKV, schemas: Mapping[str, Schema]) -> None:
        self._store = WaitingBatches(kv)
        self._schemas = schemas

    def __len__(self) -> int:
        """How many records wait, without steps."""
        return len(self._store) - self._store.steps

    @property
    def steps(self) -> int:
        """How many steps wait."""
        return self._store.steps

    def portions(self, inputs: Sequence[Input], frontier: Frontier | None) -> Iterator[list[Input]]:
        """The records of `inputs` and of what has waited that go on, portion by portion; the others wait.

        `frontier` None: nothing more will come, so everything goes on. Take all portions: the state is written with the
        last one.
        """
        if frontier is None and not len(self._store):
            yield list(inputs)
            return
        ready, later = parted(inputs, frontier)
        taken: list[tuple[bytes, Waiting]] = []
        for group, upto in self._groups(frontier):
            while group:
                row_key, one = group.popleft()
                schema = NO_COLUMNS if one.port == STEPS else self._schemas[one.port]
                batch = Batch.from_ipc(one.data, schema, trusted=False)
                some, rest = parted([(one.port, batch)], frontier)
                ready += some
                later += rest
                taken.append((row_key, one._replace(data=b"")))
            if upto is not None:
                portion, ready = parted(ready, upto)
                yield portion
                del portion
        yield ready
        self._store.replace(taken, [piece for node, batch in later for piece in _pieces(node, batch)])

    def _groups(self, frontier: Frontier | None) -> Iterator[tuple[deque[tuple[bytes, Waiting]], Frontier | None]]:
        """What may be due, in order, in groups of `_PORTION_BYTES`, each with the place at which the next group begins.

        Between two groups no read is open: the caller may write anything, and empty the group.
        """
        end, last = None if frontier is None else frontier.place, None
        while True:
            group: deque[tuple[bytes, Waiting]] = deque()
            size, upto = 0, None
            for row_key, one in self._store.before(end, last):
                if size >= _PORTION_BYTES:
                    upto = Frontier(*one.place)
                    break
                group.append((row_key, one))
                size += len(one.data)
                last = row_key
            yield group, upto
            if upto is None:
                return


def parted(inputs: Sequence[Input], frontier: Frontier | None) -> tuple[list[Input], list[Input]]:
    """The records before the frontier, and the others."""
    if frontier is None:
        return list(inputs), []
    before, others = [], []
    for node, batch in inputs:
        mask = frontier.before(batch)
        if mask.any():
            before.append((node, batch.filter(mask)))
        if not mask.all():
            others.append((node, batch.filter(~mask)))
    return before, others


def _pieces(node: str, batch: Batch) -> Iterator[Waiting]:
    """The batch in order, in pieces of about `_BATCH_BYTES`."""
    ordered = batch.take(processing_order([batch]))
    rows = len(ordered)
    size = sum(column.nbytes for column in ordered.columns) + rows * (37 + 8 * ordered.order.depth)
    step = max(1, rows * _BATCH_BYTES // max(size, 1))
    for start in range(0, rows, step):
        piece = ordered.take(np.arange(start, min(start + step, rows), dtype=np.int64))
        yield Waiting(node, Frontier.at(piece).place, len(piece), piece.to_ipc())
