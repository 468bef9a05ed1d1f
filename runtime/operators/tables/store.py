"""A table's store during one batch: the changes put, what look-ups find at each arrival, one write at the end.

Guarantees: every look-up sees exactly what it would see if the batch's records were processed one by one: the versions
that arrived before it, and the stream time, retention and grace of that moment. The store itself is read once for each
key and look-up operator, and written only by `commit`, when nothing can fail any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Aggregate, Node, Stage, Window
from vsc.runtime.operators.columns.flow import Flow, Old
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.columns.moments import Moments, arrivals
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.operators.layout import store_prefix
from vsc.runtime.operators.tables.lookups import NO_RECORD, OLDER_THAN_RETENTION, TOMBSTONE, Reasons, TableRows
from vsc.runtime.operators.tables.pool import Pool
from vsc.runtime.operators.tables.search import Timeline, latest_before
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.api import NEVER
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.state.timed_rows import TimestampedStore
from vsc.runtime.state.versioned import VersionedStore

__all__ = ["TableColumns", "UnversionedColumns", "VersionedColumns", "closes", "open_columns"]

_MILLISECOND = 1000


class TableColumns:
    """A table's store during one batch. `space` holds the batch's keys."""

    def __init__(self, codec: RowCodec, space: KeySpace) -> None:
        self._codec, self._space = codec, space
        self._at: Moments | None = None
        self._puts = np.zeros(0, dtype=np.int64)
        self._put: Flow | None = None
        self._read = np.zeros(0, dtype=np.bool_)

    def timed(self, flow: Flow) -> Flow:
        """The batch's changes at the times at which the table takes them (D33)."""
        return flow

    def put(self, flow: Flow, moving: Int64s) -> Mask:
        """Takes all of the batch's changes at once; returns which are accepted. Called at most once.

        `moving`: what moves the clock at each (see `Site.moving`).
        """
        accepted = self.accepted(flow.time, moving)
        self._at, self._puts, self._put = flow.at, np.flatnonzero(accepted), flow.select(accepted)
        return accepted

    @property
    def changes(self) -> Flow | None:
        """The batch's accepted changes; None before any were put."""
        return self._put

    def accepted(self, time: Int64s, moving: Int64s) -> Mask:
        """Which of the batch's changes are accepted, if these are their times, and this moves the clock at each."""
        return np.ones(len(time), dtype=np.bool_)

    def before(self, flow: Flow) -> Old:
        """For each change that was put, the key's newest row before it."""
        raise NotImplementedError

    def latest(self, flow: Flow) -> Mask | None:
        """Which of the accepted changes were their key's newest when they came; None: all."""
        return None

    def needed(self, flow: Flow, moving: Int64s) -> Mask:
        """Which of the changes matter (D7): all but tombstones of keys that had no row before."""
        raise NotImplementedError

    def look_up(self, flow: Flow, as_of: bool, limit: Int64s | None) -> TableRows:
        """For each record the row valid at its time (or the newest), as it was when the record arrived.

        `limit`: the clock by which the table answers each; None: its own.
        """
        raise NotImplementedError

    def until(self, flow: Flow) -> Int64s:
        """For each of these changes, which the store has accepted, when its key's next version begins that was there
        when it came; `NEVER` without one. Of a versioned table."""
        raise ValueError("an unversioned table has no versions")

    def forget(self, keys: Int64s, at: Moments, stored: Mask) -> None:
        """Removes the rows of keys by number, each at its moment, after all puts. Called at most once.

        Those that are not `stored` have no row from before the batch.
        """
        raise NotImplementedError

    def commit(self) -> None:
        """Writes what was put."""
        raise NotImplementedError

    def _came(self) -> tuple[Int64s, Int64s]:
        """Numbers that compare like the moments of all changes, and of the accepted ones."""
        assert self._at is not None
        came = self._at.levels[0] if len(self._at.levels) == 1 else np.arange(len(self._at))
        return came, came[self._puts]

    def _beside(self, at: Moments) -> tuple[Int64s, Int64s, Int64s]:
        """The numbers of the moments of all changes, of the accepted ones, and of other events."""
        if self._at is None:
            return self._puts, self._puts, np.zeros(len(at), dtype=np.int64)
        came, others = arrivals(self._at, at)
        return came, came[self._puts], others

    def _unread(self, flow: Flow) -> Int64s:
        """The keys of the flow that were not read before; they count as read from now on."""
        count = len(self._space.keys)
        read = np.zeros(count, dtype=np.bool_)
        read[: len(self._read)] = self._read
        fresh = np.flatnonzero((np.bincount(flow.key, minlength=count) > 0) & ~read)
        read[fresh] = True
        self._read = read
        return fresh

    def _pool(self, stored: pa.BinaryArray) -> Pool:
        """The store's rows, then those that were put."""
        return Pool(self._codec, stored, self._put.values if self._put is not None and len(self._put) else None)

    def _encoded(self, flow: Flow) -> pa.BinaryArray:
        """The rows of a flow, null for tombstones."""
        rows = self._codec.encode_columns(flow.values, len(flow))
        if flow.present.all():
            return rows
        return rows.take(pa.array(np.arange(len(flow)), mask=~flow.present))


def open_columns(
    kv: OrderedKV, stage: Stage, node: Node, space: KeySpace, horizon: int | None = None, results: bool = False
) -> TableColumns:
    """The store of `node`, which must have one; `space` holds the batch's keys of its types.

    `horizon`: the lowest clock by which it is still asked, with the clock of the input; None: its own stream time.
    `results`: its rows are results (`vsc.plan.results`).
    """
    store = node.store
    assert store is not None
    codec, prefix = RowCodec([c.type for c in node.schema.value]), store_prefix(stage, node.name)
    if store.kind == "unversioned":
        window = node.operation.window if isinstance(node.operation, Aggregate) else None
        return UnversionedColumns(TimestampedStore(kv, prefix), codec, space, window)
    assert store.retention is not None
    table = VersionedStore(kv, prefix, store.retention, store.segment, store.grace, True, horizon)
    return VersionedColumns(table, codec, space, results)


@dataclass(frozen=True, slots=True)
class _Known:
    """Versions of a table's keys: from the store, then from the batch. `live`: not a tombstone."""

    timeline: Timeline
    time: Int64s
    live: Mask
    pool: Pool


@dataclass(frozen=True, slots=True)
class _Read:
    """Stored versions: `found` for the keys `touched`, valid from `low` to `high`."""

    touched: Int64s
    low: Int64s
    high: Int64s
    found: tuple[Int64s, Int64s, pa.BinaryArray]

    def covers(self, touched: Int64s, low: Int64s, high: Int64s) -> bool:
        """Whether they are enough for these keys and times."""
        same = np.array_equal(touched, self.touched)
        return same and bool((low >= self.low).all() and (high <= self.high).all())


class VersionedColumns(TableColumns):
    """A versioned store (KIP-889) during one batch. It forgets by its retention alone.

    `results`: a change is its key's newest (D33), so the store takes it at the time of the newest version that it knows
    of the key, if the change's own is earlier. Results are computed from newest rows, at the latest of their times; but
    those of a row that is gone count no more.
    """

    def __init__(self, store: VersionedStore, codec: RowCodec, space: KeySpace, results: bool = False) -> None:
        super().__init__(codec, space)
        self._store, self._results = store, results
        self._last: _Read | None = None
        self._newest: list[tuple[Int64s, Int64s, pa.BinaryArray]] = []
        self._clock: Int64s = np.array([store.observed_stream_time], dtype=np.int64)

    @property
    def stream_time(self) -> int:
        """The highest time accepted before the batch; -1 at first."""
        return self._store.observed_stream_time

    @property
    def floor(self) -> int:
        """Older records are refused, whatever the grace."""
        return self._store.floor

    @property
    def grace(self) -> int:
        """How far behind stream time, in ms, records may be."""
        return self._store.grace

    def accepted(self, time: Int64s, moving: Int64s) -> Mask:
        """Which of the batch's changes are accepted, if these are their times, and this moves the clock at each.

        One that is refused is older, so it does not move the clock by itself.
        """
        accepted: Mask = time >= np.maximum(self._running(moving)[1:] - self.grace, self.floor)
        return accepted

    def _running(self, moving: Int64s) -> Int64s:
        """The clock before all changes, then at each."""
        return np.maximum.accumulate(np.append(self.stream_time, moving))

    def timed(self, flow: Flow) -> Flow:
        if not self._results or not len(flow):
            return flow
        known, times, _ = self._newest_of(flow)
        count = len(self._space.keys)
        newest = np.full(count, -1, dtype=np.int64)
        newest[known] = times
        segments = Segments(flow.key, count)
        time, _ = segments.highest(flow.time[segments.order], newest)
        return replace(flow, time=time[segments.unsorted()])

    def put(self, flow: Flow, moving: Int64s) -> Mask:
        self._clock = self._running(moving)
        return super().put(flow, moving)

    def before(self, flow: Flow) -> Old:
        came, puts = self._came()
        known = self._known(*self._newest_of(flow), puts)
        at = known.timeline.newest(flow.key, came - 1)  # from its own number on, a change sees itself
        present = (at >= 0) & known.live[at] if len(known.live) else np.zeros(len(flow), dtype=np.bool_)
        time = known.time[at] if len(known.time) else np.zeros(len(flow), dtype=np.int64)
        return Old(present, time, known.pool.take(np.where(present, at, -1)))

    def intervals(self, flow: Flow) -> tuple[Int64s, Old]:
        """For each change that was put, until when it is valid, and the row that was valid at its time before."""
        came, puts = self._came()
        known = self._known(*self._stored(flow.key, flow.time, NEVER), puts)
        at = known.timeline.as_of(flow.key, flow.time, came - 1)
        present = (at >= 0) & known.live[at] if len(known.live) else np.zeros(len(flow), dtype=np.bool_)
        time = known.time[at] if len(known.time) else np.zeros(len(flow), dtype=np.int64)
        until = known.timeline.following(flow.key, flow.time, came - 1)
        return until, Old(present, time, known.pool.take(np.where(present, at, -1)))

    def between(self, flow: Flow) -> tuple[Int64s, Int64s]:
        """The times at which versions begin within the intervals of changes, as it was when each change arrived.

        Returns the places of the changes, ascending, and the times, ascending for each.
        """
        assert flow.until is not None
        _, puts, now = self._beside(flow.at)
        known = self._known(*self._stored(flow.key, flow.time, flow.until), puts)
        return known.timeline.between(flow.key, flow.time, flow.until, now)

    def stored_within(self, key: Int64s, begin: Int64s, end: Int64s) -> tuple[Int64s, Int64s, pa.BinaryArray]:
        """The versions from before the batch that are valid within ``[begin, end]`` of their keys, and the newest ones:
        key numbers, times, encoded rows, ascending by key and time."""
        return self._stored(key, begin, end)

    def earliest(self, moving: Int64s) -> Int64s:
        """The earliest times that the store takes where this moves the clock."""
        earliest: Int64s = np.maximum(np.maximum(moving, self.stream_time) - self.grace, self.floor)
        return earliest

    def newest_times(self, key: Int64s) -> Int64s:
        """The times of the newest versions of these keys, each given once, from before the batch; -1 without one."""
        none = np.full(len(key), -1, dtype=np.int64)
        versions = self._store.versions_many([self._space.keys[i] for i in key.tolist()], none + 1, none)
        newest = none.copy()
        newest[versions.key] = versions.valid_from
        return newest

    def encoded(self, flow: Flow) -> pa.BinaryArray:
        """The rows of a flow as they are stored, null for tombstones."""
        return self._encoded(flow)

    def decoded(self, stored: pa.BinaryArray, fresh: Sequence[pa.Array], places: Int64s) -> tuple[pa.Array, ...]:
        """The columns at `places` in the `stored` rows, then in the columns `fresh`; null where negative."""
        return Pool(self._codec, stored, fresh).take(places)

    def latest(self, flow: Flow) -> Mask | None:
        if self._results:
            return None
        came, puts = self._came()
        timeline = self._known(*self._newest_of(flow), puts).timeline
        known, newest = timeline.newest_time(flow.key, came - 1)
        return ~known | (newest <= flow.time)

    def needed(self, flow: Flow, moving: Int64s) -> Mask:
        """A change that is left out does not move the clock, and is not a newest version."""
        # One by one: whether a change matters depends on which ones before it did.
        key, time, stored = self._newest_of(flow)
        newest: dict[int, tuple[int, bool]] = {}
        for one, at, there in zip(key.tolist(), time.tolist(), stored.is_valid().to_pylist(), strict=True):
            newest[one] = max(newest.get(one, (-1, False)), (at, there))
        clock, grace = self._store.observed_stream_time, self._store.grace
        matters = np.ones(len(flow), dtype=np.bool_)
        rows = zip(flow.key.tolist(), flow.time.tolist(), flow.present.tolist(), moving.tolist(), strict=True)
        for row, (one, at, there, moved) in enumerate(rows):
            since, live = newest.get(one, (-1, False))
            at = max(at, since) if self._results else at
            if not there and not live:
                matters[row] = False
            elif at >= max(max(clock, moved) - grace, self._store.floor):
                clock = max(clock, moved)
                if at >= since:
                    newest[one] = at, there
        return matters

    def look_up(self, flow: Flow, as_of: bool, limit: Int64s | None) -> TableRows:
        came, puts, now = self._beside(flow.at)
        known = self._known(*(self._stored(flow.key, flow.time, flow.time) if as_of else self._newest_of(flow)), puts)
        at = known.timeline.as_of(flow.key, flow.time, now) if as_of else known.timeline.newest(flow.key, now)
        # `_clock` begins with what it showed before the batch: as many changes as came before a look-up have moved it.
        clock = self._clock[np.searchsorted(came, now)] if limit is None else np.maximum(limit, self.stream_time)
        missed = self._missed(at, known, clock)
        needed = self._too_old(flow, known.timeline, clock, now, missed) if as_of else -1
        values = known.pool.take(np.where(missed == 0, at, -1))
        valid_from = known.time[at] if len(known.time) else np.zeros(len(flow), dtype=np.int64)
        return TableRows(missed, valid_from, values, needed=needed)

    def until(self, flow: Flow) -> Int64s:
        _, puts, now = self._beside(flow.at)
        known = self._known(*self._stored(flow.key, flow.time, NEVER), puts)
        return known.timeline.following(flow.key, flow.time, now)

    def commit(self) -> None:
        if (puts := self._put) is not None and len(puts):
            self._store.put_columns(self._space.keys, puts.key, self._encoded(puts), puts.time)

    def _newest_of(self, flow: Flow) -> tuple[Int64s, Int64s, pa.BinaryArray]:
        """The newest stored versions of the flow's keys and of all keys read before: each is fetched once."""
        fresh = self._unread(flow)
        if len(fresh) or not self._newest:
            none = np.full(len(fresh), -1, dtype=np.int64)  # an empty span of time: the newest version always comes
            versions = self._store.versions_many([self._space.keys[i] for i in fresh.tolist()], none + 1, none)
            self._newest.append((fresh[versions.key], versions.valid_from, versions.values))
        if len(self._newest) > 1:
            keys, times, values = zip(*self._newest, strict=True)
            self._newest = [(np.concatenate(keys), np.concatenate(times), pa.concat_arrays(values))]
        return self._newest[0]

    def _known(self, key: Int64s, time: Int64s, stored: pa.BinaryArray, puts_at: Int64s) -> _Known:
        live = stored.is_valid().to_numpy(zero_copy_only=False)
        arrival = np.full(len(key), -1, dtype=np.int64)
        if (puts := self._put) is not None and len(puts):
            key, time = np.concatenate([key, puts.key]), np.concatenate([time, puts.time])
            arrival, live = np.concatenate([arrival, puts_at]), np.concatenate([live, puts.present])
        return _Known(Timeline(len(self._space.keys), key, time, arrival), time, live, self._pool(stored))

    def _stored(self, key: Int64s, begin: Int64s, end: Int64s | int) -> tuple[Int64s, Int64s, pa.BinaryArray]:
        """The store's versions that are valid from `begin` to `end` of their keys: key numbers, valid from, rows; more
        of these keys if they were read last: who asks when versions begin, asks for them next."""
        count = len(self._space.keys)
        touched = np.flatnonzero(np.bincount(key, minlength=count))
        low = np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
        high = np.full(count, -1, dtype=np.int64)
        np.minimum.at(low, key, begin)
        np.maximum.at(high, key, end)
        # look-ups older than the retention can only find a key's newest version
        low = np.maximum(low, self._store.observed_stream_time - self._store.retention)
        high = np.maximum(high, low)
        low, high = low[touched], high[touched]
        if self._last is None or not self._last.covers(touched, low, high):
            keys = [self._space.keys[i] for i in touched.tolist()]
            versions = self._store.versions_many(keys, low, high)
            found = touched[versions.key], versions.valid_from, versions.values
            self._last = _Read(touched, low, high, found)
        return self._last.found

    def _missed(self, at: Int64s, known: _Known, clock: Int64s) -> Reasons:
        """Why the entry at each position is not a row, at any retention; tombstones before the horizon are gone."""
        missed = np.where(at < 0, NO_RECORD, 0).astype(np.uint8)
        if known.live.all():
            return missed
        dead = np.flatnonzero((at >= 0) & ~known.live[at])
        horizon = clock[dead] - max(self._store.retention, self._store.grace)
        missed[dead] = np.where(known.time[at[dead]] < horizon, NO_RECORD, TOMBSTONE)
        return missed

    def _too_old(self, flow: Flow, timeline: Timeline, clock: Int64s, now: Int64s, missed: Reasons) -> int:
        """Marks the look-ups that lie before the retention, except those that find a key's newest version."""
        old = np.flatnonzero(flow.time < clock - self._store.retention)
        if not len(old):
            return -1
        known, newest = timeline.newest_time(flow.key[old], now[old])
        served = known & (newest <= flow.time[old]) & (missed[old] != NO_RECORD)
        unserved = old[~served]
        missed[unserved] = OLDER_THAN_RETENTION
        return int((clock[unserved] - flow.time[unserved]).max()) if len(unserved) else -1


class UnversionedColumns(TableColumns):
    """A store that keeps the last row of each key, during one batch."""

    def __init__(self, store: TimestampedStore, codec: RowCodec, space: KeySpace, window: Window | None = None) -> None:
        super().__init__(codec, space)
        self._store, self._window = store, window
        self._position = self._since = np.zeros(0, dtype=np.int64)
        self._rows: pa.BinaryArray = pa.array([], pa.binary())
        self._gone: tuple[Int64s, Moments, Mask] | None = None

    def forget(self, keys: Int64s, at: Moments, stored: Mask) -> None:
        self._gone = keys, at, stored

    def needed(self, flow: Flow, moving: Int64s) -> Mask:
        """A tombstone of a missing key changes nothing, so `before` decides."""
        return np.ones(len(flow), dtype=np.bool_)

    def before(self, flow: Flow) -> Old:
        position, time, pool = self._found(flow, *self._came())
        return Old(position >= 0, time, pool.take(position))

    def look_up(self, flow: Flow, as_of: bool, limit: Int64s | None) -> TableRows:
        """Always the newest row: the plan never looks up an unversioned store as of a time.

        With a `limit`, a window is seen until that clock has passed the time at which it closes.
        """
        if as_of:
            raise ValueError("an unversioned table cannot be read as of a time")
        _, puts, now = self._beside(flow.at)
        position, valid_from, pool = self._found(flow, puts, now)
        if self._gone is not None:
            keys, at, _ = self._gone
            when, now = arrivals(at, flow.at)
            gone = np.full(len(self._space.keys), np.iinfo(np.int64).max)
            gone[keys] = when
            position = np.where(gone[flow.key] < now, -1, position)
        if limit is not None and self._window is not None:
            position = np.where(closes(self._window, flow.keys) < limit, -1, position)
        return TableRows.of(position >= 0, valid_from, pool.take(position))

    def commit(self) -> None:
        """Writes only the last row of each key."""
        if self._put is not None and len(self._put):
            self._write(self._put)
        if self._gone is not None:
            keys, _, stored = self._gone
            gone = [self._space.keys[number] for number in keys[stored].tolist()]
            self._store.put_columns(gone, pa.nulls(len(gone), pa.binary()), np.zeros(len(gone), dtype=np.int64))

    def _write(self, puts: Flow) -> None:
        # Of a key that is put several times, numpy's last assignment counts, as in the store. What time has removed was
        # removed after all puts, so nothing of such a key is written.
        last = np.full(len(self._space.keys), -1, dtype=np.int64)
        last[puts.key] = np.arange(len(puts))
        if self._gone is not None:
            last[self._gone[0]] = -1
        chosen = np.zeros(len(puts), dtype=np.bool_)
        chosen[last[last >= 0]] = True
        puts = puts.select(chosen)
        keys = [self._space.keys[i] for i in puts.key.tolist()]
        self._store.put_columns(keys, self._encoded(puts), puts.time)

    def _found(self, flow: Flow, puts_at: Int64s, now: Int64s) -> tuple[Int64s, Int64s, Pool]:
        """The newest rows before `now`: places in the pool (-1: none), times. The batch's rows come at `puts_at`."""
        self._fetch(flow)
        position, valid_from = self._position[flow.key], self._since[flow.key]
        if (puts := self._put) is not None and len(puts):
            at = latest_before(puts.key, puts_at, flow.key, now)
            fresh = at >= 0
            position = np.where(fresh, np.where(puts.present[at], len(self._rows) + at, -1), position)
            valid_from = np.where(fresh, puts.time[at], valid_from)
        return position, valid_from, self._pool(self._rows)

    def _fetch(self, flow: Flow) -> None:
        """Reads the stored rows of the flow's keys, each once: by key number their places (-1: none) and times."""
        fresh = self._unread(flow)
        more = len(self._read) - len(self._position)
        self._position = np.concatenate([self._position, np.full(more, -1, dtype=np.int64)])
        self._since = np.concatenate([self._since, np.zeros(more, dtype=np.int64)])
        if not len(fresh):
            return
        # Only rows that are there come back, so their places count those alone, behind the rows read before.
        there, rows, times = self._store.get_columns([self._space.keys[i] for i in fresh.tolist()])
        self._since[fresh[there]] = times
        self._position[fresh] = np.where(there, len(self._rows) + np.cumsum(there) - 1, -1)
        self._rows = pa.concat_arrays([self._rows, rows]) if len(self._rows) else rows


def closes(window: Window, keys: Sequence[pa.Array]) -> Int64s:
    """When the windows close whose bounds are at the end of these key columns."""
    time: Int64s = keys[-1].view(pa.int64()).to_numpy(zero_copy_only=False) // _MILLISECOND
    return time + window.lingers
