"""Blobs of records become rows again, for a sink: key columns, value columns, and the system columns it asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vsc.plan.nodes import Node, Schema
from vsc.runtime.records import Batch
from vsc.runtime.spark.sources import quoted
from vsc.runtime.spark.wire import SINK

__all__ = ["CHANGE", "TIMESTAMP", "Unpack", "sink_blobs", "sink_rows"]

CHANGE = "_change"
TIMESTAMP = "_timestamp"


@dataclass(frozen=True)
class Unpack:
    """For mapInArrow over payloads: the rows of a sink. `change` and `timestamp` add columns of those names."""

    schema: Schema
    change: bool
    timestamp: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One batch of rows for each blob."""
        for batch in batches:
            for payload in batch.column(0):
                yield self.rows(Batch.from_ipc(payload.as_buffer(), self.schema))

    def rows(self, records: Batch) -> pa.RecordBatch:
        """The rows of one blob."""
        arrays = list(records.columns)
        if self.change:
            arrays.append(pa.array(np.where(records.present, "upsert", "delete"), pa.string()))
        if self.timestamp:
            arrays.append(pa.array(records.timestamps, pa.int64()))
        return pa.RecordBatch.from_arrays(arrays, names=self.names)

    @property
    def names(self) -> list[str]:
        """The names of the columns, in their order."""
        found = [c.name for c in (*self.schema.key, *self.schema.value)]
        return found + [CHANGE] * self.change + [TIMESTAMP] * self.timestamp

    @property
    def ddl(self) -> str:
        """The columns as Spark's DDL."""
        found = [f"{quoted(c.name)} {c.type}" for c in (*self.schema.key, *self.schema.value)]
        return ", ".join(found + [f"{CHANGE} string"] * self.change + [f"{TIMESTAMP} bigint"] * self.timestamp)


def sink_blobs(batch: DataFrame, sink: str) -> DataFrame:
    """The payloads for one sink in an epoch's output."""
    return batch.where((F.col("dest") == SINK) & (F.col("port") == sink)).select("payload")


def sink_rows(batch: DataFrame, sink: str, node: Node, timestamp: bool = False) -> DataFrame:
    """The rows for one sink of `node` in an epoch's output; a table's have both system columns."""
    table = node.kind == "table"
    unpack = Unpack(node.schema, table, table or timestamp)
    return sink_blobs(batch, sink).mapInArrow(unpack, unpack.ddl)
