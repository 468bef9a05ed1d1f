"""What happens to the records of a corrected join in one batch: each is joined, and versions of the table touch it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.moments import Moments, arrivals, turns
from vsc.runtime.operators.correct.records import Ranges, Records
from vsc.runtime.records import Int64s, Mask

__all__ = ["Events", "events_of"]


@dataclass(frozen=True, slots=True)
class Events:
    """The first `own` are those of the records that came, in their order: each is joined, or removes a row. The others
    are versions that touch a record, by version, then by the record's time and arrival.

    `record` are places in `Records`; `turn` numbers what happens at one moment; `arrived` compares like the moments.
    """

    own: int
    record: Int64s
    at: Moments
    turn: Int64s
    arrived: Int64s

    def __len__(self) -> int:
        return len(self.record)


def events_of(records: Records, versions: Flow, ranges: Ranges, free: Mask) -> Events:
    """What happens to the records; of those that came, versions touch only the ones that are `free` for it."""
    came, stored = records.came, records.stored
    own, others = arrivals(came.at, versions.at)
    record, version = _touching(records, ranges)
    arrived = np.concatenate([np.full(stored, -1, dtype=np.int64), own])
    free = np.concatenate([np.ones(stored, dtype=np.bool_), free])
    touched = free[record] & (arrived[record] < others[version]) & (others[version] < _until(records, arrived)[record])
    record, version = record[touched], version[touched]
    mine = np.arange(stored, len(records), dtype=np.int64)
    at = Moments.concat([came.at, versions.at.take(version)]) if len(version) else came.at
    turn = np.concatenate([np.zeros(len(mine), dtype=np.int64), turns(version) - 1])
    return Events(len(mine), np.concatenate([mine, record]), at, turn, np.concatenate([own, others[version]]))


def _until(records: Records, arrived: Int64s) -> Int64s:
    """When each record is replaced or removed: when the next one of its row arrives."""
    until = np.full(len(records), np.iinfo(np.int64).max, dtype=np.int64)
    if (records.row == np.arange(len(records))).all():
        return until
    order = np.lexsort((arrived, records.row))
    follows = records.row[order][1:] == records.row[order][:-1]
    until[order[:-1][follows]] = arrived[order[1:][follows]]
    return until


def _touching(records: Records, ranges: Ranges) -> tuple[Int64s, Int64s]:
    """The records whose time lies in the ranges, and the ranges in which it does: by range, time, arrival."""
    none = np.zeros(0, dtype=np.int64)
    asked = np.flatnonzero((ranges.low <= ranges.high) & (ranges.low <= records.time.max(initial=-1)))
    if not len(asked):
        return none, none
    reached = np.zeros(int(max(records.key.max(), ranges.key.max())) + 1, dtype=np.bool_)
    reached[ranges.key[asked]] = True
    some = np.flatnonzero(reached[records.key] & (records.time >= ranges.low[asked].min()))
    key, time = records.key[some], records.time[some]
    order = np.lexsort((time, key))  # it is stable, and records are in the order of their arrival
    known = np.unique(time)
    span = len(known) + 1
    places = key[order] * span + np.searchsorted(known, time[order])
    low, high, of = ranges.low[asked], ranges.high[asked], ranges.key[asked] * span
    first = np.searchsorted(places, of + np.searchsorted(known, low, side="left"))
    last = np.searchsorted(places, of + np.searchsorted(known, high, side="right"))
    counts = np.maximum(last - first, 0)
    version = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    at = np.arange(len(version), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts - first, counts)
    return some[order[at]], asked[version]
