"""A Kafka topic as a sink: each result once, in order of its key, with its event time as the record's timestamp.

Each task of an epoch writes in one transaction, and notes the epoch in it (`kafka_epochs`): so Kafka takes both or
neither, and an epoch that comes again finds that it is there. The transactional id is that of the checkpoint, the sink
and the vsc partition: a task that begins ends whatever an older one left open, and nothing that such a one still sends
is taken.

A task has the same records whenever its epoch comes again; beside the epoch stand their number and a check sum, which
have to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vsc.plan.nodes import Column as DeclaredColumn
from vsc.plan.nodes import DeadLetters, Node, Sink
from vsc.plan.types import BIGINT, STRING, MapType
from vsc.runtime.errors import SinkError
from vsc.runtime.spark.connectors.connector import EpochSink
from vsc.runtime.spark.connectors.kafka_client import client_settings
from vsc.runtime.spark.connectors.kafka_epochs import create_epochs
from vsc.runtime.spark.connectors.kafka_layout import Layout, Part, key_format, layout
from vsc.runtime.spark.connectors.kafka_transaction import Transaction, forget_after
from vsc.runtime.spark.epoch_files import Tally
from vsc.runtime.spark.options import Options
from vsc.runtime.spark.output import CHANGE, TIMESTAMP, Handed, Output
from vsc.runtime.spark.plain_json import is_written, written

__all__ = ["KafkaSink", "to_json"]

_JSON = {"timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
_WRITTEN = "records bigint"
_CHANGE, _TIMESTAMP = f"_vsc{CHANGE}", f"_vsc{TIMESTAMP}"


class KafkaSink(EpochSink):
    """See the module."""

    computes = False

    def __init__(self, sink: Sink, node: Node, checkpoint: str) -> None:
        super().__init__(sink, node)
        self._name = f"vsc-{checkpoint[:16]}-{sink.id.removeprefix('sink-')}"
        self._topic = self._options.text("topic")
        self._settings = client_settings(self._options)
        added = [DeclaredColumn(TIMESTAMP, BIGINT)] if self._options.flag("with_timestamp") else []
        self._record = layout(self._options, node, [*node.schema.key, *node.schema.value, *added], "write")
        self._created = False

    def write(self, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
        """Writes the epoch, or what of it is not there yet."""
        expected = rows().count  # raises if the epoch is refused
        if not expected:
            return
        if not self._created:
            create_epochs(self._settings, self._name, output.partitions, self._place)
            self._created = True
        loose = isinstance(self._node.operation, DeadLetters)
        task = EpochTask(self._settings, self._topic, self._name, epoch, self._place, loose)
        written = sum(row.records for row in self._tasks(output, task).collect())
        if written != expected:
            raise RuntimeError(f"{self._place}: {written} records instead of {expected} in epoch {epoch}")

    def _tasks(self, output: Output, task: EpochTask) -> DataFrame:
        """What the tasks of an epoch give out: of records that Spark encodes, or which the tasks do themselves."""
        plain = _PlainRecords.of(self._node, self._record)
        if plain is not None:
            return output.changes(self.id, self._node, Handed(replace(task, encode=plain), _WRITTEN))
        records = _spark_records(output.changes(self.id, self._node), self._node, self._record, self._place)
        return records.mapInArrow(task, _WRITTEN)

    def back_to(self, epoch: int) -> None:
        """What later epochs wrote stays in the topic; that they were written is forgotten, so that they come again."""
        forget_after(self._settings, self._name, epoch, self._place)


@dataclass(frozen=True)
class EpochTask:
    """For mapInArrow over the records of one vsc partition, which `encode` makes of what comes in (None: it is those,
    as of `_spark_records`): writes them, gives out how many. `loose`: see `Transaction`."""

    settings: Mapping[str, str] = field(repr=False)
    topic: str
    name: str
    epoch: int
    place: str
    loose: bool
    encode: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row, or none if there are no records."""
        batches = (batch if self.encode is None else self.encode(batch) for batch in batches if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        with Transaction(
            self.settings, self.topic, self.name, partition, self.place, self.epoch, self.loose
        ) as transaction:
            transaction.begin()
            for batch in chain((first,), batches):
                transaction.add(batch)
            ledger = transaction.finish()
        yield pa.RecordBatch.from_pydict({"records": pa.array([ledger.records], pa.int64())})


@dataclass(frozen=True)
class _PlainRecords:
    """Makes key, value and timestamp of rows of `Output.changes` in Python, a batch at a time, where the same bytes as
    Spark's can be had: that costs another way to the JVM and back. `always`: there are no tombstones."""

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


def _spark_records(changes: DataFrame, node: Node, record: Layout, place: str) -> DataFrame:
    """`Output.changes` as key and value (binary, either may be null), timestamp in ms, and headers, if there are any:
    an array of their keys and values."""
    columns = [*node.schema.key, *node.schema.value]
    inner = {column.name: F.col(f"_vsc_column_{i}").alias(column.name) for i, column in enumerate(columns)}
    inner[TIMESTAMP] = inner.get(TIMESTAMP, F.col(_TIMESTAMP).alias(TIMESTAMP))
    value = _encoded(record.value, inner, place)
    given = changes.toDF(*(f"_vsc_column_{i}" for i in range(len(columns))), _CHANGE, _TIMESTAMP)
    always = record.key is None and node.schema.key
    return given.select(
        (F.lit(None).cast("binary") if record.key is None else _encoded(record.key, inner, place)).alias("key"),
        (value if always else F.when(F.col(_CHANGE) == "upsert", value)).alias("value"),
        F.col(_TIMESTAMP).alias("timestamp"),
        *([] if record.headers is None else [_headers(record.headers, inner).alias("headers")]),
    )


def _encoded(part: Part, inner: Mapping[str, Column], place: str) -> Column:
    columns = [inner[column.name] for column in part.columns]
    if part.avro is not None:
        from vsc.runtime.spark.connectors.kafka_avro import avro_value

        return avro_value(part.avro, columns, place)
    if part.form == "json":
        text = to_json(columns) if columns else F.lit("{}")
    else:
        (text,) = columns
    return text.cast("binary")


def to_json(columns: Sequence[Column]) -> Column:
    """The text of an object of the columns."""
    return F.to_json(F.struct(*columns), _JSON)


def _headers(column: DeclaredColumn, inner: Mapping[str, Column]) -> Column:
    found = inner[column.name]
    return F.map_entries(found) if isinstance(column.type, MapType) else found


def check_no_tombstones(node: Node, options: Options) -> None:
    """Raises SinkError for a table whose deletions could not be written."""
    if node.kind == "table" and key_format(options, node.schema.key) == "none":
        raise SinkError(
            f"{options.place}: with key_format 'none' deletions from table '{node.name}' cannot be written",
            "remove key_format, or write a stream (to_stream)",
        )
