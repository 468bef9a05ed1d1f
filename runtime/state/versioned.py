"""The versioned store (KIP-889): for every key all its versions in event time, within a history retention.

A key's history is a set of (timestamp, value or tombstone); a write at an existing timestamp replaces the version or
tombstone there. A version is valid on ``[valid_from, valid_to)``, where `valid_to` is the next version's `valid_from`;
the newest one has none. The *observed stream time* is the highest timestamp ever accepted, -1 at first.

* `put` refuses (``expired``) a timestamp below observed stream time - grace. Else the write is ``latest`` when no
  version with a greater timestamp is known for the key, and ``superseded`` otherwise, with the next greater timestamp.
* `get` without a time answers with the newest version, however old it is. As of a time t: with the newest version if
  its timestamp is at most t; else with nothing if t is below observed stream time - retention; else with the version
  valid at t.
* `versions` gives the live versions valid within ``[max(from, observed stream time - retention), to]``, and the newest
  one if its timestamp is at most `to`, whatever the retention.
* A tombstone older than observed stream time - max(retention, grace), the *horizon*, counts as if it had never existed:
  it can no longer hide anything, and a look-up that meets it returns ``no_record``.

What lies in RocksDB (`versioned_layout` draws the bytes): a *head* a key, with its newest versions and a directory of
its *chunks*, runs of older versions under (valid_to of their newest version, key). Chunks are so ordered by time, and
what has passed the horizon goes in one range deletion whenever the horizon enters a new segment. The segment interval
decides how often that is and nothing else: reads judge by the horizon, never by what happens to lie there still. Heads
of keys that are not written any more are cleared by *due* rows: each head that will have something to let go has one,
under the time of its newest version; when that time has passed, the head is rewritten or goes, some at each write.

Invariants, which `tests/runtime/state/invariants.py` checks:

1. A key's timestamps ascend strictly, over its chunks and then its head; none is negative or above stream time.
2. The directory of a head ascends; its last entry is the head's first timestamp. A chunk's upper is greater than all
   its timestamps and equal to the first timestamp of the block after it.
3. Every entry of a directory above the horizon has its chunk row; a chunk row that is in no directory ended at or
   before the horizon.
4. No block is empty, none has more than its number of versions or, unless it has but one, of bytes.
5. A head with a mark has the due row of that time, and every due row belongs to the head of that mark. A head with more
   than one version, with a chunk or with a tombstone as its newest version has a mark, not above its newest timestamp.
6. The meta row exists if any other row does, and is written in the same atomic write as the data that it describes.

Not for keys without a history (`timed_rows`), and not for several threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.plan.words import duration
from vsc.runtime.errors import StateError
from vsc.runtime.state.api import (
    NEVER,
    Miss,
    OutcomeKind,
    PutOutcome,
    VersionedRecord,
    Versions,
)
from vsc.runtime.state.kv_base import OrderedKV, prefix_end
from vsc.runtime.state.versioned_key import Found, KeyHistory, Writes
from vsc.runtime.state.versioned_layout import Meta, RowKeys, decode_meta, encode_meta
from vsc.runtime.state.versioned_put import plan_puts
from vsc.runtime.state.versioned_read import distinct_keys, get_many, versions_many

__all__ = ["VersionedStore", "check_durations", "default_segment_interval"]

_SWEPT_AT_ONCE = 64
_LATEST = PutOutcome(OutcomeKind.LATEST)
_EXPIRED = PutOutcome(OutcomeKind.EXPIRED)

Times = npt.NDArray[np.int64]


def default_segment_interval(history_retention_ms: int) -> int:
    """Return Kafka Streams' default segment interval for a history retention, both in ms."""
    if history_retention_ms <= 60_000:
        return max(history_retention_ms // 3, 2_000)
    if history_retention_ms <= 300_000:
        return max(history_retention_ms // 5, 20_000)
    if history_retention_ms <= 3_600_000:
        return max(history_retention_ms // 12, 60_000)
    return max(history_retention_ms // 24, 300_000)


class VersionedStore:
    """A versioned store in an ordered map, under its own prefix. See the module's text for what it does."""

    def __init__(
        self,
        kv: OrderedKV,
        prefix: bytes,
        retention: int,
        segment: int | None = None,
        grace: int | None = None,
        adopt: bool = False,
        clock: int | None = None,
    ) -> None:
        """Open the store that `kv` has under `prefix`, or begin one there.

        `retention` is the history retention, `segment` the segment interval (None: Kafka's formula), `grace` how far
        behind stream time a write may be (None: the retention); all in ms. Raises ValueError for a negative
        retention or grace and for a segment of zero or less, `StateError` if the stored data is of another format
        version, damaged, or was written with another retention or grace; with `adopt` it goes on with the new ones.

        With a `clock`, that is the stream time by which versions are read and removed, unless the store's own is
        higher; the writes do not move it, and `put_many` and `put_columns` refuse none of them.
        """
        check_durations(retention, segment, grace)
        segment = default_segment_interval(retention) if segment is None else segment
        grace = retention if grace is None else grace
        self._kv = kv
        self._rows = RowKeys(prefix)
        self._segment = segment
        self._retention = retention
        self._grace = grace
        self._kept = max(retention, grace)
        self._accepts = clock is not None
        self._meta = self._open_meta(adopt)
        if clock is not None and clock > self._meta.observed:
            self._meta = self._meta.advanced(clock, self._meta.dropped, self._meta.sweeping)

    @property
    def observed_stream_time(self) -> int:
        """The highest timestamp ever accepted, -1 at first."""
        return self._meta.observed

    @property
    def retention(self) -> int:
        """The history retention in ms: how far back reads as of a time go."""
        return self._retention

    @property
    def grace(self) -> int:
        """The grace in ms: how far behind stream time writes may be."""
        return self._grace

    @property
    def floor(self) -> int:
        """Writes before it are refused, whatever the grace: what a shorter retention has dropped stays dropped."""
        return self._meta.floor

    @property
    def horizon(self) -> int:
        """Stream time minus the longer of retention and grace: tombstones before it are forgotten."""
        return self._meta.horizon

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> PutOutcome:
        """Write a version, or a tombstone for a value of None; return the outcome.

        Raises ValueError for a negative timestamp.
        """
        _check_write(key, value, timestamp)
        meta = self._meta
        if timestamp < meta.oldest:
            return _EXPIRED
        observed = max(meta.observed, timestamp)
        history = self._history(key, observed - self._kept)
        after = history.insert(timestamp, value)
        writes = Writes()
        history.flush(observed - self._kept, writes)
        self._commit(writes, observed, _SWEPT_AT_ONCE)
        return _LATEST if after is None else PutOutcome(OutcomeKind.SUPERSEDED, after)

    def delete(self, key: bytes, timestamp: int) -> VersionedRecord | None:
        """Write a tombstone; return what ``get(key, as_of=timestamp)`` gave before, None if the write was refused."""
        _check_write(key, None, timestamp)
        if timestamp < self._meta.oldest:
            return None
        before = self.get(key, timestamp)
        self.put(key, None, timestamp)
        return before

    def get(self, key: bytes, as_of: int | None = None) -> VersionedRecord | None:
        """Return the version valid at `as_of`, or the newest one for None; None where `lookup` gives a `Miss`."""
        found = self.lookup(key, as_of)
        return found if isinstance(found, VersionedRecord) else None

    def lookup(self, key: bytes, as_of: int | None = None) -> VersionedRecord | Miss:
        """Return the version valid at `as_of`, or the newest one for None, or the reason for a miss."""
        history = self._history(key, self.horizon)
        newest = history.newest()
        if newest is not None and self._forgotten(newest):
            newest = None
        if as_of is None or (newest is not None and newest[1] <= as_of):
            return self._answer(newest)
        if as_of < self._meta.observed - self._retention:
            return Miss.OLDER_THAN_RETENTION
        return self._answer(None if newest is None else history.at(as_of))

    def versions(
        self, key: bytes, from_ts: int | None = None, to_ts: int | None = None, ascending: bool = False
    ) -> Iterator[VersionedRecord]:
        """Iterate over the live versions valid within ``[from_ts, to_ts]`` and the retention, newest first.

        The newest version counts as within the retention. None stands for no bound. What is given is the state when
        this was called. Raises ValueError when `from_ts` is greater than `to_ts`.
        """
        if from_ts is not None and to_ts is not None and from_ts > to_ts:
            raise ValueError(f"from_ts ({from_ts}) is greater than to_ts ({to_ts})")
        end = NEVER if to_ts is None else to_ts
        limit = self._meta.observed - self._retention
        start = limit if from_ts is None else max(limit, from_ts)
        found = self.versions_many([key], np.array([start], np.int64), np.array([end], np.int64))
        records = [
            VersionedRecord(value, at, None if until == NEVER else until)
            for at, until, value in zip(
                found.valid_from.tolist(), found.valid_to.tolist(), found.values.to_pylist(), strict=True
            )
            if value is not None and at <= end
        ]
        return iter(records if ascending else records[::-1])

    def scan(self, as_of: int | None = None) -> Iterator[tuple[bytes, VersionedRecord]]:
        """Iterate over all keys in the order of their bytes, each with what ``get(key, as_of)`` gives, if anything."""
        for key in self.keys():
            found = self.get(key, as_of)
            if found is not None:
                yield key, found

    def keys(self, low: bytes = b"", high: bytes | None = None) -> Iterator[bytes]:
        """Iterate over the keys with ``low <= key < high`` (None: to the end) that have a head, in their order.

        A key whose newest version is a tombstone is among them for as long as that is kept.
        """
        head = self._rows.head
        for row_key, _ in self._kv.scan(head + low, prefix_end(head) if high is None else head + high):
            yield row_key[len(head) :]

    def put_many(
        self, keys: Sequence[bytes], values: Sequence[bytes | None] | pa.BinaryArray, timestamps: Times
    ) -> None:
        """Write many versions in one atomic write, with the same result as if `put` one by one in that order.

        `keys` may repeat. Raises ValueError for a negative timestamp, before anything is written.
        """
        distinct, index = distinct_keys(keys)
        self.put_columns(distinct, index, values, timestamps)

    def put_columns(
        self,
        keys: Sequence[bytes],
        index: Times,
        values: Sequence[bytes | None] | pa.BinaryArray,
        timestamps: Times,
    ) -> None:
        """As `put_many`, with each key once: row i writes to ``keys[index[i]]``."""
        times = np.asarray(timestamps, np.int64)
        written = values if isinstance(values, pa.BinaryArray) else pa.array(values, pa.binary())
        if not len(index) == len(written) == len(times):
            raise ValueError(f"{len(index)} keys, {len(written)} values and {len(times)} timestamps do not go together")
        if not len(times):
            return
        if times.min() < 0 or times.max() == NEVER:
            raise ValueError(f"a timestamp must be from 0 to {NEVER - 1} ms, but one is {_outside(times)}")
        numbers = np.asarray(index, np.int64)
        put = plan_puts(self._kv, self._rows, self._meta, keys, numbers, written, times, self._accepts)
        if put.keys:
            self._commit(put.writes, put.observed, max(_SWEPT_AT_ONCE, put.keys))

    def get_many(self, keys: Sequence[bytes], as_of: Times | None = None) -> list[VersionedRecord | Miss]:
        """Answer ``lookup(keys[i], as_of[i])`` for many; without `as_of` the newest version of each."""
        return get_many(self._kv, self._rows, self._meta, keys, as_of)

    def versions_many(self, keys: Sequence[bytes], from_ts: Times, to_ts: Times) -> Versions:
        """Return what is known of each of the distinct `keys` within ``[from_ts[i], to_ts[i]]``, as columns.

        These are all versions, tombstones too, whose validity overlaps the range, and the newest one of each key in any
        case. The retention is left to the caller (`observed_stream_time`); what ended at or before the `horizon` and
        tombstones before it are left out.
        """
        return versions_many(self._kv, self._rows, self._meta, keys, from_ts, to_ts)

    def _open_meta(self, adopt: bool) -> Meta:
        data = self._kv.get(self._rows.meta)
        if data is None:
            return Meta(self._retention, self._grace)
        meta = decode_meta(data)
        if (meta.retention, meta.grace) != (self._retention, self._grace):
            if adopt:
                return meta.adopted(self._retention, self._grace)
            times = (meta.retention, meta.grace, self._retention, self._grace)
            retention, grace, now_retention, now_grace = map(duration, times)
            raise StateError(
                f"the versioned store was written with a history retention of {retention} and a grace of {grace}, and "
                f"is opened with {now_retention} and {now_grace}",
                "open it with the values that it was written with, or rebuild the state",
            )
        return meta

    def _history(self, key: bytes, horizon: int) -> KeyHistory:
        return KeyHistory(self._kv, self._rows, key, self._kv.get(self._rows.head + key), horizon)

    def _forgotten(self, version: Found) -> bool:
        return version[0] is None and version[1] < self.horizon

    def _answer(self, version: Found | None) -> VersionedRecord | Miss:
        if version is None or self._forgotten(version):
            return Miss.NO_RECORD
        value, valid_from, valid_to = version
        return Miss.TOMBSTONE if value is None else VersionedRecord(value, valid_from, valid_to)

    def _commit(self, writes: Writes, observed: int, sweep: int) -> None:
        """Write everything and the stream time at once; then clear up to `sweep` due heads."""
        meta = self._meta
        ranges: list[tuple[bytes, bytes]] = []
        cutoff = (observed - self._kept) // self._segment * self._segment
        if cutoff > meta.dropped:
            ranges.append((self._rows.chunk_key(meta.dropped, b""), self._rows.chunk_key(cutoff, b"")))
            meta = meta.advanced(observed, cutoff, True)
        elif observed != meta.observed:
            meta = meta.advanced(observed, meta.dropped, meta.sweeping)
        if meta is not self._meta:
            writes.puts.append((self._rows.meta, encode_meta(meta)))
        self._kv.write(writes.puts, writes.deletes, ranges)
        self._meta = meta
        if meta.sweeping:
            self._sweep(sweep)

    def _sweep(self, limit: int) -> None:
        """Rewrite or remove up to `limit` heads whose due time lies before the last cutoff."""
        rows, meta, horizon = self._rows, self._meta, self.horizon
        writes = Writes()
        done = True
        for row_key, _ in self._kv.scan(rows.due, rows.due_key(meta.dropped, b"")):
            if limit == 0:
                done = False
                break
            limit -= 1
            writes.deletes.append(row_key)
            self._clear(rows.timed(row_key)[1], horizon, writes)
        if done:
            self._meta = meta.advanced(meta.observed, meta.dropped, False)
            writes.puts.append((rows.meta, encode_meta(self._meta)))
        self._kv.write(writes.puts, writes.deletes)

    def _clear(self, key: bytes, horizon: int, writes: Writes) -> None:
        history = self._history(key, horizon)
        head = history.head
        if head is None:
            return
        head.mark = -1
        if head.values[-1] is None and head.times[-1] < horizon:
            writes.deletes.append(self._rows.head + key)
        else:
            history.flush(horizon, writes)


def check_durations(retention: int, segment: int | None, grace: int | None) -> None:
    """Raise ValueError for a retention or grace below 0, a segment interval of 0 or less, or one of more than 64 bits,
    all in ms."""
    for name, given in (("history retention", retention), ("segment interval", segment), ("grace", grace)):
        if given is not None and given > NEVER:
            raise ValueError(f"the {name} must be at most {NEVER} ms, but is {given} ms")
    if retention < 0:
        raise ValueError(f"the history retention must not be negative, but is {retention} ms")
    if segment is not None and segment <= 0:
        raise ValueError(f"the segment interval must be greater than zero, but is {segment} ms")
    if grace is not None and grace < 0:
        raise ValueError(f"the grace must not be negative, but is {grace} ms")


def _check_write(key: Any, value: Any, timestamp: int) -> None:
    if not isinstance(key, bytes) or not (value is None or isinstance(value, bytes)):
        raise TypeError("a key is bytes, a value is bytes or None")
    if not 0 <= timestamp < NEVER:
        raise ValueError(f"a timestamp must be from 0 to {NEVER - 1} ms, but is {timestamp}")


def _outside(times: Times) -> int:
    return int(times.min()) if times.min() < 0 else int(times.max())
