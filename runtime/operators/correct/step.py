"""A corrected join at work on one batch: what its records and the versions of its table give, and what is kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Correct
from vsc.runtime.expressions import null_rows
from vsc.runtime.metrics import Dropped, Missed
from vsc.runtime.operators.columns.flow import Flow, chosen, taken
from vsc.runtime.operators.columns.moments import arrivals
from vsc.runtime.operators.correct.events import Events, events_of
from vsc.runtime.operators.correct.layout import Kept, Layout
from vsc.runtime.operators.correct.records import Ranges, Records, records_of
from vsc.runtime.operators.correct.results import Found, Results
from vsc.runtime.operators.late_versions import count_late
from vsc.runtime.operators.operator import Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.stream_stream_join.sides import grouped
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.corrected import Corrected, Place, width_of
from vsc.runtime.state.joined import packed, packed_each

__all__ = ["Correcting"]


class Correcting(Step):
    """One corrected join, in one batch."""

    def __init__(self, site: Site, operation: Correct) -> None:
        self._site, self._operation = site, operation
        self._layout = Layout(operation, site.inputs[0])
        self._state = Corrected(site.kv, site.prefix)
        self._by = site.evaluation(operation.by)
        self._results = Results(site, operation, self._layout)

    def fed(self, feeding: Sequence[Flow | None]) -> Flow:
        """The results of new records, and of those that versions of the table correct."""
        came, versions = (self._site.nothing(port) if flow is None else flow for port, flow in enumerate(feeding))
        came, by = self._entered(came)
        old, new = self._changed(came)
        free = ~null_rows(came.keys, len(came)) & self._in_time(came, new)
        ranges = self._ranges(versions, came)
        asked = ranges.beside(came.select(free & old))
        together = free if self._operation.table else None
        count_late(self._site, self._operation, self._state.floor)
        records = records_of(self._state, self._layout, came, by, asked, (old, new), together)
        events = events_of(records, versions, ranges, free & new)
        found = self._results.at(records, events)
        self._keep(records, events, found, free)
        return self._results.flow(records, events, found)

    def _changed(self, came: Flow) -> tuple[Mask, Mask]:
        """For which records there was a row, and for which there is one."""
        if not self._operation.table:
            return np.zeros(len(came), dtype=np.bool_), np.ones(len(came), dtype=np.bool_)
        old, new = (column.to_numpy(zero_copy_only=False).astype(np.bool_) for column in came.values[:2])
        return old, new

    def _entered(self, flow: Flow) -> tuple[Flow, tuple[pa.Array, ...]]:
        """The stream's records that have a value and a key of their result, and these keys."""
        site, flow = self._site, self._site.with_value(flow)
        by = self._by.over(flow)
        kept = site.kept(flow, by.failed)
        null = null_rows(by.columns, len(flow)) & kept
        site.lose(Dropped.NULL_KEY, flow, null)
        kept &= ~null
        return flow.select(kept), chosen(by.columns, kept)

    def _clock(self, flow: Flow) -> Int64s:
        clock = self._site.batch.clock
        assert clock is not None, "the compiler refuses to correct by the clock of records"
        return clock.at(self._site.node.name, flow.at)

    def _in_time(self, came: Flow, new: Mask) -> Mask:
        """Which records can still be corrected; the others are counted."""
        late: Mask = (self._clock(came) - came.time > self._operation.within) | (came.time < self._state.floor)
        self._site.lose(Missed.NOT_CORRECTED, came, late & new)
        return ~late

    def _ranges(self, versions: Flow, came: Flow) -> Ranges:
        """For which records the versions are valid, as far as these are kept; for none where all are earlier."""
        after = int(self._operation.strictly_before)  # times are whole milliseconds
        if not len(versions):
            return Ranges(versions.key, versions.time, versions.time)
        kept = np.maximum(self._clock(versions) - self._operation.within, self._state.floor)
        low = np.maximum(versions.time + after, kept)
        high, late = low - 1, np.flatnonzero(low <= self._highest(versions, came))
        if len(late):
            until = self._site.store_behind(self._site.node.inputs[1]).until(versions.take(late))
            high[late] = until - 1 + after
        return Ranges(versions.key, low, high)

    def _highest(self, versions: Flow, came: Flow) -> Int64s:
        """At each version the highest time of the records that have come before it."""
        own, others = arrivals(came.at, versions.at)
        order = np.argsort(own, kind="stable")
        highest: Int64s = np.maximum.accumulate(np.append(self._state.newest, came.time[order]))
        return highest[np.searchsorted(own[order], others)]

    # ------------------------------------------------------------------------------------------------------- the state

    def _keep(self, records: Records, events: Events, found: Found, free: Mask) -> None:
        """Writes the records that can be corrected, with what was sent last of them; removes those that cannot."""
        state, clock = self._state, self._site.batch.clock
        assert clock is not None
        end = max(clock.end(self._site.node.name)[1], state.stream_time)
        floor = max(state.floor, end - self._operation.within)
        came, stored = records.came, records.stored
        every = np.arange(len(records), dtype=np.int64)
        last = every.copy()
        last[records.row] = every  # of several of a row, numpy's last assignment counts
        stays = last[records.row] == every
        kept = free & records.new & found.valid[: events.own] & stays[stored:]
        fresh = np.flatnonzero(kept & (came.time >= floor))
        again = np.zeros(len(records), dtype=np.bool_)
        again[events.record[found.sent]] = True
        changed, removed = np.flatnonzero(again[:stored] & stays[:stored]), np.flatnonzero(~stays[:stored])
        if not len(fresh) and not len(changed) and not len(removed) and end == state.stream_time:
            return
        width, names = width_of(self._operation.within), came.space.keys
        order, first = grouped(came.time[fresh] >> width, came.key[fresh])
        fresh = fresh[order]
        rows = self._rows(records, events, found, np.concatenate([changed, records.stored + fresh]))
        heads = zip((came.time[fresh[first]] >> width).tolist(), came.key[fresh[first]].tolist(), strict=True)
        values = (
            packed_each([None] * len(first), first, came.time[fresh], rows.slice(len(changed))) if len(fresh) else []
        )
        newest = max(state.newest, int(came.time[fresh].max(initial=-1)))
        added = [(bucket, names[key], value) for (bucket, key), value in zip(heads, values, strict=True)]
        state.write(width, added, _rewritten(records, changed, removed, rows), end, floor, newest)

    def _rows(self, records: Records, events: Events, found: Found, chosen: Int64s) -> pa.BinaryArray:
        """The rows of chosen records as they are kept after the batch."""
        valid = np.flatnonzero(found.valid)
        valid = valid[np.argsort(events.arrived[valid], kind="stable")]
        last = np.full(len(records), -1, dtype=np.int64)
        last[events.record[valid]] = valid  # of several, numpy's last assignment counts
        at, kept = last[chosen], records.kept
        sent = found.there[at]
        row = records.row
        revision = (records.revision + np.bincount(row[events.record[found.sent]], minlength=len(row)))[row[chosen]]
        return self._layout.encoded(
            Kept(
                sent, revision.astype(np.int32), taken(kept.by, chosen), taken(kept.left, chosen),
                taken(found.columns, np.where(sent, at, -1)),
            )
        )  # fmt: skip


def _rewritten(
    records: Records, changed: Int64s, removed: Int64s, rows: pa.BinaryArray
) -> list[tuple[Place, bytes | None]]:
    """The values of the state in which records have `changed`, which are the first of `rows`, or are `removed`; None
    for one of which nothing is left."""
    new: dict[int, bytes | None] = dict(zip(changed.tolist(), rows.slice(0, len(changed)).to_pylist(), strict=True))
    new |= dict.fromkeys(removed.tolist())
    found: list[tuple[Place, bytes | None]] = []
    for number in np.unique(records.place[np.concatenate([changed, removed])]).tolist():
        inside = np.flatnonzero(records.place == number)
        old = records.rows.take(pa.array(inside)).to_pylist()
        values = [new.get(row, before) for row, before in zip(inside.tolist(), old, strict=True)]
        left = [place for place, value in enumerate(values) if value is not None]
        value = packed(None, records.time[inside[left]], [values[place] for place in left]) if left else None
        found.append((records.places[number], value))
    return found
