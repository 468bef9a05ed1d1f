"""The grace buffer in front of a stream-table join (KIP-923).

The buffer's clock only ascends, so a binary search finds when a record comes out. Records that come and go within a
batch never reach the buffer's rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Column, Node, Plan, StreamTableJoin
from vsc.plan.nodes import Grace as Operation
from vsc.runtime.expressions import null_rows
from vsc.runtime.operators.clock import Timing
from vsc.runtime.operators.columns.flow import Flow, stacked, taken
from vsc.runtime.operators.columns.moments import Moments
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.views.question import StoreInfo
from vsc.runtime.operators.views.view import Contents, SideStore, Waiting, WaitingView
from vsc.runtime.records import END_OF_TIME, Int64s, Mask
from vsc.runtime.state.grace_buffer import MOVING, Buffered, TimeOrderedBuffer
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.rows import RowCodec

__all__ = ["OPERATOR", "WAITING", "Grace"]


class Grace(Step):
    """The records that wait for `join`, in one batch."""

    def __init__(self, site: Site, grace: int, join: Step) -> None:
        stream = site.inputs[0]
        self._site, self._grace, self._join = site, grace, join
        self._buffer, self._space = TimeOrderedBuffer(site.kv, site.prefix), site.spaces.of(stream)
        self._rows = RowCodec([c.type for c in stream.value])

    def process(self, flow: Flow) -> Flow:
        """Joins the due records where the clock passes their time, by (event time, encoded key, arrival).

        A record that is late, or has no key (D26), is joined at once, and does not move the clock.
        """
        flow, buffer = self._site.with_value(flow), self._buffer
        keyless, own = null_rows(flow.keys, len(flow)), np.arange(len(flow), dtype=np.int64)
        moving = np.where(keyless, -1, self._site.moving(flow))
        timing = self._site.timing(flow, buffer.stream_time, moving)
        due = np.where(keyless, own, timing.passes(flow.time + self._grace, own))
        stored = list(buffer.pop_until(timing.now - self._grace))
        self._keep(flow, due > own, due == timing.never, timing.kept)
        first = timing.passes(np.array([one.timestamp for one in stored], dtype=np.int64) + self._grace)
        out = np.flatnonzero(due < timing.never)
        return self._join.process(self._released(flow, stored, np.concatenate([first, due[out]]), out, timing))

    def waiting(self) -> list[tuple[int, Buffered]]:
        """Takes out all waiting records, with their event times. The clock stays where it is."""
        return [(one.timestamp, one) for one in self._buffer.pop_until(END_OF_TIME)]

    def release(self, waiting: list[tuple[int, Buffered]], at: Moments) -> Flow:
        """Joins the records that waited, each at its moment."""
        return self._join.process(self.taken(waiting, self._site.give(at, np.zeros(len(at), dtype=np.int64))))

    def taken(self, waiting: list[tuple[int, Buffered]], at: Moments) -> Flow:
        """The records that waited, at these moments."""
        number, time, keys, values = self._decoded([one for _, one in waiting])
        return Flow(at, number, self._space, time, np.ones(len(waiting), dtype=np.bool_), keys, values)

    def _keep(self, flow: Flow, begin: Mask, still: Mask, clock: int) -> None:
        """Lets records wait: those that `begin` to, as far as they `still` do at the end of the batch."""
        count, rows = int(begin.sum()), np.flatnonzero(still)
        if not count and clock == self._buffer.stream_time:
            return
        payloads = self._rows.encode_columns(taken(flow.values, rows), len(rows)).to_pylist()
        keys = [self._space.keys[number] for number in flow.key[rows].tolist()]
        waiting = map(Buffered, flow.time[rows].tolist(), keys, payloads)
        places = (np.cumsum(begin) - 1)[rows].tolist()
        self._buffer.pass_through(count, clock, list(zip(places, waiting, strict=True)))

    def _released(self, flow: Flow, stored: list[Buffered], event: Int64s, out: Int64s, timing: Timing) -> Flow:
        """The records that come out: those of `stored`, then the flow's at `out`, each at its event."""
        numbers, times, keys, values = self._decoded(stored)
        rows = np.concatenate([np.arange(len(stored)), len(stored) + out])
        number, time = np.concatenate([numbers, flow.key])[rows], np.concatenate([times, flow.time])[rows]
        order, at = timing.sent(event, time + self._grace, [self._space.keys[one] for one in number.tolist()])
        rows = rows[order]
        keys, values = taken(stacked(keys, flow.keys), rows), taken(stacked(values, flow.values), rows)
        there = np.ones(len(order), dtype=np.bool_)
        return Flow(at, number[order], self._space, time[order], there, keys, values)

    def _decoded(self, stored: list[Buffered]) -> tuple[Int64s, Int64s, tuple[pa.Array, ...], tuple[pa.Array, ...]]:
        """Records that waited: the numbers of their keys, their times, key columns, value columns."""
        keys = [one.key for one in stored]
        time = np.array([one.timestamp for one in stored], dtype=np.int64)
        values = self._rows.decode_columns(pa.array([one.payload for one in stored], pa.binary()))
        return self._space.encoded(keys), time, self._space.codec.decode_columns(keys), values


def _view(node: Node, operation: StreamTableJoin | Operation, info: StoreInfo, kv: OrderedKV) -> WaitingView:
    buffer, grace = TimeOrderedBuffer(kv, info.prefix), operation.grace or 0

    def waiting() -> Iterator[Waiting]:
        return ((one.key, one.payload, one.timestamp, one.timestamp + grace) for one in buffer.scan())

    return WaitingView(info, buffer.stream_time, len(buffer), waiting)


def _contents(plan: Plan, node: Node, operation: StreamTableJoin | Operation) -> Contents:
    stream = plan.node(node.inputs[0])
    return Contents(("timestamp", "due"), node.schema.key, stream.schema.value, stream.name)


def _encoded(plan: Plan, node: Node, operation: StreamTableJoin | Operation) -> tuple[Column, ...]:
    return plan.node(node.inputs[0]).schema.value


def _due(node: Node, operation: StreamTableJoin | Operation, kv: OrderedKV, prefix: bytes) -> int | None:
    first = next(TimeOrderedBuffer(kv, prefix).scan(), None)
    return None if first is None else first.timestamp + (operation.grace or 0)


WAITING = SideStore(b"", _contents, _view, lambda _: MOVING, _encoded, _due)


class _GoingOn(Step):
    """The join is a node of its own."""

    def process(self, flow: Flow) -> Flow:
        return flow


OPERATOR = Operator(lambda site, operation: Grace(site, operation.grace, _GoingOn()), side_store=WAITING)
