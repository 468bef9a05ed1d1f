"""`suppress` with bounds, record by record, because every record counts; and look-ups into it, as in `suppress`.

The operator is `vsc.runtime.operators.suppress.records`.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Suppress as Operation
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.loop import LoopContext, Sent, TableLoop
from vsc.runtime.operators.columns.moments import Moments, arrivals
from vsc.runtime.operators.operator import Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.suppress.held import SUFFIX, Hidden, opened
from vsc.runtime.operators.suppress.records import Suppress
from vsc.runtime.operators.tables.pool import Pool
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.state.suppressed import Suppressed, SuppressedRow

__all__ = ["BoundedSuppress"]


class _State(NamedTuple):
    """The state from a turn at an event on: whether a key is held, and the row before the held change."""

    event: int
    turn: int
    held: bool
    before: bytes | None


class _Turns:
    """How many records were sent at an event."""

    __slots__ = ("_before", "_event", "_sent")

    def __init__(self, sent: Sent) -> None:
        self._sent, self._event, self._before = sent, -1, 0

    def next(self, event: int) -> int:
        """The turn of the next record sent at the event being processed."""
        many = len(self._sent.events)
        if event != self._event:
            self._event, self._before = event, many
        return many - self._before + 1


class _Watched(Suppressed):
    """Notes how the keys of a batch are held and released; the first note of a key is from before the batch."""

    __slots__ = ("_context", "_sent", "notes")

    def __init__(self, kv: OrderedKV, prefix: bytes, context: LoopContext, sent: Sent) -> None:
        super().__init__(kv, prefix)
        self._context, self._sent = context, _Turns(sent)
        self.notes: dict[bytes, list[_State]] = {}

    def hold(self, place: int, key: bytes, row: bytes | None, before: bytes | None, timestamp: int, now: int) -> None:
        notes = self.notes.get(key)
        if notes is None:
            notes = self.notes[key] = [_state(-1, self.get(key))]
        if not notes[-1].held:
            notes.append(_State(self._context.event, 0, True, before))
        super().hold(place, key, row, before, timestamp, now)

    def release(self, held: SuppressedRow) -> None:
        notes = self.notes.setdefault(held.key, [_state(-1, held)])
        notes.append(_State(self._context.event, self._sent.next(self._context.event), False, None))
        super().release(held)


class BoundedSuppress(Step):
    """What one `suppress` holds, in one batch."""

    def __init__(self, site: Site, operation: Operation) -> None:
        self._site, self._operation, self._schema = site, operation, site.inputs[0]
        self._rows = RowCodec([c.type for c in self._schema.value])
        self._held: Suppressed | None = None
        self._at: Moments | None = None
        self._made: tuple[TableLoop, Suppress] | None = None

    def process(self, flow: Flow) -> Flow:
        """The changes that come out at the changes of its input."""
        loop, operator = self._operator()
        self._at = flow.at
        loop.loop.changes(flow, operator.process)
        return loop.flow(flow.at)

    def waiting(self) -> list[tuple[int, object]]:
        """Takes out all held rows, with the time until which each is held."""
        _, operator = self._operator()
        return [(held.place, held) for held in operator.take_all()]

    def release(self, waiting: list[tuple[int, object]], at: Moments) -> Flow:
        """The held rows, each at its moment."""
        loop, operator = self._operator()
        self._at = at
        loop.loop.each(waiting, operator.release)
        return loop.flow(at)

    def _operator(self) -> tuple[TableLoop, Suppress]:
        if self._made is None:
            site, loop = self._site, TableLoop(self._site)
            held = _Watched(site.kv, site.prefix + SUFFIX, loop.context, loop.sent)
            operator = Suppress(
                site.name, self._operation, self._schema, held, loop.put, site.old, loop.context, loop.sent.table
            )
            self._held, self._made = held, (loop, operator)
        return self._made

    def hidden(self, flow: Flow) -> Hidden:
        """For which records the key is held back, and the row before."""
        held = self._held if self._held is not None else opened(self._site)
        notes = held.notes if isinstance(held, _Watched) else {}
        now = np.zeros(len(flow), dtype=np.int64)
        moments = {key: [-1] for key in notes}
        if self._at is not None:
            later = [(key, state) for key, states in notes.items() for state in states[1:]]
            events, turn = (np.array([s[i] for _, s in later], dtype=np.int64) for i in (0, 1))
            came, now = arrivals(self._site.give(self._at.take(events), turn), flow.at)
            for (key, _), moment in zip(later, came.tolist(), strict=True):
                moments[key].append(moment)
        keys = flow.space.keys
        states = []
        for number, moment in zip(flow.key.tolist(), now.tolist(), strict=True):
            key = keys[number]
            if key in notes:
                states.append(notes[key][bisect_left(moments[key], moment) - 1])
            else:
                states.append(_state(-1, held.get(key)))
        mask = np.fromiter((state.held for state in states), dtype=np.bool_, count=len(states))
        before = pa.array([state.before for state in states], pa.binary())
        place = np.where(before.is_valid().to_numpy(zero_copy_only=False), np.arange(len(states)), -1)
        return Hidden(mask, place, Pool(self._rows, before, None))


def _state(event: int, held: SuppressedRow | None) -> _State:
    return _State(event, 0, held is not None, None if held is None else held.before)
