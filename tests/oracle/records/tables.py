"""The tables of a stage, row by row: one face for versioned and unversioned stores, rows instead of bytes."""

from __future__ import annotations

import struct
from typing import Protocol

from vsc.plan.nodes import Node, Stage
from vsc.runtime.metrics import Missed
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.operators.layout import store_prefix
from vsc.runtime.state.api import Miss, OutcomeKind
from vsc.runtime.state.grace_buffer import Buffered, TimeOrderedBuffer
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.state.timed_rows import Subscription, SubscriptionStore, TimestampedStore
from vsc.runtime.state.versioned import VersionedStore

__all__ = ["Found", "RecordBuffer", "RecordStore", "RecordSubscriptions", "TableStore", "open_table"]

Found = tuple[Row, int, int | None]
"""A row that a look-up found: its value columns, valid from, valid to (None: it is the newest)."""

_CACHED_ROWS = 65_536
_TIME = struct.Struct("<q")
_SUBSCRIPTIONS = struct.pack("<4sH", b"VSUB", 1)


class RecordStore(TimestampedStore):
    """An unversioned store, key by key."""

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Write the value of `key`, or remove it for None."""
        if value is None:
            self._commit([], [self._rows + key])
        else:
            self._commit([(self._rows + key, _TIME.pack(timestamp) + value)], [])

    def get(self, key: bytes) -> tuple[bytes, int] | None:
        """Return (value, timestamp) of `key`, or None."""
        data = self._kv.get(self._rows + key)
        return None if data is None else (data[_TIME.size :], _TIME.unpack_from(data)[0])


class RecordBuffer(TimeOrderedBuffer):
    """The buffer of a join with grace, record by record."""

    def add(self, timestamp: int, key: bytes, payload: bytes) -> None:
        """Take in a record."""
        self.pass_through(1, timestamp, [(0, Buffered(timestamp, key, payload))])


class RecordSubscriptions(SubscriptionStore):
    """The subscriptions of a foreign-key join, one by one."""

    def put(self, foreign_key: bytes, subscription: Subscription) -> None:
        """Write a subscription; it takes the place of the one of its left key to the same foreign key."""
        left_key, row, timestamp = subscription
        written = self._rows + foreign_key + left_key, _TIME.pack(timestamp) + row
        self._kv.write([written, (self._meta, _SUBSCRIPTIONS)])

    def delete(self, foreign_key: bytes, left_key: bytes) -> None:
        """Remove a subscription, if it is there."""
        self._kv.write((), [self._rows + foreign_key + left_key])


class TableStore(Protocol):
    """A table's store. Keys are encoded, rows are tuples of internal values, times are in ms."""

    @property
    def versioned(self) -> bool:
        """Whether it can be read as of a time."""

    @property
    def stream_time(self) -> int:
        """The highest time it has accepted; -1 at first, and always for an unversioned store."""

    def put(self, key: bytes, row: Row | None, time: int) -> OutcomeKind:
        """Writes a row, or a tombstone."""

    def newest(self, key: bytes) -> Row | None:
        """The row that is the key's newest; None without one."""

    def lookup(self, key: bytes, as_of: int | None) -> Found | Missed:
        """The row valid at `as_of`, or the newest for None."""


class _Rows:
    """Rows as bytes. Keeps the rows that it decoded last: a stream reads the same row of a table again and again."""

    __slots__ = ("_codec", "_decoded", "encode")

    def __init__(self, node: Node) -> None:
        self._codec = RowCodec([c.type for c in node.schema.value])
        self._decoded: dict[bytes, Row] = {}
        self.encode = self._codec.encode

    def decode(self, data: bytes) -> Row:
        row = self._decoded.get(data)
        if row is None:
            if len(self._decoded) >= _CACHED_ROWS:
                self._decoded.clear()
            row = self._decoded[data] = self._codec.decode(data)
        return row


class _VersionedTable:
    """`TableStore` over a versioned store."""

    __slots__ = ("_rows", "_store")
    versioned = True

    def __init__(self, store: VersionedStore, rows: _Rows) -> None:
        self._store, self._rows = store, rows

    @property
    def stream_time(self) -> int:
        return self._store.observed_stream_time

    def put(self, key: bytes, row: Row | None, time: int) -> OutcomeKind:
        return self._store.put(key, None if row is None else self._rows.encode(row), time).kind

    def newest(self, key: bytes) -> Row | None:
        found = self._store.lookup(key)
        return None if isinstance(found, Miss) else self._rows.decode(found.value)

    def lookup(self, key: bytes, as_of: int | None) -> Found | Missed:
        found = self._store.lookup(key, as_of)
        if isinstance(found, Miss):
            return found
        return self._rows.decode(found.value), found.valid_from, found.valid_to


class _UnversionedTable:
    """`TableStore` over a store that keeps one row a key, the one that came last."""

    __slots__ = ("_rows", "_store")
    versioned = False
    stream_time = -1

    def __init__(self, store: RecordStore, rows: _Rows) -> None:
        self._store, self._rows = store, rows

    def put(self, key: bytes, row: Row | None, time: int) -> OutcomeKind:
        self._store.put(key, None if row is None else self._rows.encode(row), time)
        return OutcomeKind.LATEST

    def newest(self, key: bytes) -> Row | None:
        found = self._store.get(key)
        return None if found is None else self._rows.decode(found[0])

    def lookup(self, key: bytes, as_of: int | None) -> Found | Missed:
        if as_of is not None:
            raise ValueError("an unversioned table cannot be read as of a time")
        found = self._store.get(key)
        return Missed.NO_RECORD if found is None else (self._rows.decode(found[0]), found[1], None)


def open_table(kv: OrderedKV, stage: Stage, node: Node) -> TableStore:
    """The store of `node` in `stage`; the node must have one."""
    store, prefix, rows = node.store, store_prefix(stage, node.name), _Rows(node)
    assert store is not None
    if store.kind == "unversioned":
        return _UnversionedTable(RecordStore(kv, prefix), rows)
    assert store.retention is not None
    return _VersionedTable(VersionedStore(kv, prefix, store.retention, store.segment, store.grace), rows)
