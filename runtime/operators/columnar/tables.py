"""A table's store during one batch: what is put, what look-ups find at each arrival, one write at the end.

Guarantees: every look-up sees exactly what it would if the batch's records were processed one by one: the versions
that arrived before it, the stream time of that moment, and so the retention and the grace of that moment. The store
itself is read once for each key and look-up operator, and written only by `commit`, when nothing can fail any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.plan.nodes import Node, Stage
from vsc.runtime.metrics import Missed
from vsc.runtime.operators.columnar.flow import Flow, Old
from vsc.runtime.operators.columnar.pool import Pool
from vsc.runtime.operators.columnar.search import Arrivals, Timeline
from vsc.runtime.operators.stores import store_prefix
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.state.unversioned import TimestampedStore
from vsc.runtime.state.versioned import VersionedStore

__all__ = ["MISSED", "Partners", "TableColumns", "UnversionedColumns", "VersionedColumns", "open_columns"]

MISSED = (None, Missed.NO_RECORD, Missed.TOMBSTONE, Missed.OLDER_THAN_RETENTION)
"""What the numbers in `Partners.missed` stand for; 0 is found."""

_NO_RECORD, _TOMBSTONE, _TOO_OLD = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Partners:
    """What the look-ups of a flow's records found: a position in `pool` (-1 without), its valid from, and why not.

    `needed` is the retention in ms that would have served all look-ups that were too old, -1 if there were none.
    """

    pool: Pool
    position: Int64s
    valid_from: Int64s
    missed: npt.NDArray[np.uint8]
    needed: int = -1


class TableColumns(Protocol):
    """A table's store during one batch."""

    def put(self, flow: Flow) -> Mask:
        """Takes the batch's changes, all at once; tells which are accepted. Called at most once."""

    def before(self, flow: Flow) -> Old:
        """For each record of the changes that were put: the key's newest row before it."""

    def latest(self, flow: Flow) -> Mask | None:
        """Which of the changes that were put and accepted were their key's newest when they came; None: all."""

    def look_up(self, flow: Flow, as_of: bool) -> Partners:
        """For each record the row valid at its time (or the newest), as it was when the record arrived."""

    def commit(self) -> None:
        """Writes what was put."""


def open_columns(kv: OrderedKV, stage: Stage, node: Node, keys: Sequence[bytes]) -> TableColumns:
    """The store of `node`, which must have one; `keys` are the encoded keys of the batch, by number."""
    store = node.store
    assert store is not None
    codec, prefix = RowCodec([c.type for c in node.schema.value]), store_prefix(stage, node.name)
    if store.kind == "unversioned":
        return UnversionedColumns(TimestampedStore(kv, prefix), codec, keys)
    assert store.retention is not None
    return VersionedColumns(VersionedStore(kv, prefix, store.retention, store.segment, store.grace), codec, keys)


@dataclass(frozen=True, slots=True)
class _Known:
    """Versions of a table's keys, those of the store first, then those of the batch. `live`: no tombstone."""

    timeline: Timeline
    time: Int64s
    live: Mask
    pool: Pool


class VersionedColumns:
    """A versioned store (KIP-889) during one batch."""

    __slots__ = ("_clock", "_clock_cause", "_codec", "_keys", "_newest", "_puts", "_store")

    def __init__(self, store: VersionedStore, codec: RowCodec, keys: Sequence[bytes]) -> None:
        self._store, self._codec, self._keys = store, codec, keys
        self._puts: Flow | None = None
        self._newest: _Known | None = None
        self._clock_cause: Int64s = np.zeros(0, dtype=np.int64)
        self._clock: Int64s = np.array([store.observed_stream_time], dtype=np.int64)

    def put(self, flow: Flow) -> Mask:
        """See `TableColumns.put`. A refused record is older than stream time, so it never moves it."""
        self._clock_cause = flow.cause
        self._clock = np.maximum.accumulate(np.concatenate([self._clock, flow.time]))
        accepted: Mask = flow.time >= self._clock[:-1] - self._store.grace
        self._puts = flow.select(accepted)
        return accepted

    def before(self, flow: Flow) -> Old:
        """See `TableColumns.before`."""
        known = self._newest_known()
        at = known.timeline.newest(flow.key, flow.cause - 1)
        present = (at >= 0) & known.live[at] if len(known.live) else np.zeros(len(flow), dtype=np.bool_)
        return Old(present, known.pool.take(np.where(present, at, -1)))

    def latest(self, flow: Flow) -> Mask | None:
        """See `TableColumns.latest`."""
        known, newest = self._newest_known().timeline.newest_time(flow.key, flow.cause - 1)
        return ~known | (newest <= flow.time)

    def look_up(self, flow: Flow, as_of: bool) -> Partners:
        """See `TableColumns.look_up`."""
        if as_of:
            known = self._known(*self._stored(flow))
            at = known.timeline.as_of(flow.key, flow.time, flow.cause)
        else:
            known = self._newest_known()
            at = known.timeline.newest(flow.key, flow.cause)
        clock = self._clock_at(flow.cause)
        missed = self._missed(at, known, clock)
        needed = self._too_old(flow, known.timeline, clock, missed) if as_of else -1
        position = np.where(missed == 0, at, -1)
        valid_from = known.time[at] if len(known.time) else np.zeros(len(flow), dtype=np.int64)
        return Partners(known.pool, position, valid_from, missed, needed)

    def commit(self) -> None:
        """See `TableColumns.commit`."""
        puts = self._puts
        if puts is not None and len(puts):
            self._store.put_columns(self._keys, puts.key, _encoded(self._codec, puts), puts.time)

    def _newest_known(self) -> _Known:
        """What can be the newest version of any of the batch's keys: fetched once."""
        if self._newest is None:
            count = len(self._keys)
            none = np.full(count, -1, dtype=np.int64)  # an empty span of time: the newest one comes in any case
            versions = self._store.versions_many(self._keys, none + 1, none)
            self._newest = self._known(versions.key, versions.valid_from, versions.values)
        return self._newest

    def _known(self, key: Int64s, time: Int64s, stored: pa.BinaryArray) -> _Known:
        live = stored.is_valid().to_numpy(zero_copy_only=False)
        arrival = np.full(len(key), -1, dtype=np.int64)
        puts = self._puts
        if puts is None or not len(puts):
            return _Known(Timeline(len(self._keys), key, time, arrival), time, live, Pool(self._codec, stored, None))
        time = np.concatenate([time, puts.time])
        timeline = Timeline(
            len(self._keys), np.concatenate([key, puts.key]), time, np.concatenate([arrival, puts.cause])
        )
        return _Known(timeline, time, np.concatenate([live, puts.present]), Pool(self._codec, stored, puts.values))

    def _stored(self, flow: Flow) -> tuple[Int64s, Int64s, pa.BinaryArray]:
        """The store's versions that look-ups as of the flow's times can reach: key numbers, valid from, rows."""
        count = len(self._keys)
        touched = np.flatnonzero(np.bincount(flow.key, minlength=count))
        low = np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
        high = np.full(count, -1, dtype=np.int64)
        np.minimum.at(low, flow.key, flow.time)
        np.maximum.at(high, flow.key, flow.time)
        # what is older than the retention can only find a key's newest version
        low = np.maximum(low, self._store.observed_stream_time - self._store.retention)
        high = np.maximum(high, low)
        keys = [self._keys[i] for i in touched.tolist()]
        versions = self._store.versions_many(keys, low[touched], high[touched])
        return touched[versions.key], versions.valid_from, versions.values

    def _clock_at(self, cause: Int64s) -> Int64s:
        """The observed stream time when each record arrived."""
        if len(self._clock) == 1:
            return np.full(len(cause), self._clock[0], dtype=np.int64)
        return self._clock[np.searchsorted(self._clock_cause, cause)]

    def _missed(self, at: Int64s, known: _Known, clock: Int64s) -> npt.NDArray[np.uint8]:
        """Why the entry at each position is no row, whatever the retention; tombstones before the horizon are gone."""
        missed = np.where(at < 0, _NO_RECORD, 0).astype(np.uint8)
        if known.live.all():
            return missed
        dead = np.flatnonzero((at >= 0) & ~known.live[at])
        horizon = clock[dead] - max(self._store.retention, self._store.grace)
        missed[dead] = np.where(known.time[at[dead]] < horizon, _NO_RECORD, _TOMBSTONE)
        return missed

    def _too_old(self, flow: Flow, timeline: Timeline, clock: Int64s, missed: npt.NDArray[np.uint8]) -> int:
        """Marks the look-ups that lie before the retention, but for those that mean a key's newest version."""
        old = np.flatnonzero(flow.time < clock - self._store.retention)
        if not len(old):
            return -1
        known, newest = timeline.newest_time(flow.key[old], flow.cause[old])
        served = known & (newest <= flow.time[old]) & (missed[old] != _NO_RECORD)
        unserved = old[~served]
        missed[unserved] = _TOO_OLD
        return int((clock[unserved] - flow.time[unserved]).max()) if len(unserved) else -1


class UnversionedColumns:
    """A store that keeps the row of a key that came last, during one batch."""

    __slots__ = ("_arrivals", "_codec", "_keys", "_puts", "_store", "_stored")

    def __init__(self, store: TimestampedStore, codec: RowCodec, keys: Sequence[bytes]) -> None:
        self._store, self._codec, self._keys = store, codec, keys
        self._puts: Flow | None = None
        self._arrivals: Arrivals | None = None
        self._stored: tuple[Int64s, Int64s, pa.BinaryArray] | None = None

    def put(self, flow: Flow) -> Mask:
        """See `TableColumns.put`. Nothing is refused."""
        self._puts = flow
        self._arrivals = Arrivals(flow.key, flow.cause)
        return np.ones(len(flow), dtype=np.bool_)

    def before(self, flow: Flow) -> Old:
        """See `TableColumns.before`."""
        found = self.look_up(flow, as_of=False)
        return Old(found.position >= 0, found.pool.take(found.position))

    def latest(self, flow: Flow) -> Mask | None:
        """See `TableColumns.latest`: what came last is the newest."""
        return None

    def look_up(self, flow: Flow, as_of: bool) -> Partners:
        """See `TableColumns.look_up`; there is nothing to read as of a time (the plan never asks for it)."""
        if as_of:
            raise ValueError("an unversioned table cannot be read as of a time")
        slot, since, stored = self._known()
        position, valid_from = slot[flow.key], since[flow.key]
        puts = self._puts
        if puts is not None and self._arrivals is not None and len(puts):
            at = self._arrivals.latest_before(flow.key, flow.cause)
            fresh = at >= 0
            position = np.where(fresh, np.where(puts.present[at], len(stored) + at, -1), position)
            valid_from = np.where(fresh, puts.time[at], valid_from)
        missed = np.where(position < 0, _NO_RECORD, 0).astype(np.uint8)
        pool = Pool(self._codec, stored, puts.values if puts is not None and len(puts) else None)
        return Partners(pool, position, valid_from, missed)

    def commit(self) -> None:
        """See `TableColumns.commit`; of each key the last row alone."""
        puts = self._puts
        if puts is None or not len(puts):
            return
        last = np.full(len(self._keys), -1, dtype=np.int64)
        last[puts.key] = np.arange(len(puts))
        chosen = np.zeros(len(puts), dtype=np.bool_)
        chosen[last[last >= 0]] = True
        puts = puts.select(chosen)
        keys = [self._keys[i] for i in puts.key.tolist()]
        self._store.put_columns(keys, _encoded(self._codec, puts), puts.time)

    def _known(self) -> tuple[Int64s, Int64s, pa.BinaryArray]:
        """By key number: the place of its stored row (-1 without) and its timestamp; and the rows. Fetched once."""
        if self._stored is None:
            there, rows, times = self._store.get_columns(self._keys)
            since = np.zeros(len(there), dtype=np.int64)
            since[there] = times
            self._stored = np.where(there, np.cumsum(there) - 1, -1), since, rows
        return self._stored


def _encoded(codec: RowCodec, flow: Flow) -> pa.BinaryArray:
    """The rows of a flow, null for tombstones."""
    rows = codec.encode_columns(flow.values, len(flow))
    if flow.present.all():
        return rows
    return rows.take(pa.array(np.arange(len(flow)), mask=~flow.present))
