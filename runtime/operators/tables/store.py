"""A table's store during one batch: the changes put, what look-ups find at each arrival, one write at the end.

Guarantees: every look-up sees exactly what it would see if the batch's records were processed one by one: the versions
that arrived before it, and the stream time, retention and grace of that moment. The store itself is read once for each
key and look-up operator, and written only by `commit`, when nothing can fail any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.plan.nodes import Node, Stage
from vsc.runtime.metrics import Missed
from vsc.runtime.operators.columns.flow import Flow, Old
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.columns.moments import Moments, arrivals
from vsc.runtime.operators.stores import store_prefix
from vsc.runtime.operators.tables.pool import Pool
from vsc.runtime.operators.tables.search import Arrivals, Timeline
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.api import LOOKUP_MISSES
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.state.timed_rows import TimestampedStore
from vsc.runtime.state.versioned import VersionedStore

__all__ = [
    "NO_RECORD",
    "TOMBSTONE",
    "Partners",
    "Reasons",
    "TableColumns",
    "UnversionedColumns",
    "VersionedColumns",
    "open_columns",
]

NO_RECORD, TOMBSTONE, _TOO_OLD = map(LOOKUP_MISSES.index, Missed)

Reasons = npt.NDArray[np.uint8]
"""Places in `LOOKUP_MISSES`, one per look-up; 0: found."""


@dataclass(frozen=True, slots=True)
class Partners:
    """What the look-ups of a flow's records found: a position in `pool` (-1: none), its valid from, and why not.

    `needed` is the retention in ms that would have served all look-ups that were too old, -1 if none were.
    """

    pool: Pool
    position: Int64s
    valid_from: Int64s
    missed: Reasons
    needed: int = -1


class TableColumns(Protocol):
    """A table's store during one batch."""

    def put(self, flow: Flow) -> Mask:
        """Takes all of the batch's changes at once; returns which are accepted. Called at most once."""

    def before(self, flow: Flow) -> Old:
        """For each change that was put, the key's newest row before it."""

    def latest(self, flow: Flow) -> Mask | None:
        """Which of the accepted changes were their key's newest when they came; None: all."""

    def needed(self, flow: Flow) -> Mask:
        """Which of the changes matter (D7): all but tombstones of keys that had no row before."""

    def look_up(self, flow: Flow, as_of: bool) -> Partners:
        """For each record the row valid at its time (or the newest), as it was when the record arrived."""

    def forget(self, keys: Sequence[bytes], at: Moments, stored: Mask) -> None:
        """Removes the rows of encoded keys, each at its moment, after all puts. Called at most once.

        Those that are not `stored` have no row from before the batch.
        """

    def commit(self) -> None:
        """Writes what was put."""


def open_columns(kv: OrderedKV, stage: Stage, node: Node, space: KeySpace) -> TableColumns:
    """The store of `node`, which must have one; `space` holds the batch's keys of its types."""
    store = node.store
    assert store is not None
    codec, prefix = RowCodec([c.type for c in node.schema.value]), store_prefix(stage, node.name)
    if store.kind == "unversioned":
        return UnversionedColumns(TimestampedStore(kv, prefix), codec, space)
    assert store.retention is not None
    table = VersionedStore(kv, prefix, store.retention, store.segment, store.grace, adopt=True)
    return VersionedColumns(table, codec, space)


class _Arriving:
    """The changes put into a store in one batch, and when."""

    __slots__ = ("_own", "at", "puts")

    def __init__(self, flow: Flow, accepted: Mask) -> None:
        self.at = flow.at
        self.puts = flow.select(accepted)
        self._own = np.flatnonzero(accepted)

    def own(self) -> tuple[Int64s, Int64s]:
        """Numbers that compare like the moments of all changes, and of the accepted ones."""
        came = self.at.levels[0] if len(self.at.levels) == 1 else np.arange(len(self.at))
        return came, came[self._own]

    def beside(self, at: Moments) -> tuple[Int64s, Int64s, Int64s]:
        """The same, and those of other events."""
        came, others = arrivals(self.at, at)
        return came, came[self._own], others


@dataclass(frozen=True, slots=True)
class _Known:
    """Versions of a table's keys: those of the store, then those of the batch. `live`: not a tombstone."""

    timeline: Timeline
    time: Int64s
    live: Mask
    pool: Pool


class VersionedColumns:
    """A versioned store (KIP-889) during one batch."""

    __slots__ = ("_arriving", "_clock", "_codec", "_fetched", "_newest", "_space", "_store")

    def __init__(self, store: VersionedStore, codec: RowCodec, space: KeySpace) -> None:
        self._store, self._codec, self._space = store, codec, space
        self._arriving: _Arriving | None = None
        self._fetched = np.zeros(0, dtype=np.bool_)
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
        """Records this much behind the highest time accepted are still accepted."""
        return self._store.grace

    def accepts(self, time: Int64s) -> Mask:
        """Which of the batch's changes at these times it would accept: a refused one does not move its clock."""
        clock = np.maximum.accumulate(np.concatenate([[self.stream_time], time]))[:-1]
        accepted: Mask = time >= np.maximum(clock - self.grace, self.floor)
        return accepted

    def forget(self, keys: Sequence[bytes], at: Moments, stored: Mask) -> None:
        """Does nothing: a versioned store forgets by itself."""
        raise ValueError("a versioned store forgets by its retention alone")

    def put(self, flow: Flow) -> Mask:
        """A refused record is older than stream time, so it does not move stream time."""
        accepted = self.accepts(flow.time)
        self._clock = np.maximum.accumulate(np.concatenate([self._clock, flow.time]))
        self._arriving = _Arriving(flow, accepted)
        return accepted

    def before(self, flow: Flow) -> Old:
        came, puts = self._own()
        known = self._known(*self._newest_of(flow), puts)
        at = known.timeline.newest(flow.key, came - 1)
        present = (at >= 0) & known.live[at] if len(known.live) else np.zeros(len(flow), dtype=np.bool_)
        return Old(present, known.pool.take(np.where(present, at, -1)))

    def latest(self, flow: Flow) -> Mask | None:
        came, puts = self._own()
        timeline = self._known(*self._newest_of(flow), puts).timeline
        known, newest = timeline.newest_time(flow.key, came - 1)
        return ~known | (newest <= flow.time)

    def needed(self, flow: Flow) -> Mask:
        """A change that is left out does not move the clock, and is not a newest version."""
        key, time, stored = self._newest_of(flow)
        newest: dict[int, tuple[int, bool]] = {}
        for one, at, there in zip(key.tolist(), time.tolist(), stored.is_valid().to_pylist(), strict=True):
            newest[one] = max(newest.get(one, (-1, False)), (at, there))
        clock, grace = self._store.observed_stream_time, self._store.grace
        found = np.ones(len(flow), dtype=np.bool_)
        rows = zip(flow.key.tolist(), flow.time.tolist(), flow.present.tolist(), strict=True)
        for row, (one, at, there) in enumerate(rows):
            since, live = newest.get(one, (-1, False))
            if not there and not live:
                found[row] = False
            elif at >= max(clock - grace, self._store.floor):
                clock = max(clock, at)
                if at >= since:
                    newest[one] = at, there
        return found

    def look_up(self, flow: Flow, as_of: bool) -> Partners:
        none = np.zeros(0, dtype=np.int64)
        if self._arriving is None:
            came, puts, now = none, none, np.zeros(len(flow), dtype=np.int64)
        else:
            came, puts, now = self._arriving.beside(flow.at)
        known = self._known(*(self._stored(flow) if as_of else self._newest_of(flow)), puts)
        at = known.timeline.as_of(flow.key, flow.time, now) if as_of else known.timeline.newest(flow.key, now)
        clock = self._clock[np.searchsorted(came, now)]
        missed = self._missed(at, known, clock)
        needed = self._too_old(flow, known.timeline, clock, now, missed) if as_of else -1
        position = np.where(missed == 0, at, -1)
        valid_from = known.time[at] if len(known.time) else np.zeros(len(flow), dtype=np.int64)
        return Partners(known.pool, position, valid_from, missed, needed)

    def commit(self) -> None:
        if self._arriving is not None and len(puts := self._arriving.puts):
            self._store.put_columns(self._space.keys, puts.key, _encoded(self._codec, puts), puts.time)

    def _own(self) -> tuple[Int64s, Int64s]:
        assert self._arriving is not None
        return self._arriving.own()

    def _newest_of(self, flow: Flow) -> tuple[Int64s, Int64s, pa.BinaryArray]:
        """The newest stored versions of the flow's keys and of all keys read before: each is fetched once."""
        count = len(self._space.keys)
        fetched = np.zeros(count, dtype=np.bool_)
        fetched[: len(self._fetched)] = self._fetched
        fresh = np.flatnonzero((np.bincount(flow.key, minlength=count) > 0) & ~fetched)
        if len(fresh) or not self._newest:
            fetched[fresh] = True
            none = np.full(len(fresh), -1, dtype=np.int64)  # an empty span of time: the newest version always comes
            versions = self._store.versions_many([self._space.keys[i] for i in fresh.tolist()], none + 1, none)
            self._newest.append((fresh[versions.key], versions.valid_from, versions.values))
        self._fetched = fetched
        if len(self._newest) > 1:
            keys, times, values = zip(*self._newest, strict=True)
            self._newest = [(np.concatenate(keys), np.concatenate(times), pa.concat_arrays(values))]
        return self._newest[0]

    def _known(self, key: Int64s, time: Int64s, stored: pa.BinaryArray, puts_at: Int64s) -> _Known:
        live = stored.is_valid().to_numpy(zero_copy_only=False)
        arrival = np.full(len(key), -1, dtype=np.int64)
        count = len(self._space.keys)
        puts = None if self._arriving is None else self._arriving.puts
        if puts is None or not len(puts):
            return _Known(Timeline(count, key, time, arrival), time, live, Pool(self._codec, stored, None))
        time = np.concatenate([time, puts.time])
        timeline = Timeline(count, np.concatenate([key, puts.key]), time, np.concatenate([arrival, puts_at]))
        return _Known(timeline, time, np.concatenate([live, puts.present]), Pool(self._codec, stored, puts.values))

    def _stored(self, flow: Flow) -> tuple[Int64s, Int64s, pa.BinaryArray]:
        """The store's versions that look-ups as of the flow's times can reach: key numbers, valid from, rows."""
        count = len(self._space.keys)
        touched = np.flatnonzero(np.bincount(flow.key, minlength=count))
        low = np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
        high = np.full(count, -1, dtype=np.int64)
        np.minimum.at(low, flow.key, flow.time)
        np.maximum.at(high, flow.key, flow.time)
        # look-ups older than the retention can only find a key's newest version
        low = np.maximum(low, self._store.observed_stream_time - self._store.retention)
        high = np.maximum(high, low)
        keys = [self._space.keys[i] for i in touched.tolist()]
        versions = self._store.versions_many(keys, low[touched], high[touched])
        return touched[versions.key], versions.valid_from, versions.values

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
        missed[unserved] = _TOO_OLD
        return int((clock[unserved] - flow.time[unserved]).max()) if len(unserved) else -1


class UnversionedColumns:
    """A store that keeps the last row of each key, during one batch."""

    __slots__ = (
        "_arriving",
        "_codec",
        "_fetched",
        "_gone",
        "_position",
        "_rows",
        "_since",
        "_space",
        "_store",
    )

    def __init__(self, store: TimestampedStore, codec: RowCodec, space: KeySpace) -> None:
        self._store, self._codec, self._space = store, codec, space
        self._arriving: _Arriving | None = None
        self._fetched = np.zeros(0, dtype=np.bool_)
        self._position = self._since = np.zeros(0, dtype=np.int64)
        self._rows: pa.BinaryArray = pa.array([], pa.binary())
        self._gone: tuple[Int64s, Moments, Mask] | None = None

    def forget(self, keys: Sequence[bytes], at: Moments, stored: Mask) -> None:
        self._gone = self._space.encoded(keys), at, stored

    def put(self, flow: Flow) -> Mask:
        """Accepts everything."""
        accepted = np.ones(len(flow), dtype=np.bool_)
        self._arriving = _Arriving(flow, accepted)
        return accepted

    def needed(self, flow: Flow) -> Mask:
        """A tombstone of a missing key changes nothing, so `before` decides."""
        return np.ones(len(flow), dtype=np.bool_)

    def before(self, flow: Flow) -> Old:
        assert self._arriving is not None
        came, _ = self._arriving.own()
        found = self._found(flow, came, came)
        return Old(found.position >= 0, found.pool.take(found.position))

    def latest(self, flow: Flow) -> Mask | None:
        """None: the last change is always the newest."""
        return None

    def look_up(self, flow: Flow, as_of: bool) -> Partners:
        """Always the newest row: the plan never looks up an unversioned store as of a time."""
        if as_of:
            raise ValueError("an unversioned table cannot be read as of a time")
        if self._arriving is None:
            none = np.zeros(0, dtype=np.int64)
            return self._found(flow, none, none)
        _, puts, now = self._arriving.beside(flow.at)
        found = self._found(flow, puts, now)
        if self._gone is None:
            return found
        keys, at, _ = self._gone
        when, now = arrivals(at, flow.at)
        gone = np.full(len(self._space.keys), np.iinfo(np.int64).max)
        gone[keys] = when
        absent = gone[flow.key] < now
        missed = np.where(absent, NO_RECORD, found.missed).astype(np.uint8)
        return replace(found, position=np.where(absent, -1, found.position), missed=missed)

    def commit(self) -> None:
        """Writes only the last row of each key."""
        if self._arriving is not None and len(self._arriving.puts):
            self._write(self._arriving.puts)
        if self._gone is not None:
            keys, _, stored = self._gone
            gone = [self._space.keys[number] for number in keys[stored].tolist()]
            self._store.put_columns(gone, pa.nulls(len(gone), pa.binary()), np.zeros(len(gone), dtype=np.int64))

    def _write(self, puts: Flow) -> None:
        last = np.full(len(self._space.keys), -1, dtype=np.int64)
        last[puts.key] = np.arange(len(puts))
        if self._gone is not None:
            last[self._gone[0]] = -1
        chosen = np.zeros(len(puts), dtype=np.bool_)
        chosen[last[last >= 0]] = True
        puts = puts.select(chosen)
        keys = [self._space.keys[i] for i in puts.key.tolist()]
        self._store.put_columns(keys, _encoded(self._codec, puts), puts.time)

    def _found(self, flow: Flow, puts_at: Int64s, now: Int64s) -> Partners:
        """The newest rows before `now`, where the batch's rows come at `puts_at`."""
        self._fetch(flow)
        position, valid_from = self._position[flow.key], self._since[flow.key]
        puts = None if self._arriving is None else self._arriving.puts
        if puts is not None and len(puts):
            at = Arrivals(puts.key, puts_at).latest_before(flow.key, now)
            fresh = at >= 0
            position = np.where(fresh, np.where(puts.present[at], len(self._rows) + at, -1), position)
            valid_from = np.where(fresh, puts.time[at], valid_from)
        missed = np.where(position < 0, NO_RECORD, 0).astype(np.uint8)
        pool = Pool(self._codec, self._rows, puts.values if puts is not None and len(puts) else None)
        return Partners(pool, position, valid_from, missed)

    def _fetch(self, flow: Flow) -> None:
        """Reads the stored rows of the flow's keys, each once: by key number their places (-1: none) and times."""
        count, known = len(self._space.keys), len(self._fetched)
        if count > known:
            more = count - known
            self._fetched = np.concatenate([self._fetched, np.zeros(more, dtype=np.bool_)])
            self._position = np.concatenate([self._position, np.full(more, -1, dtype=np.int64)])
            self._since = np.concatenate([self._since, np.zeros(more, dtype=np.int64)])
        fresh = np.flatnonzero((np.bincount(flow.key, minlength=count) > 0) & ~self._fetched)
        if not len(fresh):
            return
        self._fetched[fresh] = True
        there, rows, times = self._store.get_columns([self._space.keys[i] for i in fresh.tolist()])
        self._since[fresh[there]] = times
        self._position[fresh] = np.where(there, len(self._rows) + np.cumsum(there) - 1, -1)
        self._rows = pa.concat_arrays([self._rows, rows]) if len(self._rows) else rows


def _encoded(codec: RowCodec, flow: Flow) -> pa.BinaryArray:
    """The rows of a flow, null for tombstones."""
    rows = codec.encode_columns(flow.values, len(flow))
    if flow.present.all():
        return rows
    return rows.take(pa.array(np.arange(len(flow)), mask=~flow.present))
