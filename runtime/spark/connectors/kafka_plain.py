"""Records of Kafka made of an epoch's rows in Python, a batch at a time, where the same bytes as Spark's can be had.

The other ones are encoded by Spark (`kafka_sink`), which costs another way to the JVM and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.nodes import Node
from vsc.plan.types import STRING
from vsc.runtime.spark.connectors.kafka_layout import Layout, Part
from vsc.runtime.spark.output import TIMESTAMP
from vsc.runtime.spark.plain_json import is_written, written

__all__ = ["PlainRecords"]


@dataclass(frozen=True)
class PlainRecords:
    """Makes key, value and timestamp of rows of `Output.changes`. `always`: there are no tombstones."""

    key: Part | None
    value: Part
    places: dict[str, int]
    always: bool

    @classmethod
    def of(cls, node: Node, record: Layout) -> Self | None:
        """None if Spark has to encode them."""
        if record.headers is not None or not all(map(_is_plain, record.parts)):
            return None
        columns = [*node.schema.key, *node.schema.value]
        places = {TIMESTAMP: len(columns) + 1} | {column.name: i for i, column in enumerate(columns)}
        return cls(record.key, record.value, places, record.key is None and bool(node.schema.key))

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The records of a batch of rows."""
        change, timestamp = batch.columns[-2:]
        value = self._encoded(self.value, batch)
        if not self.always:
            value = pc.if_else(pc.equal(change, "upsert"), value, pa.scalar(None, pa.binary()))
        key = pa.nulls(batch.num_rows, pa.binary()) if self.key is None else self._encoded(self.key, batch)
        return pa.RecordBatch.from_arrays([key, value, timestamp], ["key", "value", "timestamp"])

    def _encoded(self, part: Part, batch: pa.RecordBatch) -> pa.Array:
        arrays = [batch.column(self.places[column.name]) for column in part.columns]
        text = written(part.columns, arrays) if part.form == "json" else arrays[0]
        return text.cast(pa.binary())


def _is_plain(part: Part) -> bool:
    if part.form == "string":
        return [column.type for column in part.columns] == [STRING]
    return part.form == "json" and is_written(part.columns)
