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
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vsc.plan.nodes import Column as DeclaredColumn
from vsc.plan.nodes import Node, Sink
from vsc.runtime.errors import SinkError
from vsc.runtime.spark.connectors.connector import EpochSink
from vsc.runtime.spark.connectors.kafka_client import client_settings
from vsc.runtime.spark.connectors.kafka_epochs import create_epochs
from vsc.runtime.spark.connectors.kafka_rows import key_format
from vsc.runtime.spark.connectors.kafka_transaction import Ledger, Transaction, forget_after
from vsc.runtime.spark.epoch_files import Tally
from vsc.runtime.spark.options import Options
from vsc.runtime.spark.output import CHANGE, TIMESTAMP, Output

__all__ = ["KafkaSink"]

_JSON = {"timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
_CHANGE, _TIMESTAMP = f"_vsc{CHANGE}", f"_vsc{TIMESTAMP}"


class KafkaSink(EpochSink):
    """See the module."""

    computes = False

    def __init__(self, sink: Sink, node: Node, checkpoint: str) -> None:
        super().__init__(sink, node)
        self._options = Options.of_sink(sink)
        self._name = f"vsc-{checkpoint[:16]}-{sink.id.removeprefix('sink-')}"
        self._topic = self._options.text("topic")
        self._settings = client_settings(self._options)
        self._created = False

    def write(self, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
        """Writes the epoch, or what of it is not there yet."""
        expected = rows().count  # raises if the epoch is refused
        if not expected:
            return
        if not self._created:
            create_epochs(self._settings, self._name, output.partitions, self._options.place)
            self._created = True
        records = sink_records(output.changes(self.id, self._node), self._node, self._options)
        task = EpochTask(self._settings, self._topic, self._name, epoch, self._options.place)
        written = sum(row.records for row in records.mapInArrow(task, "records bigint").collect())
        if written != expected:
            raise RuntimeError(f"{self._options.place}: {written} records instead of {expected} in epoch {epoch}")

    def back_to(self, epoch: int) -> None:
        """What later epochs wrote stays in the topic; that they were written is forgotten, so that they come again."""
        forget_after(self._settings, self._name, epoch, self._options.place)


@dataclass(frozen=True)
class EpochTask:
    """For mapInArrow over the records of one vsc partition (`sink_records`): writes them, gives out how many."""

    settings: Mapping[str, str] = field(repr=False)
    topic: str
    name: str
    epoch: int
    place: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row, or none if there are no records."""
        batches = (batch for batch in batches if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        with Transaction(self.settings, self.topic, self.name, partition, self.place, self.epoch) as transaction:
            transaction.begin()
            transaction.add(_records(first))
            for batch in batches:
                transaction.add(_records(batch))
            ledger: Ledger = transaction.finish()
        yield pa.RecordBatch.from_pydict({"records": pa.array([ledger.records], pa.int64())})


def sink_records(changes: DataFrame, node: Node, options: Options) -> DataFrame:
    """`Output.changes` as key and value (binary, either may be null) and timestamp in ms."""
    columns = [*node.schema.key, *node.schema.value]
    inner = {column.name: F.col(f"_vsc_column_{i}").alias(column.name) for i, column in enumerate(columns)}
    form = key_format(options, node.schema.key)
    keyed = form != "none"
    values = [inner[c.name] for c in (node.schema.value if keyed else columns)]
    if options.flag("with_timestamp"):
        values.append(F.col(_TIMESTAMP).alias(TIMESTAMP))
    value = _encoded(values, options.text("format"))
    return changes.toDF(*(f"_vsc_column_{i}" for i in range(len(columns))), _CHANGE, _TIMESTAMP).select(
        _key(node.schema.key, inner, form).alias("key"),
        (F.when(F.col(_CHANGE) == "upsert", value) if keyed or not node.schema.key else value).alias("value"),
        F.col(_TIMESTAMP).alias("timestamp"),
    )


def _key(key: Sequence[DeclaredColumn], inner: Mapping[str, Column], form: str) -> Column:
    return F.lit(None).cast("binary") if form == "none" else _encoded([inner[c.name] for c in key], form)


def _encoded(columns: Sequence[Column], form: str) -> Column:
    if form == "json":
        text = F.to_json(F.struct(*columns), _JSON) if columns else F.lit("{}")
    else:
        (text,) = columns
    return text.cast("binary")


def _records(batch: pa.RecordBatch) -> Iterator[tuple[bytes | None, bytes | None, int]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def check_no_tombstones(node: Node, options: Options) -> None:
    """SinkError for a table whose deletions could not be written."""
    if node.kind == "table" and key_format(options, node.schema.key) == "none":
        raise SinkError(
            f"{options.place}: with key_format 'none' deletions from table '{node.name}' cannot be written",
            "remove key_format, or write a stream (to_stream)",
        )
