"""`aggregate` of a stream without windows: each record gives its group a new result, at the group's highest event time.

A record without value is dropped and counted (D14). So is a record on which an expression fails, if the options say so,
and one whose result a versioned store refuses: it is then not part of its group, as in Kafka Streams.

Each group is read once and written once a batch; the states at all records are computed together. A group in which a
result cannot be computed is processed record by record (`group_loop`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.aggregate.functions.states import EntryRanges, Rows
from vsc.runtime.operators.aggregate.groups.folding import Folding, Groups
from vsc.runtime.operators.aggregate.groups.group_loop import GroupLoop
from vsc.runtime.operators.aggregate.groups.state import AggregateState
from vsc.runtime.operators.columns.evaluation import Failed
from vsc.runtime.operators.columns.flow import Flow, chosen
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.tables.store import VersionedColumns
from vsc.runtime.records import Int64s, Mask

__all__ = ["GroupColumns", "numbered"]


class GroupColumns:
    """The groups of a stream, for one batch. `loop` processes those in which a record fails."""

    def __init__(self, site: Site, folding: Folding, loop: GroupLoop, state: AggregateState) -> None:
        self._site, self._folding, self._loop, self._state = site, folding, loop, state
        self._touched: list[bytes] = []
        self._ended: Groups | None = None
        self._kept = np.zeros(0, dtype=np.bool_)
        self._looped = False

    def changes(self, flow: Flow, args: tuple[pa.Array, ...]) -> Flow:
        """One result for each record, given the calls' arguments."""
        arrivals, keys = self._state.arrive_many(len(flow)), flow.space.keys
        touched, group = numbered(flow.key, len(keys))
        self._touched = [keys[number] for number in touched.tolist()]
        data = self._state.get_many(self._touched)
        known = np.array([row is not None for row in data], dtype=np.bool_)
        start = self._folding.load(data)
        ranges = EntryRanges(self._state.below, [self._state.entries + kb for kb in self._touched], known)
        start = self._folding.open(ranges, start)
        accepted = self._accepted(flow, group, start.time)
        rows = Rows(args, flow.time, arrivals).take(np.flatnonzero(accepted))
        segments = Segments(group[accepted], len(touched))
        changed, failed = self._folded(flow.select(accepted), segments, start, rows)
        again = self._again(group, np.flatnonzero(accepted)[list(failed)])
        self._kept = np.bincount(group[accepted & ~again], minlength=len(touched)) > 0
        if not again.any():
            self._site.lose(Dropped.EXPIRED, flow, ~accepted)
            return self._site.stored(changed)
        self._looped = True
        looped = self._loop.changes(flow.select(again), chosen(args, again), arrivals[again])
        return self._site.stored(Flow.merged([changed.select(~again[accepted]), looped]))

    def commit(self) -> None:
        """Writes the groups that have changed."""
        if self._ended is None:
            return
        kept, groups = np.flatnonzero(self._kept), self._state.groups
        puts, deletes = self._folding.writes(self._kept)
        rows = self._folding.store(self._ended.take(kept))
        puts += [(groups + self._touched[at], row) for at, row in zip(kept.tolist(), rows, strict=True)]
        if self._looped:
            puts += self._loop.writes()
        self._state.write(puts, deletes)

    def _folded(self, flow: Flow, segments: Segments, start: Groups, rows: Rows) -> tuple[Flow, Failed]:
        """The results, and which of them fail."""
        running, self._ended = self._folding.fold(start, segments, rows)
        now = running.take(segments.unsorted())
        found = self._folding.results(flow.keys, now)
        return replace(flow, time=now.time, values=found.columns), found.failed

    def _accepted(self, flow: Flow, group: Int64s, start: Int64s) -> Mask:
        """Which records give a result that the table accepts: a versioned table refuses those that are too old.

        A refused record does not move the table's clock, nor its group's time by enough to matter.
        """
        table = self._site.table
        if not isinstance(table, VersionedColumns):
            return np.ones(len(flow), dtype=np.bool_)
        segments = Segments(group, len(start))
        highest, _ = segments.highest(flow.time[segments.order], start)
        times = highest[segments.unsorted()]
        return table.accepted(times, self._site.moving(replace(flow, time=times)))

    def _again(self, group: Int64s, failed: Int64s) -> Mask:
        """The records of groups in which one fails; all records if that decides what a versioned table refuses."""
        if len(failed) and isinstance(self._site.table, VersionedColumns):
            return np.ones(len(group), dtype=np.bool_)
        return np.isin(group, group[failed])


def numbered(key: Int64s, keys: int) -> tuple[Int64s, Int64s]:
    """The distinct key numbers, ascending, and for each record the place of its own among them."""
    there = np.bincount(key, minlength=keys) > 0
    return np.flatnonzero(there), (np.cumsum(there) - 1)[key]
