"""What an epoch gives its sinks: blobs of records become rows again, with the system columns that a sink asks for.

Guarantees: the rows of a key stand in one task, in the order of D12 (`vsc.runtime.spark.exchange.delivery`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from vsc.plan.nodes import Node, Schema
from vsc.plan.types import BIGINT, DataType
from vsc.runtime.records import Batch
from vsc.runtime.spark.base.ddl import ddl
from vsc.runtime.spark.exchange.blob_files import blob_of
from vsc.runtime.spark.exchange.delivery import Delivery, merged
from vsc.runtime.spark.exchange.tally import Tally
from vsc.runtime.spark.exchange.wire import SINK

__all__ = ["CHANGE", "TIMESTAMP", "Output", "RowTransform", "Unpack", "written_columns"]

CHANGE = "_change"
TIMESTAMP = "_timestamp"


def written_columns(node: Node, timestamp: bool) -> dict[str, DataType]:
    """What a sink writes of each row of `node`, by name, in order; with `timestamp` the event time, too."""
    columns = {column.name: column.type for column in (*node.schema.key, *node.schema.value)}
    return columns | {TIMESTAMP: BIGINT} if timestamp else columns


class RowTransform(NamedTuple):
    """What `work` makes of rows, of the `columns`, in the Python worker that unpacks them."""

    work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    columns: str


@dataclass(frozen=True, slots=True)
class Output:
    """An epoch's records for each sink, by its id, of a query with so many vsc `partitions`.

    `computed`: they are there already, and counted.
    """

    blobs: DataFrame
    delivery: Delivery
    partitions: int
    computed: bool = False

    def is_known_empty(self, rows: Callable[[], Tally]) -> bool:
        """Whether it is known before they are written that a sink gets no rows; `rows` counts what it gets."""
        return self.computed and not rows().count

    def rows(
        self, sink: str, node: Node, timestamp: bool = False, transform: RowTransform | None = None,
        changes: bool = False,
    ) -> DataFrame:  # fmt: skip
        """The rows for a sink of `node`: key and value columns, for a table, or with `changes`, both system columns (of
        a stream, a record without value is a `delete`); with `timestamp` the event time of a stream's too. With
        `transform` what it makes of them."""
        changes, shuffled = changes or node.kind == "table", node.name in self.delivery.shuffled
        return _rows(self._blobs(sink), Unpack(node.schema, changes, changes or timestamp, shuffled, transform))

    def changes(self, sink: str, node: Node, transform: RowTransform | None = None) -> DataFrame:
        """The rows for a sink of `node`, always with both system columns (of a stream, a record without value is a
        `delete`). Task p has those of vsc partition p, the same ones and in the same order whenever the epoch comes.
        With `transform` what it makes of them."""
        blobs, shuffled = self._blobs(sink), node.name in self.delivery.shuffled
        if not self.delivery.by_partition:
            blobs, shuffled = blobs.repartition(self.partitions, "slot"), True
        return _rows(blobs, Unpack(node.schema, True, True, shuffled, transform))

    def records(self, sink: str, node: Node) -> list[Batch]:
        """The records for a sink of `node`, brought here; none is the empty list."""
        rows = self._blobs(sink).select("payload").collect()
        return [Batch.from_ipc(blob_of(bytes(row.payload)), node.schema) for row in rows]

    def _blobs(self, sink: str) -> DataFrame:
        """The wire rows for one sink."""
        # As text: each of PySpark's column functions is three calls of the JVM.
        return self.blobs.where(f"dest = {SINK} AND port = '{sink}'")


@dataclass(frozen=True)
class Unpack:
    """For mapInArrow over payloads: the rows of a sink. `change` and `timestamp` add columns of those names.

    `shuffled`: the payloads come by the place of their first record, and overlap. `transform`: applied to the rows.
    """

    schema: Schema
    change: bool
    timestamp: bool
    shuffled: bool
    transform: RowTransform | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows, a batch at a time, or what is made of them."""
        found = (Batch.from_ipc(blob_of(p.as_buffer()), self.schema) for batch in batches for p in batch.column(0))
        rows = map(self.rows, merged(found) if self.shuffled else found)
        return rows if self.transform is None else self.transform.work(rows)

    def rows(self, records: Batch) -> pa.RecordBatch:
        """The rows of one batch of records."""
        arrays = list(records.columns)
        if self.change:
            arrays.append(pa.array(np.where(records.present, "upsert", "delete"), pa.string()))
        if self.timestamp:
            arrays.append(pa.array(records.timestamps, pa.int64()))
        return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in self.columns])

    @property
    def columns(self) -> list[tuple[str, object]]:
        """The columns and their types, in their order: one of the record's own may be called as one that is added."""
        found: list[tuple[str, object]] = [(c.name, c.type) for c in (*self.schema.key, *self.schema.value)]
        return found + [(CHANGE, "string")] * self.change + [(TIMESTAMP, "bigint")] * self.timestamp


def _rows(blobs: DataFrame, unpack: Unpack) -> DataFrame:
    ordered = blobs.sortWithinPartitions("place") if unpack.shuffled else blobs
    columns = ddl(unpack.columns) if unpack.transform is None else unpack.transform.columns
    return ordered.select("payload").mapInArrow(unpack, _columns(columns))


@cache
def _columns(ddl: str) -> StructType:
    """From Spark's DDL, which the JVM would otherwise parse in each epoch."""
    found = StructType.fromDDL(ddl)
    assert isinstance(found, StructType)
    return found
