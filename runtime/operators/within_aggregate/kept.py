"""What a join that aggregates keeps: right records as long as they can be found, and left ones that wait."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import WithinAggregate
from vsc.runtime.operators.clock import Timing
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.stream_stream_join.pairs import Rows
from vsc.runtime.operators.stream_stream_join.sides import Held, Layout, Side, bucket_width, grouped, placed
from vsc.runtime.operators.stream_stream_join.waiting import waiting_at
from vsc.runtime.operators.within_aggregate.outgoing import Lefts, Out
from vsc.runtime.records import Int64s
from vsc.runtime.state.joined import Joined, RecordKey

__all__ = ["Buckets", "keep", "read"]

Buckets = dict[RecordKey, bytes]


def read(state: Joined, operation: WithinAggregate, space: KeySpace, out: Out, right: Flow) -> Buckets:
    """The buckets of right records that count for what goes out, or into which those of the batch go; by key, then by
    time."""
    width, asked = bucket_width(operation), out.asked(operation)
    bucket = np.concatenate([np.maximum(asked.first, 0), np.maximum(asked.last, 0), right.time]) // width
    key = np.concatenate([out.key, out.key, right.key])
    there = (bucket * width <= state.newest[1]) & ((bucket + 1) * width > state.floor[1])
    order, first = grouped(key[there], bucket[there])
    places = zip(key[there][order][first].tolist(), bucket[there][order][first].tolist(), strict=True)
    wanted = [RecordKey(1, number, space.keys[of]) for of, number in places]
    return {place: value for place, value in zip(wanted, state.rows(wanted), strict=True) if value is not None}


def keep(
    state: Joined, operation: WithinAggregate, layout: Layout, lefts: Lefts, right: Flow, arrival: Int64s,
    timing: Timing, buckets: Buckets, repaired: Buckets,
) -> None:  # fmt: skip
    """Writes the right records that can be found, and the left ones that wait. `repaired`: those of the `buckets` that
    have lost records."""
    side, count = lefts.side, lefts.held
    floor = max(timing.kept - operation.span, state.floor[1])
    width, whole = bucket_width(operation), {**buckets, **repaired}
    there = [place for place in repaired if (place.number + 1) * width > floor]
    found = _found(state, operation, layout, right, arrival, timing, floor, whole)
    rows = list({**{place: repaired[place] for place in there}, **dict(found)}.items())
    stays = lefts.begins[lefts.event[count:] >= timing.never]
    done = lefts.event[:count] < timing.never
    gone = {side.held.places[at] for at in np.unique(side.held.place[done]).tolist()}
    waiting = waiting_at(state, 0, side.flow.space.keys, side.flow.time[stays], side.flow.key[stays])
    known = {place: value for place, value in waiting.items() if place not in gone}
    puts = placed(side, layout, stays, side.flow.time, known)
    if not (rows or puts or gone or timing.kept != state.stream_time or floor != state.floor[1]):
        return
    newest = (int(flow.time.max(initial=old)) for flow, old in zip((side.flow, right), state.newest, strict=True))
    state.stream_time, state.newest, state.floor = timing.kept, list(newest), [state.floor[0], floor]
    state.write(rows, puts, list(gone), state.waiting + len(stays) - int(done.sum()))


def _found(
    state: Joined, operation: WithinAggregate, layout: Layout, right: Flow, arrival: Int64s, timing: Timing, floor: int,
    buckets: Buckets,
) -> list[tuple[RecordKey, bytes]]:  # fmt: skip
    """The buckets with the right records of the batch that can be found when they come, and after it."""
    width = bucket_width(operation)
    limit = np.maximum(timing.clock[arrival] - operation.span, state.floor[1])
    bucket = right.time // width
    found = np.flatnonzero((right.time >= limit) & ((bucket + 1) * width > floor))
    side = Side(1, right, Rows(right.key, right.time, arrival, 0), pa.array([], pa.binary()), Held.of([], right.space))
    return placed(side, layout, found, bucket, buckets)
