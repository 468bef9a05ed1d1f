"""The rows that travel between the parts of a query on Spark: one row carries a blob of records, not one record.

Guarantees: a row of partition p reaches the p-th shuffle partition, alone with other rows of p. Spark places a row by
Murmur3 of its grouping key, so the keys are *chosen* (`slots`): the p-th key is the smallest number that Spark sends
to shuffle partition p. Not for the contents of a blob: that is `vsc.runtime.records.Batch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from vsc.runtime.records import Batch

__all__ = [
    "CONTROL",
    "SINK",
    "WIRE_ARROW",
    "WIRE_DDL",
    "WireRow",
    "chunks",
    "pieces",
    "record_batches",
    "size_of",
    "slots",
    "spark_hash",
    "wire_columns",
]

SINK = -1
"""`dest` of rows that foreachBatch hands to the sink `port`."""

CONTROL = -2
"""`dest` of rows for the driver: JSON counters of one task, see `vsc.runtime.spark.exchange.counters`."""

WIRE_DDL = "slot bigint, dest int, port string, partition int, place binary, payload binary"
"""What crosses every border: `slot` is the grouping key, `dest` a stage (or `SINK`, `CONTROL`), `port` a node name or
sink id, `partition` the vsc partition, `place` where a sink's records begin in D12's order (`Place.encoded`; null for
what is not for a sink), `payload` the bytes."""

WIRE_ARROW = pa.schema(
    [
        ("slot", pa.int64()),
        ("dest", pa.int32()),
        ("port", pa.string()),
        ("partition", pa.int32()),
        ("place", pa.binary()),
        ("payload", pa.binary()),
    ]
)

ROWS_A_BATCH = 256
"""How many rows Spark puts into one Arrow batch, at most: rows of a source, or blobs. More of them gain nothing."""

BLOB_BYTES = 128 << 10
"""About how big a blob may be, unless a single record is bigger. So an Arrow batch of blobs has some 32 MiB at most."""

CHUNK_BYTES = ROWS_A_BATCH * BLOB_BYTES
"""About how many bytes Python workers hand to Spark at once."""

_SYSTEM_BYTES = 16
"""About what a record's place in the order and its event time take beside its columns."""

_SPARK_SEED = 42
_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class WireRow:
    """One row of `WIRE_DDL`, without its slot (which follows from `partition`)."""

    dest: int
    port: str
    partition: int
    payload: bytes
    place: bytes | None = None


def chunks(rows: Iterable[WireRow]) -> Iterator[list[WireRow]]:
    """The rows in their order, in lists of about `CHUNK_BYTES` each; none without rows."""
    chunk: list[WireRow] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += len(row.payload)
        if size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def record_batches(rows: Iterable[WireRow], keys: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
    """The rows as Arrow batches of `WIRE_ARROW`; `keys` are `slots` of the query."""
    for chunk in chunks(rows):
        yield pa.RecordBatch.from_pydict(wire_columns(chunk, keys), schema=WIRE_ARROW)


def wire_columns(rows: Sequence[WireRow], keys: tuple[int, ...]) -> dict[str, list[Any]]:
    """The columns of `WIRE_DDL`, by name; `keys` are `slots` of the query."""
    slot = [keys[row.partition] for row in rows]
    return {"slot": slot} | {name: [getattr(row, name) for row in rows] for name in WIRE_ARROW.names[1:]}


def size_of(batch: Batch) -> int:
    """About how many bytes the batch takes."""
    columns: int = sum(column.nbytes for column in batch.columns)
    return columns + len(batch) * _SYSTEM_BYTES


def pieces(batch: Batch, most: int = BLOB_BYTES) -> Iterator[Batch]:
    """The batch in pieces of about `most` bytes each, its rows in their order; none for an empty batch."""
    rows = len(batch)
    step = max(1, rows * most // max(size_of(batch), 1))
    for start in range(0, rows, step):
        yield batch.slice(start, min(start + step, rows))


@cache
def slots(partitions: int) -> tuple[int, ...]:
    """For each of `partitions` shuffle partitions the smallest non-negative bigint that Spark's hash sends there."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < partitions:
        found.setdefault(spark_hash(candidate) % partitions, candidate)
        candidate += 1
    return tuple(found[p] for p in range(partitions))


def spark_hash(value: int) -> int:
    """Spark's ``hash(bigint)``: Murmur3 (x86, 32 bit, seed 42) of the 8 bytes of `value`, as a signed int."""
    low, high = value & _MASK, (value >> 32) & _MASK
    h = _mix(_mix(_SPARK_SEED, low), high) ^ 8
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & _MASK
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >= 1 << 31 else h


def _mix(h: int, k: int) -> int:
    k = (k * 0xCC9E2D51) & _MASK
    k = ((k << 15) | (k >> 17)) & _MASK
    h ^= (k * 0x1B873593) & _MASK
    h = ((h << 13) | (h >> 19)) & _MASK
    return (h * 5 + 0xE6546B64) & _MASK
