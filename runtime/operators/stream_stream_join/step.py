"""A join of two streams at work on one batch.

A record meets those records of the other side that are there and close enough in time, each once, in the order of
(time, arrival). One without a partner, of a side that keeps them, waits until the clock has passed the last time of a
partner, and the grace; it comes out at once if that has happened already. A record can be found as long as one that is
not late could meet it.

The clock of records, as that of Kafka Streams: what is due comes out in front of the results of the record that moves
it, by (time, right before left, key); one that comes after the last time of a partner comes out at once, whatever the
grace (D32); a record is found while it is not further behind the newest record of its own side than
`StreamStreamJoin.span` (D21). By the clock of the input (D25) what is due comes out at its own moment, and what is
found goes by that clock, so that no result depends on partitions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vsc.plan.nodes import StreamStreamJoin
from vsc.runtime.metrics import GRACE_NEEDED, Missed
from vsc.runtime.operators.clock import Timing
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.moments import Moments, processing, turns
from vsc.runtime.operators.operator import Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.stream_stream_join.pairs import Pairs, meeting
from vsc.runtime.operators.stream_stream_join.results import Made, Results
from vsc.runtime.operators.stream_stream_join.sides import Held, Layout, Side, bucket_width, load, placed
from vsc.runtime.operators.stream_stream_join.waiting import Alone, alone, changes
from vsc.runtime.records import Int64s
from vsc.runtime.state.joined import Joined, RecordKey, packed, unpacked

__all__ = ["Joining"]

_SIDES = (0, 1)
_FIRST = (b"\1", b"\0")
"""By side, what comes before the key where both sides come out: the right one is first."""


class Joining(Step):
    """What one join of streams finds and keeps, in one batch."""

    def __init__(self, site: Site, operation: StreamStreamJoin) -> None:
        self._site, self._operation = site, operation
        self._patience = 0 if site.batch.clock is None else operation.grace  # D32
        self._state = Joined(site.kv, site.prefix, bucket_width(operation))
        self._layout = Layout(*site.inputs)
        self._results = Results(site, operation, self._layout)

    def fed(self, feeding: Sequence[Flow | None]) -> Flow:
        """The results at the records of both sides, and of what time releases between them."""
        operation, state = self._operation, self._state
        flows = [self._entered(side, flow) for side, flow in enumerate(feeding)]
        events, arrivals = self._events(flows)
        timing = self._site.timing(events, state.stream_time)
        newest = tuple(state.newest)
        limits, ends = self._limits(events, arrivals, timing)
        sides, read = load(state, operation, flows, arrivals, [self._held(side, timing) for side in _SIDES], newest)
        pairs = meeting(sides[0].rows, sides[1].rows, operation.before, operation.after, limits)
        single = [
            alone(side, operation, self._patience, pairs, timing) for side in sides if operation.keeping[side.number]
        ]
        self._note_late(sides, pairs, timing, limits)
        self._keep(sides, single, read, limits, ends, timing)
        return self._sent(sides, pairs, single, timing)

    def waiting(self) -> list[tuple[int, tuple[int, bytes, bytes]]]:
        """Takes out all that waits, by (time, right before left, key): when, and its side, key and record."""
        due = []
        for place, value in self._state.scan_waiting():
            _, times, rows = unpacked([value])
            due += [
                (time, (place.side, place.key, row)) for time, row in zip(times.tolist(), rows.to_pylist(), strict=True)
            ]
        due.sort(key=lambda one: (one[0], _FIRST[one[1][0]], one[1][1]))
        self._state.write([], [], [place for place, _ in self._state.scan_waiting()], 0)
        return due

    def release(self, waiting: list[tuple[int, tuple[int, bytes, bytes]]], at: Moments) -> Flow:
        """Sends what `waiting` took out, each at its moment."""
        side = np.array([side for _, (side, _, _) in waiting], dtype=np.int64)
        space, sides, places = self._site.space, [], []
        for number in _SIDES:
            mine = [(RecordKey(number, time, key), packed(None, np.array([time]), [row]))
                    for time, (of, key, row) in waiting if of == number]  # fmt: skip
            held = Held.of(mine, space)
            found, _ = load(self._state, self._operation, self._nothing(), (np.zeros(0, dtype=np.int64),) * 2,
                            (held, held), (-1, -1))  # fmt: skip
            sides.append(found[number])
            places.append(np.where(side == number, np.cumsum(side == number) - 1, -1))
        key = space.encoded([key for _, (_, key, _) in waiting])
        given = self._site.give(at, np.zeros(len(at), dtype=np.int64))
        made = Made(given, key, (places[0], places[1]), side == 0)
        return self._came_out(made, sides)

    # ------------------------------------------------------------------------------------------------------- what comes

    def _nothing(self) -> list[Flow]:
        return [self._site.nothing(side) for side in _SIDES]

    def _entered(self, side: int, flow: Flow | None) -> Flow:
        """The records of a side that have a value (D23)."""
        return self._site.nothing(side) if flow is None else self._site.with_value(flow, side)

    def _events(self, flows: Sequence[Flow]) -> tuple[Flow, tuple[Int64s, Int64s]]:
        """The records of both sides in the order of their arrival, without columns; by side, the places in it."""
        at = Moments.concat([flow.at for flow in flows])
        order, first = processing(at), len(flows[0])
        arrival = np.empty(len(order), dtype=np.int64)
        arrival[order] = np.arange(len(order), dtype=np.int64)
        key, time = (np.concatenate(both)[order] for both in ([f.key for f in flows], [f.time for f in flows]))
        there = np.ones(len(order), dtype=np.bool_)
        return Flow(at.take(order), key, self._site.space, time, there, (), ()), (arrival[:first], arrival[first:])

    def _limits(
        self, events: Flow, arrivals: Sequence[Int64s], timing: Timing
    ) -> tuple[tuple[Int64s, Int64s], list[int]]:
        """By side, the time up to which its records are found no more: ahead of each event, and in the end."""
        state, span = self._state, self._operation.span
        limits, ends = [], []
        for side, arrival in enumerate(arrivals):
            times = np.full(len(events) + 1, -1, dtype=np.int64)
            times[0], times[arrival + 1] = state.newest[side], events.time[arrival]
            newest = np.maximum.accumulate(times)
            state.newest[side] = int(newest[-1])
            if self._site.batch.clock is None:
                limit, end = newest[:-1] - span, int(newest[-1]) - span
            else:  # whoever is not late finds all
                limit, end = timing.clock - span - 1, timing.kept - span - 1
            limits.append(np.maximum(limit, state.floor[side] - 1))
            ends.append(max(end + 1, state.floor[side]))
        return (limits[0], limits[1]), ends

    def _held(self, side: int, timing: Timing) -> Held:
        """The records of a side that wait and are due in this batch."""
        operation, found = self._operation, []
        if operation.keeping[side]:
            found = self._state.waiting_before(side, timing.now - operation.ahead[side] - operation.grace)
        return Held.of(found, self._site.space)

    def _note_late(self, sides: Sequence[Side], pairs: Pairs, timing: Timing, limits: tuple[Int64s, Int64s]) -> None:
        """Counts the records that come too late to find all their partners, or to wait for one."""
        operation, site = self._operation, self._site
        for side in sides:
            ahead, keeps = operation.ahead[side.number], operation.keeping[side.number]
            back = operation.before if side.number == 0 else operation.after
            flow, arrival = side.flow, side.rows.arrival[side.rows.stored :]
            behind = timing.clock[arrival] - flow.time - ahead
            closed = behind > operation.grace
            hidden = np.maximum(flow.time - back, 0) <= limits[1 - side.number][arrival]
            late = ~pairs.looked(side.number, side.rows) & ~hidden & (behind > self._patience if keeps else closed)
            schema = site.inputs[side.number]
            site.lose(Missed.OLDER_THAN_RETENTION, flow, hidden, schema)
            site.lose(Missed.LATE, flow, late, schema)
            if closed.any():
                site.peak(GRACE_NEEDED, int(behind[closed].max()))

    # -------------------------------------------------------------------------------------------------- what is kept

    def _keep(
        self,
        sides: Sequence[Side],
        single: Sequence[Alone],
        read: dict[RecordKey, bytes],
        limits: tuple[Int64s, Int64s],
        ends: list[int],
        timing: Timing,
    ) -> None:
        """Writes the records that can be found, and those that wait."""
        state, width = self._state, bucket_width(self._operation)
        rows: list[tuple[RecordKey, bytes]] = []
        for side in sides:
            flow, arrival = side.flow, side.rows.arrival[side.rows.stored :]
            bucket = flow.time // width
            found = np.flatnonzero(
                (flow.time > limits[side.number][arrival]) & ((bucket + 1) * width > ends[side.number])
            )
            rows += placed(side, self._layout, found, bucket, read)
        waiting = changes(state, single, self._layout)
        if rows or waiting.puts or waiting.gone or timing.kept != state.stream_time or ends != state.floor:
            state.stream_time, state.floor = timing.kept, ends
            state.write(rows, waiting.puts, waiting.gone, waiting.count)

    # -------------------------------------------------------------------------------------------------- what comes out

    def _sent(self, sides: Sequence[Side], pairs: Pairs, single: Sequence[Alone], timing: Timing) -> Flow:
        """All results: what time releases, and those of the records themselves, behind what these release."""
        released, before = self._released(single, timing)
        left, right = sides
        places = (left.place(pairs.left), right.place(pairs.right))
        parts = [(pairs.event, left.rows.key[pairs.left], *places, pairs.left_looks)]
        for one in single:
            rows = np.flatnonzero(one.at_once) + one.side.rows.stored
            own, is_left = [np.full(len(rows), -1, dtype=np.int64) for _ in _SIDES], one.side.number == 0
            own[one.side.number] = one.side.place(rows)
            of_left = np.full(len(rows), is_left, dtype=np.bool_)
            parts.append((one.side.rows.arrival[rows], one.side.rows.key[rows], own[0], own[1], of_left))
        order = np.argsort(np.concatenate([part[0] for part in parts]), kind="stable")
        event, key, lefts, rights, of_left = (np.concatenate(part)[order] for part in zip(*parts, strict=True))
        made = Made(timing.given(event, before[event] + turns(event)), key, (lefts, rights), of_left)
        results = self._results.of(made, sides, np.zeros(len(made), dtype=np.bool_))
        if not single:  # nothing waits here, so the moments have no levels for what time releases
            return results
        return Flow.merged([self._came_out(released, sides), results])

    def _released(self, single: Sequence[Alone], timing: Timing) -> tuple[Made, Int64s]:
        """What time releases, and how much of it comes in front of the results of each record."""
        none = np.zeros(0, dtype=np.int64)
        key, out, event, due, time = (
            np.concatenate([none, *(getattr(one, name) for one in single)])
            for name in ("keys", "out", "events", "due", "times")
        )
        side = np.concatenate([none, *(np.full(len(one.out), one.side.number) for one in single)])
        names = self._site.space.keys
        sorting = [_FIRST[of] + names[number] for of, number in zip(side.tolist(), key.tolist(), strict=True)]
        order, at = timing.sent(event, due, sorting, time)
        count = len(timing.clock)
        before = np.bincount(event[event < count], minlength=count)
        left = side == 0
        made = Made(at, key[order], (np.where(left, out, -1)[order], np.where(left, -1, out)[order]), left[order])
        return made, before

    def _came_out(self, made: Made, sides: Sequence[Side]) -> Flow:
        """The results of records that have waited, and found no partner."""
        for number in _SIDES:
            flow = self._results.records(made, sides, number)
            every = np.ones(len(flow), dtype=np.bool_)
            self._site.lose(Missed.NO_RECORD, flow, every, self._site.inputs[number], waited=True)
        return self._results.of(made, sides, np.ones(len(made), dtype=np.bool_))
