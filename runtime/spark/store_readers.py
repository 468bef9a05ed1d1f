"""For mapInArrow, on executors: chunks of partitions' state come in, the rows that were asked for go out.

Guarantees: a partition's state is restored as a query would restore it, with every checksum checked, into a folder that
is removed afterwards; missing chunks are an error that names the blob, not a smaller answer.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from vsc.plan.nodes import Column, Plan
from vsc.runtime.operators.former import lift
from vsc.runtime.operators.views import Entry, Question, StoreInfo
from vsc.runtime.operators.views.catalog import open_view
from vsc.runtime.operators.views.view import byte_size
from vsc.runtime.spark.local_folder import spark_local
from vsc.runtime.spark.protocol import Manifest, PartitionState
from vsc.runtime.state.kv import OrderedKV, RocksKV
from vsc.runtime.values import to_array

__all__ = ["ENCODED", "Reader", "RowReader", "SizeReader", "row_ddl"]

ENCODED = "_vsc_encoded"
"""The column with the encoded key, by which rows are put in order."""
_ROWS_AT_ONCE = 4096
_Rows = Iterator[tuple[int, int, bytes | None]]


class Reader:
    """Restores each partition of a stage that comes in, and asks it."""

    def __init__(self, plan: Plan, stage: int, manifests: Mapping[int, str]) -> None:
        self._plan, self._stage, self._manifests = plan, stage, dict(manifests)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes rows (partition, place, data), a partition's together and by place, the first one without data."""
        rows = _rows(batches)
        for partition, _, _ in rows:
            chunks = _Chunks(rows, partition)
            manifest = Manifest.load(self._manifests[partition] or None)
            folder = tempfile.TemporaryDirectory(prefix="vsc-look-", dir=spark_local())
            with folder as place, RocksKV(Path(place) / "state", durable=False) as base:
                PartitionState.open(chunks, base, manifest)
                lift(self._plan, self._stage, base)
                yield from self.ask(partition, base)

    def ask(self, partition: int, kv: OrderedKV) -> Iterator[pa.RecordBatch]:
        """What is known of one partition."""
        raise NotImplementedError


class RowReader(Reader):
    """The rows of one store."""

    def __init__(self, plan: Plan, store: StoreInfo, asked: Question, manifests: Mapping[int, str]) -> None:
        super().__init__(plan, store.stage, manifests)
        self._store = store
        self._asked = asked

    def ask(self, partition: int, kv: OrderedKV) -> Iterator[pa.RecordBatch]:
        """Batches of `row_ddl`."""
        entries = open_view(self._plan, self._store, kv).answer(self._asked)
        while some := list(islice(entries, _ROWS_AT_ONCE)):
            yield _batch(self._store, some)


class SizeReader(Reader):
    """The sizes of all stores of a stage."""

    DDL: ClassVar = "store int, partition int, rows bigint, bytes bigint, stream_time bigint"

    def __init__(self, plan: Plan, stage: int, stores: tuple[StoreInfo, ...], manifests: Mapping[int, str]) -> None:
        super().__init__(plan, stage, manifests)
        self._stores = stores

    def ask(self, partition: int, kv: OrderedKV) -> Iterator[pa.RecordBatch]:
        """One row a store."""
        views = [open_view(self._plan, store, kv) for store in self._stores]
        columns = [
            pa.array(range(len(views)), pa.int32()),
            pa.array([partition] * len(views), pa.int32()),
            pa.array([view.rows() for view in views], pa.int64()),
            pa.array([byte_size(store, kv) for store in self._stores], pa.int64()),
            pa.array([view.stream_time for view in views], pa.int64()),
        ]
        yield pa.RecordBatch.from_arrays(columns, names=["store", "partition", "rows", "bytes", "stream_time"])


def row_ddl(store: StoreInfo) -> str:
    """The columns of a store's rows: the encoded key, its columns, the status, what the kind of store tells beside.

    The store's own columns go by their place here: one may be called as one of the others. Users see `StoreInfo.names`.
    """
    types = ["binary", *(str(c.type) for c in _columns(store)), "string", *("bigint" for _ in store.extra)]
    return ", ".join(f"{name} {type}" for name, type in zip(_internal_names(store), types, strict=True))


def _internal_names(store: StoreInfo) -> list[str]:
    columns = (f"_vsc_column_{i}" for i in range(len(_columns(store))))
    return [ENCODED, *columns, "_status", *(f"_{name}" for name in store.extra)]


def _columns(store: StoreInfo) -> tuple[Column, ...]:
    return (*store.key, *store.value)


def _batch(store: StoreInfo, entries: list[Entry]) -> pa.RecordBatch:
    nothing = (None,) * len(store.value)
    rows = [(*e.key, *(nothing if e.value is None else e.value)) for e in entries]
    columns = _columns(store)
    arrays = [pa.array([e.encoded for e in entries], pa.binary())]
    arrays += [to_array([row[i] for row in rows], column.type) for i, column in enumerate(columns)]
    arrays.append(pa.array([e.status.value for e in entries], pa.string()))
    arrays += [pa.array([e.extra[i] for e in entries], pa.int64()) for i in range(len(store.extra))]
    return pa.RecordBatch.from_arrays(arrays, names=_internal_names(store))


class _Chunks:
    """The `BlobStore` of one partition, for reading: its chunks come in the order in which a restore asks for them."""

    def __init__(self, rows: _Rows, partition: int) -> None:
        self._rows, self._partition, self._place = rows, partition, 0

    def get(self, blob: str, chunk: int) -> bytes | None:
        """The next chunk; None if it did not come."""
        self._place += 1
        partition, place, data = next(self._rows, (None, None, None))
        return data if (partition, place) == (self._partition, self._place) else None

    def manifest(self) -> str | None:
        """Never asked for: it is known beforehand."""
        raise NotImplementedError

    def set_manifest(self, text: str) -> None:
        """Never done."""
        raise NotImplementedError

    def put(self, blob: str, chunk: int, data: bytes) -> None:
        """Never done."""
        raise NotImplementedError

    def remove(self, blob: str, chunk: int) -> None:
        """Never done."""
        raise NotImplementedError


def _rows(batches: Iterable[pa.RecordBatch]) -> _Rows:
    for batch in batches:
        for partition, place, data in zip(*batch.columns, strict=True):
            yield partition.as_py(), place.as_py(), data.as_py()
