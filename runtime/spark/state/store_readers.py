"""For mapInArrow, on executors: chunks of partitions' state come in, the rows that were asked for go out.

Guarantees: a partition's state is restored as a query would restore it, with every checksum checked, into a folder that
is removed afterwards; missing chunks are an error that names the blob, not a smaller answer.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import pyarrow as pa

from vsc.plan.nodes import Plan
from vsc.runtime.expressions import bind_allowed
from vsc.runtime.operators.migrations import migrate
from vsc.runtime.operators.views import Entry, Question, StoreInfo
from vsc.runtime.operators.views.catalog import open_view
from vsc.runtime.operators.views.view import byte_size
from vsc.runtime.spark.base.folders import spark_local
from vsc.runtime.spark.state.protocol import GetChunk, Manifest, replay
from vsc.runtime.state.kv import OrderedKV, RocksKV
from vsc.runtime.values import to_array

__all__ = ["ENCODED", "SIZES_DDL", "Ask", "Reader", "row_ddl", "store_rows", "store_sizes"]

ENCODED = "_vsc_encoded"
"""The column with the encoded key, by which rows are put in order."""
_ROWS_AT_ONCE = 4096
Ask = Callable[[int, OrderedKV], Iterator[pa.RecordBatch]]
"""What is wanted of a partition, by its number, and its state."""
_Rows = Iterator[tuple[int, int, bytes | None]]


@dataclass(frozen=True, slots=True)
class Reader:
    """Restores each partition of a stage that comes in, and hands it to `ask`: what that gives are the results."""

    plan: Plan
    stage: int
    manifests: Mapping[int, Manifest]
    ask: Ask

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes rows (partition, place, data), a partition's together and by place, the first one without data."""
        rows = _rows(batches)
        for partition, _, _ in rows:
            folder = tempfile.TemporaryDirectory(prefix="vsc-look-", dir=spark_local())
            with folder as place, RocksKV(Path(place) / "state", durable=False) as base:
                replay(_chunks(rows, partition), base, self.manifests[partition])
                migrate(self.plan, self.stage, base)
                yield from self.ask(partition, base)


def store_rows(
    plan: Plan,
    store: StoreInfo,
    asked: Question,
    clocks: Mapping[str, int],
    functions: tuple[str, ...],
    _: int,
    kv: OrderedKV,
) -> Iterator[pa.RecordBatch]:
    """The answer of a store in one partition, where each source has the time in `clocks`: batches of `row_ddl`.

    `functions`: the modules from which the plan may call functions.
    """
    bind_allowed(plan, functions)
    entries = open_view(plan, store, kv, clocks).answer(asked)
    while some := list(islice(entries, _ROWS_AT_ONCE)):
        yield _batch(store, some)


SIZES_DDL = "store int, partition int, rows bigint, bytes bigint, stream_time bigint"


def store_sizes(
    plan: Plan, stores: Sequence[StoreInfo], clocks: Mapping[str, int], partition: int, kv: OrderedKV
) -> Iterator[pa.RecordBatch]:
    """The sizes of the stores of a stage in one partition, by their numbers: rows of `SIZES_DDL`."""
    views = [open_view(plan, store, kv, clocks) for store in stores]
    columns = [
        pa.array(range(len(views)), pa.int32()),
        pa.array([partition] * len(views), pa.int32()),
        pa.array([view.rows() for view in views], pa.int64()),
        pa.array([byte_size(store, kv) for store in stores], pa.int64()),
        pa.array([view.stream_time for view in views], pa.int64()),
    ]
    yield pa.RecordBatch.from_arrays(columns, names=["store", "partition", "rows", "bytes", "stream_time"])


def row_ddl(store: StoreInfo) -> str:
    """The columns of a store's rows: the encoded key, its columns, the status, what the kind of store tells beside.

    The store's own columns go by their place here: one may be called as one of the others. Users see `StoreInfo.names`.
    """
    return ", ".join(f"{name} {type}" for name, type in _fields(store))


def _fields(store: StoreInfo) -> list[tuple[str, object]]:
    columns = ((f"_vsc_column_{i}", c.type) for i, c in enumerate((*store.key, *store.value)))
    return [(ENCODED, "binary"), *columns, ("_status", "string"), *((f"_{name}", "bigint") for name in store.extra)]


def _batch(store: StoreInfo, entries: list[Entry]) -> pa.RecordBatch:
    nothing = (None,) * len(store.value)
    rows = [(*e.key, *(nothing if e.value is None else e.value)) for e in entries]
    arrays = [pa.array([e.encoded for e in entries], pa.binary())]
    arrays += [to_array([row[i] for row in rows], column.type) for i, column in enumerate((*store.key, *store.value))]
    arrays.append(pa.array([e.status.value for e in entries], pa.string()))
    arrays += [pa.array([e.extra[i] for e in entries], pa.int64()) for i in range(len(store.extra))]
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in _fields(store)])


def _chunks(rows: _Rows, partition: int) -> GetChunk:
    """The chunks of a partition, which come in the order in which a restore asks for them; None if one did not come."""
    places = count(1)

    def chunk(_blob: str, _number: int) -> bytes | None:
        place = next(places)
        found, at, data = next(rows, (None, None, None))
        return data if (found, at) == (partition, place) else None

    return chunk


def _rows(batches: Iterable[pa.RecordBatch]) -> _Rows:
    for batch in batches:
        for partition, place, data in zip(*batch.columns, strict=True):
            yield partition.as_py(), place.as_py(), data.as_py()
