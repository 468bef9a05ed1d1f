"""`aggregate` of a stream without windows: each record gives its group a new result, at the group's highest event time.

A record without value is dropped and counted (D14). So is a record on whose arguments an expression fails, if the
options say so, and one whose result a versioned store refuses: it is then not part of its group, as in Kafka Streams. A
record whose result fails stays in its group, and gives none (D34).

Each group is read once and written once a batch; the states at all records are computed together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.aggregate.functions.states import EntryRanges, Rows
from vsc.runtime.operators.aggregate.groups.folding import Folding, Groups
from vsc.runtime.operators.aggregate.groups.state import AggregateState
from vsc.runtime.operators.columns.evaluation import Failed
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.tables.store import VersionedColumns
from vsc.runtime.records import Int64s, Mask

__all__ = ["GroupColumns", "numbered"]


class GroupColumns:
    """The groups of a stream, for one batch."""

    def __init__(self, site: Site, folding: Folding, state: AggregateState) -> None:
        self._site, self._folding, self._state = site, folding, state
        self._touched: list[bytes] = []
        self._ended: Groups | None = None
        self._kept = np.zeros(0, dtype=np.bool_)

    def changes(self, flow: Flow, args: tuple[pa.Array, ...]) -> Flow:
        """One result for each record, given the calls' arguments; none where it cannot be computed (D34)."""
        site, arrivals, keys = self._site, self._state.arrive_many(len(flow)), flow.space.keys
        touched, group = numbered(flow.key, len(keys))
        self._touched = [keys[number] for number in touched.tolist()]
        data = self._state.get_many(self._touched)
        known = np.array([row is not None for row in data], dtype=np.bool_)
        stored = self._folding.load(data)
        ranges = EntryRanges(self._state.below, [self._state.entries + kb for kb in self._touched], known)
        rows, failing = Rows(args, flow.time, arrivals), np.zeros(len(flow), dtype=np.bool_)
        while True:
            accepted = self._accepted(flow, group, stored.time, failing)
            start = self._folding.open(ranges, stored)
            segments = Segments(group[accepted], len(touched))
            taken = flow.select(accepted)
            changed, failed = self._folded(taken, segments, start, rows.take(np.flatnonzero(accepted)))
            found = np.zeros(len(flow), dtype=np.bool_)
            found[np.flatnonzero(accepted)[list(failed)]] = True
            if not self._moves_by_results or (found == failing).all():
                break
            failing = found
        self._kept = np.bincount(group[accepted], minlength=len(touched)) > 0
        site.lose(Dropped.EXPIRED, flow, ~accepted)
        return site.stored(changed.select(site.kept(taken, failed)))

    def commit(self) -> None:
        """Writes the groups that have changed."""
        if self._ended is None:
            return
        kept, groups = np.flatnonzero(self._kept), self._state.groups
        puts, deletes = self._folding.writes(self._kept)
        rows = self._folding.store(self._ended.take(kept))
        puts += [(groups + self._touched[at], row) for at, row in zip(kept.tolist(), rows, strict=True)]
        self._state.write(puts, deletes)

    def _folded(self, flow: Flow, segments: Segments, start: Groups, rows: Rows) -> tuple[Flow, Failed]:
        """The results, and which of them fail."""
        running, self._ended = self._folding.fold(start, segments, rows)
        now = running.take(segments.unsorted())
        found = self._folding.results(flow.keys, now)
        return replace(flow, time=now.time, values=found.columns), found.failed

    @property
    def _moves_by_results(self) -> bool:
        """Whether what a versioned table refuses depends on its results, so that what fails has to be known before.

        What fails is found again until it stays the same: each time, the first record that was wrong is right.
        """
        return self._site.batch.clock is None and isinstance(self._site.table, VersionedColumns)

    def _accepted(self, flow: Flow, group: Int64s, start: Int64s, failing: Mask) -> Mask:
        """Which records give a result that the table accepts: a versioned table refuses those that are too old.

        A refused record does not move the table's clock, nor its group's time by enough to matter; one whose result is
        `failing` does not move the clock of records.
        """
        table = self._site.table
        if not isinstance(table, VersionedColumns):
            return np.ones(len(flow), dtype=np.bool_)
        segments = Segments(group, len(start))
        highest, _ = segments.highest(flow.time[segments.order], start)
        times = highest[segments.unsorted()]
        moving = self._site.moving(replace(flow, time=times))
        return table.accepted(times, np.where(failing, -1, moving) if self._moves_by_results else moving)


def numbered(key: Int64s, keys: int) -> tuple[Int64s, Int64s]:
    """The distinct key numbers, ascending, and for each record the place of its own among them."""
    there = np.bincount(key, minlength=keys) > 0
    return np.flatnonzero(there), (np.cumsum(there) - 1)[key]
