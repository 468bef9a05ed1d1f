"""Which records of a side find no partner, when they come out, and what the state keeps of those that wait on.

All records of a side, key and time that wait have the same partners, so the state has them in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vsc.plan.nodes import StreamStreamJoin
from vsc.runtime.operators.clock import Timing
from vsc.runtime.operators.stream_stream_join.pairs import Pairs
from vsc.runtime.operators.stream_stream_join.sides import Layout, Side, placed
from vsc.runtime.records import END_OF_TIME, Int64s, Mask
from vsc.runtime.state.joined import Joined, RecordKey, records_in

__all__ = ["Alone", "Changes", "alone", "changes", "waiting_at"]


@dataclass(frozen=True, slots=True)
class Alone:
    """The records of a side without a partner, and those that had waited and have one now.

    `at_once` are those of the batch that come out as they come. What comes out later: its places in the side's
    columns (`out`), the numbers of its `keys`, its `times`, when it is `due`, and the `events`. `stays` are the records
    of the batch that wait on, `done` the held ones that do not; `met` the rows from before the batch that were found.
    """

    side: Side
    at_once: Mask
    out: Int64s
    keys: Int64s
    times: Int64s
    due: Int64s
    events: Int64s
    stays: Int64s
    done: Mask
    met: Int64s


def alone(side: Side, operation: StreamStreamJoin, patience: int, pairs: Pairs, timing: Timing) -> Alone:
    """The records of a side that come out alone, if the join keeps them. `patience`: how far the clock may be past the
    last time of a partner when a record comes that is to wait."""
    rows, held, flow = side.rows, side.held, side.flow
    ahead = operation.ahead[side.number]
    arrival, late = rows.arrival[rows.stored :], flow.time + ahead
    single = ~pairs.looked(side.number, rows)
    at_once = single & (late + patience < timing.clock[arrival])
    begins = np.flatnonzero(single & ~at_once)
    partner, found = pairs.partners(side.number)
    first = np.full(len(rows.time), END_OF_TIME, dtype=np.int64)
    first[partner[::-1]] = found[::-1]
    keys, times = np.concatenate([held.key, flow.key[begins]]), np.concatenate([held.time, flow.time[begins]])
    before = np.append(first, END_OF_TIME)[_rows_of(side)]
    met = np.concatenate([before, first[rows.stored + begins]])
    due = times + ahead + operation.grace + 1
    event = timing.passes(due)
    joined = met < timing.seen(event, due)
    out = np.flatnonzero(~joined & (event < timing.never))
    count = len(held.key)
    places = np.concatenate([side.held_place(np.arange(count)), side.place(rows.stored + begins)])
    stays = begins[~joined[count:] & (event[count:] >= timing.never)]
    done = joined[:count] | (event[:count] < timing.never)
    old = np.unique(partner[partner < rows.stored])
    return Alone(side, at_once, places[out], keys[out], times[out], due[out], event[out], stays, done, old)


def _rows_of(side: Side) -> Int64s:
    """For each held record a row from before the batch with its key and time; -1: it is kept no longer."""
    rows, held, count = side.rows, side.held, side.rows.stored
    if not count or not len(held.key):
        return np.full(len(held.key), -1, dtype=np.int64)
    known = np.unique(rows.time[:count])
    span = len(known) + 1

    def places(key: Int64s, time: Int64s) -> Int64s:
        found: Int64s = key * span + np.searchsorted(known, time)
        return found

    every = places(rows.key[:count], rows.time[:count])
    order = np.argsort(every, kind="stable")
    row = order[np.minimum(np.searchsorted(every[order], places(held.key, held.time)), count - 1)]
    same = (rows.key[row] == held.key) & (rows.time[row] == held.time)
    return np.where(same, row, -1)


@dataclass(frozen=True, slots=True)
class Changes:
    """What becomes of the records that wait: by place those to write, the places to remove, how many wait then."""

    puts: Sequence[tuple[RecordKey, bytes]]
    gone: Sequence[RecordKey]
    count: int


def changes(state: Joined, found: Sequence[Alone], layout: Layout) -> Changes:
    """What becomes of waiting records, by what was `found` of the sides."""
    puts: list[tuple[RecordKey, bytes]] = []
    gone: dict[RecordKey, int] = {}
    added = 0
    for one in found:
        side, names = one.side, one.side.flow.space.keys
        gone.update((side.held.places[at], int(n)) for at, n in _counted(side.held.place[one.done]))
        met = waiting_at(state, side.number, names, side.rows.time[one.met], side.rows.key[one.met])
        gone.update((place, records_in(value)) for place, value in met.items() if place not in gone)
        known = waiting_at(state, side.number, names, side.flow.time[one.stays], side.flow.key[one.stays])
        left = {place: value for place, value in known.items() if place not in gone}
        puts += placed(side, layout, one.stays, side.flow.time, left)
        added += len(one.stays)
    return Changes(puts, list(gone), state.waiting + added - sum(gone.values()))


def waiting_at(state: Joined, side: int, names: Sequence[bytes], time: Int64s, key: Int64s) -> dict[RecordKey, bytes]:
    """The records that wait at these times and keys, by their places."""
    if not state.waiting:
        return {}
    every = dict.fromkeys(
        RecordKey(side, *at) for at in zip(time.tolist(), (names[k] for k in key.tolist()), strict=True)
    )
    return {p: value for p, value in zip(every, state.waits(list(every)), strict=True) if value is not None}


def _counted(numbers: Int64s) -> list[tuple[int, int]]:
    values, counts = np.unique(numbers, return_counts=True)
    return list(zip(values.tolist(), counts.tolist(), strict=True))
