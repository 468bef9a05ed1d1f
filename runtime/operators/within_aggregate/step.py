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
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Schema, WithinAggregate
from vsc.runtime.metrics import GRACE_NEEDED, Missed
from vsc.runtime.operators.clock import Timing
from vsc.runtime.operators.columns.evaluation import Evaluation, Failed
from vsc.runtime.operators.columns.evaluation import Side as Seen
from vsc.runtime.operators.columns.flow import Flow, taken
from vsc.runtime.operators.columns.moments import Moments, processing
from vsc.runtime.operators.operator import Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.stream_stream_join.pairs import Rows
from vsc.runtime.operators.stream_stream_join.sides import Held, Layout, Side, bucket_width, grouped, placed
from vsc.runtime.operators.tables.pool import Pool
from vsc.runtime.operators.within_aggregate.calls import Calls
from vsc.runtime.operators.within_aggregate.ranges import Asked, Sorted
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.joined import Joined, RecordKey, unpacked

__all__ = ["Aggregating"]

_NO_ROWS = np.zeros(0, dtype=np.int64)
_BEGINNING = -(2**62)


@dataclass(frozen=True, slots=True)
class _Out:
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

    def select(self, rows: Int64s) -> _Out:
        """The records at `rows`."""
        return _Out(
            self.at.take(rows), self.key[rows], self.place[rows], self.time[rows], self.limit[rows], self.seen[rows],
            self.waited[rows],
        )  # fmt: skip


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
        left, right = (self._entered(side, flow) for side, flow in enumerate(feeding))
        right = self._counting(right)
        events, arrivals = self._events(left, right)
        timing = self._site.timing(events, self._state.stream_time)
        side, begins, event = self._waiting(left, arrivals[0], timing)
        rows, stored, read = self._right(side, left, right, arrivals[1])
        out = self._outgoing(side, begins, event, timing)
        flow = self._results(out, side, rows, stored, right)
        self._note_late(side, timing)
        self._keep(side, right, arrivals, begins[event[len(side.held.key) :] >= timing.never], event, timing, read)
        return flow

    # ------------------------------------------------------------------------------------------------------- what comes

    def _entered(self, side: int, flow: Flow | None) -> Flow:
        return self._site.nothing(side) if flow is None else self._site.with_value(flow, side)

    def _counting(self, right: Flow) -> Flow:
        """The right records without those on which an argument of a call fails."""
        found = self._calls.arguments.over(right)
        if not found.failed:
            return right
        return right.select(self._site.kept(right, found.failed, self._site.inputs[1]))

    def _events(self, left: Flow, right: Flow) -> tuple[Flow, tuple[Int64s, Int64s]]:
        """The records of both sides in the order of their arrival, without columns; by side, the places in it."""
        at = Moments.concat([right.at, left.at])
        order, first = processing(at), len(right)
        arrival = np.empty(len(order), dtype=np.int64)
        arrival[order] = np.arange(len(order), dtype=np.int64)
        key, time = (np.concatenate(both)[order] for both in ((right.key, left.key), (right.time, left.time)))
        there = np.ones(len(order), dtype=np.bool_)
        return Flow(at.take(order), key, self._site.space, time, there, (), ()), (arrival[first:], arrival[:first])

    def _waiting(self, left: Flow, arrival: Int64s, timing: Timing) -> tuple[Side, Int64s, Int64s]:
        """The left side with what it holds and may come out, the records of the batch that begin to wait, and the
        events at which the held ones, then these, come out."""
        operation, state, space = self._operation, self._state, self._site.space
        wait = operation.after + operation.grace
        held = Held.of(state.waiting_before(0, timing.now - wait) if operation.waits else [], space)
        side = Side(0, left, Rows(left.key, left.time, arrival, 0), pa.array([], pa.binary()), held)
        if not operation.waits:
            return side, _NO_ROWS, _NO_ROWS
        begins = np.flatnonzero(left.time + wait >= timing.clock[arrival])
        due = np.concatenate([held.time, left.time[begins]]) + wait + 1
        return side, begins, timing.passes(due)

    def _outgoing(self, side: Side, begins: Int64s, event: Int64s, timing: Timing) -> _Out:
        """All left records whose results go out in this batch, in the order of their moments."""
        operation, held, left = self._operation, side.held, side.flow
        once = np.ones(len(left), dtype=np.bool_)
        once[begins] = False
        rows, arrival = np.flatnonzero(once), side.rows.arrival[once]
        limit = timing.clock[arrival] - operation.span
        at = timing.given(arrival, np.zeros(len(rows), dtype=np.int64))
        here = _Out(
            at, left.key[rows], side.place(rows), left.time[rows], limit, arrival, np.zeros(len(rows), np.bool_)
        )
        if not operation.waits:
            return here
        key, time = (np.concatenate(both) for both in ((held.key, left.key[begins]), (held.time, left.time[begins])))
        place = np.concatenate([side.held_place(np.arange(len(held.key))), side.place(begins)])
        out = np.flatnonzero(event < timing.never)
        key, time, place, event = key[out], time[out], place[out], event[out]
        due = time + operation.after + operation.grace + 1
        names = self._site.space.keys
        order, moments = timing.sent(event, due, [names[number] for number in key.tolist()])
        seen = timing.seen(event, due)[order]
        every = np.full(len(order), _BEGINNING)
        later = _Out(moments, key[order], place[order], time[order], every, seen, np.ones(len(order), np.bool_))
        return _merged(here, later)

    # ---------------------------------------------------------------------------------------------------- what is there

    def _right(
        self, side: Side, left: Flow, right: Flow, arrival: Int64s
    ) -> tuple[Rows, pa.BinaryArray, dict[RecordKey, bytes]]:
        """The right rows that left records of this batch may ask for, those of the store first; and their buckets."""
        operation, state, space = self._operation, self._state, self._site.space
        width = bucket_width(operation)
        times = np.concatenate([side.held.time, left.time])
        keys = np.concatenate([side.held.key, left.key])
        asked = [(np.maximum(times - operation.before, 0) // width, keys), ((times + operation.after) // width, keys)]
        asked.append((right.time // width, right.key))
        bucket, key = (np.concatenate(part) for part in zip(*asked, strict=True))
        there = (bucket * width <= state.newest[1]) & ((bucket + 1) * width > state.floor[1])
        order, first = grouped(bucket[there], key[there])
        places = zip(bucket[there][order][first].tolist(), key[there][order][first].tolist(), strict=True)
        wanted = [RecordKey(1, number, space.keys[of]) for number, of in places]
        read = {place: value for place, value in zip(wanted, state.rows(wanted), strict=True) if value is not None}
        of, time, stored = unpacked(list(read.values()))
        own = space.encoded([place.key for place in read])[of]
        before = np.full(len(own), -1, dtype=np.int64)
        rows = Rows(
            np.concatenate([own, right.key]), np.concatenate([time, right.time]), np.concatenate([before, arrival]),
            len(own),
        )  # fmt: skip
        return rows, stored, read

    # --------------------------------------------------------------------------------------------------- what comes out

    def _results(self, out: _Out, side: Side, rows: Rows, stored: pa.BinaryArray, right: Flow) -> Flow:
        operation, site = self._operation, self._site
        args, rows = self._arguments(rows, stored, right)
        ordered, last = Sorted(rows), out.time - 1 if operation.strictly_before else out.time + operation.after
        asked = [Asked(out.key, np.maximum(out.time - over, out.limit), last, out.seen) for over in operation.overs]
        whole = Asked(out.key, np.maximum(out.time - operation.before, out.limit), last, out.seen)
        met = ordered.any(whole)
        if operation.left:
            for waited in (False, True):
                alone = np.flatnonzero(~met & (out.waited == waited))
                flow = self._records(out.select(alone), side)
                site.lose(Missed.NO_RECORD, flow, np.ones(len(alone), dtype=np.bool_), waited=waited)
        else:
            kept = np.flatnonzero(met)
            out, asked = (
                out.select(kept),
                [Asked(a.key[kept], a.first[kept], a.last[kept], a.seen[kept]) for a in asked],
            )
        columns, failed = self._calls.results(ordered, asked, args, rows.time)
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

    def _arguments(self, rows: Rows, stored: pa.BinaryArray, right: Flow) -> tuple[tuple[pa.Array, ...], Rows]:
        """The arguments of the calls for all right rows, without the stored ones on which one fails: the calls are
        others than when these came."""
        layout, count = self._layout, rows.stored
        every = layout.all(1, right.values, len(right))
        values = layout.own(1, Pool(layout.codec, stored, every).take(np.arange(len(rows.key), dtype=np.int64)))
        if not len(rows.key):
            return self._calls.arguments.over(right).columns, rows
        found = self._calls.arguments.rows((*self._keys(rows.key), *values), rows.time)
        if not found.failed:
            return found.columns, rows
        kept = np.array([row for row in range(len(rows.key)) if row not in found.failed], dtype=np.int64)
        left = Rows(rows.key[kept], rows.time[kept], rows.arrival[kept], int((kept < count).sum()))
        return taken(found.columns, kept), left

    def _records(self, out: _Out, side: Side) -> Flow:
        """Left records at the moments of their results."""
        values, there = side.columns(self._layout, out.place), np.ones(len(out), dtype=np.bool_)
        return Flow(out.at, out.key, self._site.space, out.time, there, self._keys(out.key), values)

    def _keys(self, key: Int64s) -> tuple[pa.Array, ...]:
        """The key columns of the keys with these numbers: others of the batch may be those of records without a key."""
        space = self._site.space
        numbers, row = np.unique(key, return_inverse=True)
        return taken(space.codec.decode_columns([space.keys[number] for number in numbers.tolist()]), row)

    # ----------------------------------------------------------------------------------------------------- what is kept

    def _note_late(self, side: Side, timing: Timing) -> None:
        """Counts the left records that come too late to wait, and those that may miss right records."""
        operation, site, flow = self._operation, self._site, side.flow
        clock = timing.clock[side.rows.arrival]
        hidden = np.maximum(flow.time - operation.before, 0) < clock - operation.span
        site.lose(Missed.OLDER_THAN_RETENTION, flow, hidden)
        if operation.waits:
            behind = clock - flow.time - operation.after
            late = behind > operation.grace
            site.lose(Missed.LATE, flow, late)
            if late.any():
                site.peak(GRACE_NEEDED, int(behind[late].max()))

    def _keep(
        self, side: Side, right: Flow, arrivals: Sequence[Int64s], stays: Int64s, event: Int64s, timing: Timing,
        read: dict[RecordKey, bytes],
    ) -> None:  # fmt: skip
        """Writes the right records that can be found, and the left ones that wait."""
        operation, state, width = self._operation, self._state, bucket_width(self._operation)
        floor = max(timing.kept - operation.span, state.floor[1])
        newest = [
            max([old, *times.tolist()]) for old, times in zip(state.newest, _times(side.flow, right), strict=True)
        ]
        limit = np.maximum(timing.clock[arrivals[1]] - operation.span, state.floor[1])
        bucket = right.time // width
        found = np.flatnonzero((right.time >= limit) & ((bucket + 1) * width > floor))
        other = Side(1, right, Rows(right.key, right.time, arrivals[1], 0), pa.array([], pa.binary()), side.held)
        rows = placed(other, self._layout, found, bucket, read)
        done = event[: len(side.held.key)] < timing.never
        gone = {side.held.places[at] for at in np.unique(side.held.place[done]).tolist()}
        left = sorted(set(zip(side.flow.time[stays].tolist(), side.flow.key[stays].tolist(), strict=True)))
        places = [RecordKey(0, time, side.flow.space.keys[key]) for time, key in left]
        there = zip(places, state.waits(places) if state.waiting else [None] * len(places), strict=True)
        known = {place: value for place, value in there if value is not None and place not in gone}
        puts = placed(side, self._layout, stays, side.flow.time, known)
        if not (rows or puts or gone or timing.kept != state.stream_time or floor != state.floor[1]):
            return
        count = state.waiting + len(stays) - int(done.sum())
        state.stream_time, state.newest, state.floor = timing.kept, newest, [state.floor[0], floor]
        state.write(rows, puts, list(gone), count)

    def waiting(self) -> list[tuple[int, bytes]]:
        """Never asked for: see `Step`."""
        raise AssertionError("what is held goes by the clock of the input, which releases it at its end")

    def release(self, waiting: list[tuple[int, bytes]], at: Moments) -> Flow:
        """Never asked for: see `Step`."""
        raise AssertionError("nothing is taken out of it")


def _times(left: Flow, right: Flow) -> tuple[Int64s, Int64s]:
    return left.time, right.time


def _merged(one: _Out, other: _Out) -> _Out:
    both = _Out(
        Moments.concat([one.at, other.at]),
        np.concatenate([one.key, other.key]),
        np.concatenate([one.place, other.place]),
        np.concatenate([one.time, other.time]),
        np.concatenate([one.limit, other.limit]),
        np.concatenate([one.seen, other.seen]),
        np.concatenate([one.waited, other.waited]),
    )
    return both.select(processing(both.at))
