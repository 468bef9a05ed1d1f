"""What came before each record, in one batch.

A left record is given the calls over the right records of its key that are close enough in time. Without `after` and
`grace` its result goes out at its own place, over what has come. Otherwise it waits until the clock of the node has
passed the last time of a right record, and the grace, and counts what has come until then; one that comes later goes
out at once, and is late. A right record is found as long as one that is not late could count it.

Right records are taken before left ones that come with them: of a stream that is joined with itself, a record is among
its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Schema, WithinAggregate
from vsc.runtime.metrics import GRACE_NEEDED, Missed
from vsc.runtime.operators.clock import Timing
from vsc.runtime.operators.columns.evaluation import Evaluation, Failed
from vsc.runtime.operators.columns.evaluation import Side as Seen
from vsc.runtime.operators.columns.flow import Flow, stacked, taken
from vsc.runtime.operators.columns.moments import Moments, processing
from vsc.runtime.operators.operator import Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.stream_stream_join.sides import Layout, Side, bucket_width
from vsc.runtime.operators.within_aggregate.calls import Calls
from vsc.runtime.operators.within_aggregate.kept import Buckets, keep, read
from vsc.runtime.operators.within_aggregate.outgoing import Lefts, Out, outgoing
from vsc.runtime.operators.within_aggregate.ranges import Sorted
from vsc.runtime.operators.within_aggregate.rights import Rights, Spoilt
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.joined import Joined

__all__ = ["Aggregating"]


class Aggregating(Step):
    """One node at work on one batch."""

    def __init__(self, site: Site, operation: WithinAggregate) -> None:
        self._site, self._operation = site, operation
        self._state = Joined(site.kv, site.prefix, bucket_width(operation))
        self._layout = Layout(*site.inputs)
        self._calls = Calls(site.node, operation, site.inputs[1])
        results = Schema((), operation.call_columns)
        self._items = Evaluation(site.name, operation.items, (site.inputs[0], results))

    def fed(self, feeding: Sequence[Flow | None]) -> Flow:
        """The results for the left records, and for those that time releases between them."""
        operation, state, layout = self._operation, self._state, self._layout
        left, right = (self._entered(side, flow) for side, flow in enumerate(feeding))
        right, args = self._counting(right)
        events, arrivals = self._events(left, right)
        timing = self._site.timing(events, state.stream_time)
        lefts = Lefts.of(left, arrivals[0], timing, state, operation)
        out = outgoing(lefts, operation, timing)
        buckets = read(state, operation, self._site.space, out, right)
        rights, spoilt = Rights.of(buckets, right, arrivals[1], args, self._calls.arguments, layout)
        if spoilt is not None:
            self._lose(spoilt, Moments.concat([events.at, out.at]))
        repaired: Buckets = {} if spoilt is None else spoilt.buckets
        flow = self._results(out, lefts.side, rights)
        self._note_late(lefts.side, timing)
        self._note_late_rights(right, arrivals[1], timing)
        keep(state, operation, layout, lefts, right, arrivals[1], timing, buckets, repaired)
        return flow

    def _entered(self, side: int, flow: Flow | None) -> Flow:
        return self._site.nothing(side) if flow is None else self._site.with_value(flow, side)

    def _counting(self, right: Flow) -> tuple[Flow, tuple[pa.Array, ...]]:
        """The right records without those on which an argument of a call fails, and these arguments."""
        found = self._calls.arguments.over(right)
        if not found.failed:
            return right, found.columns
        kept = self._site.kept(right, found.failed, self._site.inputs[1])
        return right.select(kept), taken(found.columns, np.flatnonzero(kept))

    def _lose(self, spoilt: Spoilt, at: Moments) -> None:
        """Counts records of the state on which a call fails that is new since they came, once: they are removed."""
        space, layout, count = self._site.space, self._layout, len(spoilt.key)
        keys = space.codec.decode_columns([space.keys[number] for number in spoilt.key.tolist()])
        values = layout.some(1, spoilt.rows, range(len(self._site.inputs[1].value)))
        there = np.ones(count, dtype=np.bool_)
        flow = Flow(
            at.take(np.zeros(count, dtype=np.int64)), spoilt.key, space, spoilt.time, there, tuple(keys), values
        )
        self._site.kept(flow, spoilt.failed, self._site.inputs[1], waited=True)

    def _events(self, left: Flow, right: Flow) -> tuple[Flow, tuple[Int64s, Int64s]]:
        """The records of both sides in the order of their arrival, without columns; by side, the places in it."""
        at = Moments.concat([right.at, left.at])
        order, first = processing(at), len(right)
        arrival = np.empty(len(order), dtype=np.int64)
        arrival[order] = np.arange(len(order), dtype=np.int64)
        key, time = (np.concatenate(both)[order] for both in ((right.key, left.key), (right.time, left.time)))
        there = np.ones(len(order), dtype=np.bool_)
        return Flow(at.take(order), key, self._site.space, time, there, (), ()), (arrival[first:], arrival[:first])

    def _results(self, out: Out, side: Side, rights: Rights) -> Flow:
        """The results, in the order of their moments."""
        operation, site = self._operation, self._site
        ordered = Sorted(rights.rows, len(site.space.keys))
        pieces = ordered.pieces(out.asked(operation))
        met = pieces.counts > 0
        self._note_alone(out, side, ~met)
        if not operation.left and not met.all():
            out, pieces = out.select(np.flatnonzero(met)), pieces.select(met)
        columns, failed = self._calls.results(ordered, out.asked(operation), pieces, rights.args, rights.rows.time)
        flow = self._records(out, side)
        seen = [flow.columns[i] for i in self._items.wanted[0]], [columns[i] for i in self._items.wanted[1]]
        found = self._items.run(Seen(seen[0], out.time), Seen(seen[1], out.time))
        result = Flow(out.at, out.key, site.space, out.time, flow.present, flow.keys, found.columns)
        wrong = {**found.failed, **failed}
        return result.select(self._kept(flow, out.waited, wrong)) if wrong else result

    def _kept(self, flow: Flow, waited: Mask, failed: Failed) -> Mask:
        """Which results are left; a left record whose result fails is lost."""
        kept = np.ones(len(flow), dtype=np.bool_)
        for late in (False, True):
            rows = np.flatnonzero(waited == late)
            places = {row: place for place, row in enumerate(rows.tolist())}
            why = {places[row]: failure for row, failure in failed.items() if row in places}
            if why:
                chosen = np.zeros(len(flow), dtype=np.bool_)
                chosen[rows] = True
                kept[rows] = self._site.kept(flow.select(chosen), why, waited=late)
        return kept

    def _records(self, out: Out, side: Side) -> Flow:
        """Left records at the moments of their results."""
        space, held = self._site.space, side.held
        keys, values = side.flow.keys, side.flow.values
        if len(held.key):
            known = space.codec.decode_columns([place.key for place in held.places])
            keys = stacked(taken(known, held.place), keys)
            values = side.columns(self._layout, np.arange(len(held.key) + len(side.flow)))
        if self._operation.waits or len(out) < len(side.flow):
            keys, values = taken(keys, out.place), taken(values, out.place)
        return Flow(out.at, out.key, space, out.time, np.ones(len(out), dtype=np.bool_), keys, values)

    def _note_alone(self, out: Out, side: Side, alone: Mask) -> None:
        """Counts the left records that have met none."""
        for waited in (False, True):
            some = np.flatnonzero(alone & (out.waited == waited))
            if len(some):
                flow = self._records(out.select(some), side)
                self._site.lose(Missed.NO_RECORD, flow, np.ones(len(some), dtype=np.bool_), waited=waited)

    def _note_late(self, side: Side, timing: Timing) -> None:
        """Counts the left records that come too late to wait, and those that may miss right records."""
        operation, site, flow = self._operation, self._site, side.flow
        clock = timing.clock[side.rows.arrival]
        found_from = np.maximum(clock - operation.span, self._state.floor[1])  # less may be kept, by a former `grace`
        hidden = np.maximum(flow.time - operation.before, 0) < found_from
        site.lose(Missed.OLDER_THAN_RETENTION, flow, hidden)
        if operation.waits:
            behind = clock - flow.time - operation.after
            late = behind > operation.grace
            site.lose(Missed.LATE, flow, late)
            if late.any():
                site.peak(GRACE_NEEDED, int(behind[late].max()))

    def _note_late_rights(self, right: Flow, arrival: Int64s, timing: Timing) -> None:
        """Counts the right records that came when left ones for which they count may have gone out, as the late
        versions of a table are. Without `grace` and `after` those behind the clock: of equal times the order decides.
        Of a stream that is joined with itself, those that are late as left ones are not counted twice."""
        operation, site, clock = self._operation, self._site, self._site.batch.clock
        if clock is None or not len(right):
            return
        behind = clock.ahead_of(site.node.name, right.at) - right.time - int(operation.strictly_before)
        if operation.waits:
            late = behind > operation.grace
        else:  # left records go out as they come, some of them ahead of the node's clock
            late = clock.soonest_ahead_of(site.node.name, site.node.inputs[1], right.at) > right.time
        if site.node.inputs[0] == site.node.inputs[1] and operation.waits:
            late &= timing.clock[arrival] - right.time <= operation.after + operation.grace
        if late.any():
            site.losses.late(site.node, int(late.sum()), max(int(behind[late].max()), 1))

    def waiting(self) -> list[tuple[int, bytes]]:
        """Never asked for: see `Step`."""
        raise AssertionError("what is held goes by the clock of the input, which releases it at its end")

    def release(self, waiting: list[tuple[int, bytes]], at: Moments) -> Flow:
        """Never asked for: see `Step`."""
        raise AssertionError("nothing is taken out of it")
