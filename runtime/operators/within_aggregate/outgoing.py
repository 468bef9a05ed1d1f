"""The left records of a batch whose results go out: at once, or when time releases them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import WithinAggregate
from vsc.runtime.operators.clock import Timing
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.moments import Moments, processing
from vsc.runtime.operators.stream_stream_join.pairs import Rows
from vsc.runtime.operators.stream_stream_join.sides import Held, Side
from vsc.runtime.operators.within_aggregate.ranges import Asked
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.joined import Joined

__all__ = ["Lefts", "Out", "outgoing"]

_NO_ROWS = np.zeros(0, dtype=np.int64)
_BEGINNING = -(2**62)


@dataclass(frozen=True, slots=True)
class Out:
    """Left records whose results go out: their moments, the numbers of their keys, their places in the columns of the
    side, their times, the time from which on right records are found, how many records of the batch come before, and
    which of them have waited."""

    at: Moments
    key: Int64s
    place: Int64s
    time: Int64s
    limit: Int64s
    seen: Int64s
    waited: Mask

    def __len__(self) -> int:
        return len(self.key)

    def select(self, rows: Int64s) -> Out:
        """The records at `rows`."""
        at, *rest = (getattr(self, one.name) for one in fields(self))
        return Out(at.take(rows), *(column[rows] for column in rest))

    @staticmethod
    def merged(parts: Sequence[Out]) -> Out:
        """All of them, in the order of their moments."""
        names = [one.name for one in fields(Out)][1:]
        at = Moments.concat([part.at for part in parts])
        every = Out(at, *(np.concatenate([getattr(part, name) for part in parts]) for name in names))
        return every.select(processing(at))

    def asked(self, operation: WithinAggregate) -> Asked:
        """What counts for them."""
        last = self.time - 1 if operation.strictly_before else self.time + operation.after
        return Asked(self.key, self.time, np.maximum(self.time - operation.before, self.limit), last, self.seen)


@dataclass(frozen=True, slots=True)
class Lefts:
    """The left side of a batch with what it holds and may come out, the records that begin to wait, and the events at
    which the held ones, then these, come out."""

    side: Side
    begins: Int64s
    event: Int64s

    @staticmethod
    def of(left: Flow, arrival: Int64s, timing: Timing, state: Joined, operation: WithinAggregate) -> Lefts:
        """Those of the batch, and those that the state holds and may come out."""
        wait = operation.after + operation.grace
        held = Held.of(state.waiting_before(0, timing.now - wait) if operation.waits else [], left.space)
        side = Side(0, left, Rows(left.key, left.time, arrival, 0), pa.array([], pa.binary()), held)
        if not operation.waits:
            return Lefts(side, _NO_ROWS, _NO_ROWS)
        begins = np.flatnonzero(left.time + wait >= timing.clock[arrival])
        return Lefts(side, begins, timing.passes(np.concatenate([held.time, left.time[begins]]) + wait + 1))

    @property
    def held(self) -> int:
        """How many are held."""
        return len(self.side.held.key)


def outgoing(lefts: Lefts, operation: WithinAggregate, timing: Timing) -> Out:
    """All left records whose results go out in this batch, in the order of their moments."""
    here = _at_once(lefts, operation, timing)
    return Out.merged([here, _later(lefts, operation, timing)]) if operation.waits else here


def _at_once(lefts: Lefts, operation: WithinAggregate, timing: Timing) -> Out:
    side, left = lefts.side, lefts.side.flow
    once = np.ones(len(left), dtype=np.bool_)
    once[lefts.begins] = False
    rows, arrival = np.flatnonzero(once), side.rows.arrival[once]
    return Out(
        timing.given(arrival, np.zeros(len(rows), dtype=np.int64)), left.key[rows], side.place(rows), left.time[rows],
        timing.clock[arrival] - operation.span, arrival, np.zeros(len(rows), dtype=np.bool_),
    )  # fmt: skip


def _later(lefts: Lefts, operation: WithinAggregate, timing: Timing) -> Out:
    side, held, left, begins = lefts.side, lefts.side.held, lefts.side.flow, lefts.begins
    out = np.flatnonzero(lefts.event < timing.never)
    event = lefts.event[out]
    key, time = (np.concatenate(b)[out] for b in ((held.key, left.key[begins]), (held.time, left.time[begins])))
    place = np.concatenate([side.held_place(np.arange(lefts.held)), side.place(begins)])[out]
    due, names = time + operation.after + operation.grace + 1, left.space.keys
    order, moments = timing.sent(event, due, [names[number] for number in key.tolist()])
    return Out(
        moments, key[order], place[order], time[order], np.full(len(order), _BEGINNING), timing.seen(event, due)[order],
        np.ones(len(order), dtype=np.bool_),
    )  # fmt: skip
