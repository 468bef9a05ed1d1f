"""Views of tables' own stores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from vsc.plan.nodes import Plan
from vsc.runtime.operators.views.question import Question, Status, StoreInfo
from vsc.runtime.operators.views.view import Entry, StoreView, clock
from vsc.runtime.state.api import NEVER, Miss
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.state.timed_rows import TimestampedStore
from vsc.runtime.state.versioned import VersionedStore

__all__ = ["open_table_view"]

_KEYS_AT_ONCE = 4096

_Version = tuple[int, int, bytes | None]
"""Valid from, valid to (`NEVER` for the newest), the row; None: a tombstone."""


def open_table_view(plan: Plan, store: StoreInfo, kv: OrderedKV, clock: int | None = None) -> StoreView:
    """The view of a table's store, by this clock; None: by its own stream time."""
    if store.kind == "unversioned":
        return _Unversioned(store, TimestampedStore(kv, store.prefix))
    kept = plan.node(store.node).store
    assert kept is not None and kept.retention is not None
    return _Versioned(store, VersionedStore(kv, store.prefix, kept.retention, kept.segment, kept.grace, True, clock))


class _Table:
    held = 0

    def __init__(self, info: StoreInfo) -> None:
        self._keys = KeyCodec([c.type for c in info.key])
        self._rows = RowCodec([c.type for c in info.value])

    def _no_record(self, key: bytes) -> Entry:
        return Entry(Status.NO_RECORD, key, self._keys.decode(key), None, (None, None))


class _Versioned(_Table):
    """A versioned store: one entry per key, or with a history one per version."""

    def __init__(self, info: StoreInfo, store: VersionedStore) -> None:
        super().__init__(info)
        self._store = store

    @property
    def stream_time(self) -> int | None:
        return clock(self._store.observed_stream_time)

    def rows(self) -> int:
        whole = Question(history=True)
        return sum(len(versions) for keys in _chunks(self._store.keys()) for versions in self._versions(keys, whole))

    def answer(self, question: Question) -> Iterator[Entry]:
        wanted = [question.key] if question.key is not None else self._store.keys(question.low, question.high)
        for keys in _chunks(wanted):
            if question.history:
                yield from self._histories(keys, question)
            else:
                yield from self._states(keys, question)

    def _states(self, keys: list[bytes], question: Question) -> Iterator[Entry]:
        """The rows valid at the time of the question."""
        as_of = None if question.as_of is None else np.full(len(keys), question.as_of, np.int64)
        found = self._store.get_many(keys, as_of)
        for key, one in zip(keys, found, strict=True):
            if not isinstance(one, Miss):
                yield self._entry(key, one.valid_from, NEVER if one.valid_to is None else one.valid_to, one.value)
            elif one is Miss.TOMBSTONE:
                yield self._tombstone(key, question.as_of)
            elif one is Miss.OLDER_THAN_RETENTION:
                yield self._too_old(key)
            elif question.key is not None:
                yield self._no_record(key)

    def _tombstone(self, key: bytes, as_of: int | None) -> Entry:
        at = NEVER - 1 if as_of is None else as_of
        [versions] = self._versions([key], Question(history=True, start=at, end=at))
        return self._entry(key, *[version for version in versions if version[0] <= at][-1])

    def _histories(self, keys: list[bytes], question: Question) -> Iterator[Entry]:
        limit = self._limit
        for key, versions in zip(keys, self._versions(keys, question), strict=True):
            for version in reversed(versions):
                yield self._entry(key, *version)
            if not versions and question.key is not None:
                yield self._no_record(key)
            elif question.start is not None and question.start < limit and versions and versions[0][0] > question.start:
                yield self._too_old(key)

    def _versions(self, keys: list[bytes], question: Question) -> list[list[_Version]]:
        """For each key its versions within the range and the retention, oldest first; the newest at any age."""
        start = self._limit if question.start is None else max(question.start, self._limit)
        end = NEVER - 1 if question.end is None else question.end
        found = self._store.versions_many(
            keys, np.full(len(keys), start, np.int64), np.full(len(keys), max(end, start), np.int64)
        )
        of_key: list[list[_Version]] = [[] for _ in keys]
        columns = (found.key.tolist(), found.valid_from.tolist(), found.valid_to.tolist(), found.values.to_pylist())
        for key, valid_from, valid_to, value in zip(*columns, strict=True):
            if valid_from <= end and (valid_to > start or valid_to == NEVER):
                of_key[key].append((valid_from, valid_to, value))
        return of_key

    @property
    def _limit(self) -> int:
        """The earliest time for which the store answers."""
        return self._store.observed_stream_time - self._store.retention

    def _entry(self, key: bytes, valid_from: int, valid_to: int, value: bytes | None) -> Entry:
        status = Status.TOMBSTONE if value is None else Status.VERSION
        row = None if value is None else self._rows.decode(value)
        return Entry(status, key, self._keys.decode(key), row, (valid_from, None if valid_to == NEVER else valid_to))

    def _too_old(self, key: bytes) -> Entry:
        return Entry(Status.OLDER_THAN_RETENTION, key, self._keys.decode(key), None, (None, self._limit))


class _Unversioned(_Table):
    """A store that keeps one row per key. `valid_from` is the row's event time."""

    stream_time = None

    def __init__(self, info: StoreInfo, store: TimestampedStore) -> None:
        super().__init__(info)
        self._store = store

    def rows(self) -> int:
        return sum(1 for _ in self._store.scan())

    def answer(self, question: Question) -> Iterator[Entry]:
        key = question.key
        if key is None:
            for row in self._store.scan(question.low, question.high):
                yield self._entry(*row)
        elif (found := next(self._store.scan(key, key + b"\0"), None)) is not None:
            yield self._entry(*found)
        else:
            yield self._no_record(key)

    def _entry(self, key: bytes, value: bytes, time: int) -> Entry:
        return Entry(Status.ROW, key, self._keys.decode(key), self._rows.decode(value), (time, None))


def _chunks(keys: Iterable[bytes]) -> Iterator[list[bytes]]:
    rest = iter(keys)
    while chunk := list(islice(rest, _KEYS_AT_ONCE)):
        yield chunk
