"""A Kafka topic as a sink: each result once, in order of its key, with its event time as the record's timestamp.

Each task of an epoch writes in one transaction, and notes the epoch in it (`epochs`): so Kafka takes both or
neither, and an epoch that comes again finds that it is there. The transactional id is that of the checkpoint, the sink
and the vsc partition: a task that begins ends whatever an older one left open, and nothing that such a one still sends
is taken.

A task has the same records whenever its epoch comes again; beside the epoch stand their number and a check sum, which
have to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from operator import and_
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vsc.plan.nodes import Column as DeclaredColumn
from vsc.plan.nodes import DeadLetters, Node
from vsc.plan.types import BIGINT
from vsc.runtime.errors import SinkError
from vsc.runtime.expressions import null_rows
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.client import client_settings
from vsc.runtime.spark.connectors.kafka.epochs import create_epochs
from vsc.runtime.spark.connectors.kafka.layout import Layout, Part, key_format, layout
from vsc.runtime.spark.connectors.kafka.registry.sinks import check_sink, settled
from vsc.runtime.spark.connectors.kafka.transaction import Transaction, forget_after
from vsc.runtime.spark.connectors.kafka.windowed import KAFKA, kafka_keys, with_bounds
from vsc.runtime.spark.connectors.sink import EpochSink, OpenSink
from vsc.runtime.spark.exchange.output import CHANGE, TIMESTAMP, Output, RowTransform
from vsc.runtime.spark.exchange.tally import Tally
from vsc.runtime.spark.formats.json_written import is_written, written
from vsc.runtime.values import arrow_type

__all__ = ["KafkaSink", "to_json"]

_JSON = {"timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
_WRITTEN = "records bigint"
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_CHANGE, _TIMESTAMP = f"_vsc{CHANGE}", f"_vsc{TIMESTAMP}"


class KafkaSink(EpochSink):
    """See the module."""

    computes = False

    def __init__(self, opened: OpenSink, checkpoint: str) -> None:
        super().__init__(opened)
        node = opened.node
        self._name = f"vsc-{checkpoint[:16]}-{self.id.removeprefix('sink-')}"
        self._topic = self._options.text("topic")
        self._settings = client_settings(self._options)
        added = [DeclaredColumn(TIMESTAMP, BIGINT)] if self._options.flag("with_timestamp") else []
        self._record = layout(self._options, node, [*node.schema.key, *node.schema.value, *added], "write")
        self._created = False

    def reach(self) -> None:
        """Refuses schemas that the registry does not have, or does not take."""
        check_sink(self._options, self._node.name, self._record)

    def settle(self, files: Files) -> None:
        """The schemas that are in a registry."""
        self._record = settled(self._options, self._node.name, self._record, files, self.id)

    def write(self, output: Output, epoch: int, rows: Callable[[], Tally]) -> None:
        """Writes the epoch, or what of it is not there yet."""
        expected = rows().count  # raises if the epoch is refused
        if not expected:
            return
        if not self._created:
            create_epochs(self._settings, self._name, output.partitions, self._place)
            self._created = True
        loose = isinstance(self._node.operation, DeadLetters)
        encode = _Encoder.of(self._node, self._record, self._place)
        task = EpochTask(self._settings, self._topic, self._name, epoch, self._place, loose, encode)
        written = sum(row.records for row in self._tasks(output, task).collect())
        if written != expected:
            raise RuntimeError(f"{self._place}: {written} records instead of {expected} in epoch {epoch}")

    def _tasks(self, output: Output, task: EpochTask) -> DataFrame:
        """What the tasks of an epoch give out."""
        by_spark = [part for part in self._record.parts if not _is_plain(part)]
        if not by_spark:
            return output.changes(self.id, self._node, RowTransform(task, _WRITTEN))
        changes, encode = _with_json(output.changes(self.id, self._node), task.encode, by_spark)
        return changes.mapInArrow(replace(task, encode=encode), _WRITTEN)

    def back_to(self, epoch: int) -> None:
        """What later epochs wrote stays in the topic; that they were written is forgotten, so that they come again."""
        forget_after(self._settings, self._name, epoch, self._place)


@dataclass(frozen=True)
class EpochTask:
    """For mapInArrow over the records of one vsc partition, which `encode` makes of what comes in: writes them, gives
    out how many. `loose`: see `Transaction`."""

    settings: Mapping[str, str] = field(repr=False)
    topic: str
    name: str
    epoch: int
    place: str
    loose: bool
    encode: _Encoder

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row, or none if there are no records."""
        batches = (self.encode(batch) for batch in batches if batch.num_rows)
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
class _Encoder:
    """Makes records of rows, a batch at a time: key and value (binary, either may be null), time in ms and, if there
    are any, headers.

    `names`: the columns of the rows, but for the last two, the system columns of `Output.changes`. What stands in one
    that is called by a part (`_text_of`) Spark has written. `always`: there are no tombstones.
    """

    record: Layout
    names: tuple[str, ...]
    always: bool
    place: str

    @classmethod
    def of(cls, node: Node, record: Layout, place: str) -> Self:
        """For the rows of `Output.changes`."""
        names = tuple(column.name for column in (*node.schema.key, *node.schema.value))
        return cls(record, names, record.key is None and bool(node.schema.key), place)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The records of a batch of rows."""
        key, value, headers = self.record.key, self.record.value, self.record.headers
        there = pc.equal(batch.columns[-2], "upsert")
        arrays = [
            pa.nulls(batch.num_rows, pa.binary()) if key is None else self._where(self._keyed(key, batch), key, batch),
            self._encoded(value, batch) if self.always else self._where(there, value, batch),
            batch.columns[-1],
        ]
        if headers is not None:
            arrays.append(self._array(headers, batch).cast(_HEADERS))
        return pa.RecordBatch.from_arrays(arrays, ["key", "value", "timestamp", "headers"][: len(arrays)])

    def _keyed(self, key: Part, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Which records have a key: no null in it (D26). Of one that Spark has written, it has left out the others."""
        columns = () if _text_of(key) in self.names else key.all_columns
        return pa.array(~null_rows([self._array(column, batch) for column in columns], batch.num_rows))

    def _where(self, there: pa.BooleanArray, part: Part, batch: pa.RecordBatch) -> pa.Array:
        """A part of the records that have it; null for the others."""
        if pc.all(there).as_py():
            return self._encoded(part, batch)
        some = self._encoded(part, batch.filter(there))
        return pc.replace_with_mask(pa.nulls(batch.num_rows, pa.binary()), there, some)

    def _encoded(self, part: Part, batch: pa.RecordBatch) -> pa.Array:
        found = self._without_bounds(part, batch)
        if part.bounds is None:
            return found
        start, *end = (self._array(column, batch) for column in part.bounds.columns)
        try:
            return with_bounds(found, part.bounds, start, end[0] if end else None)
        except ValueError as error:
            raise SinkError(f"{self.place}: {error}", "correct `window_size`, or the rows") from None

    def _without_bounds(self, part: Part, batch: pa.RecordBatch) -> pa.Array:
        if _text_of(part) in self.names:
            text = batch.columns[self.names.index(_text_of(part))].cast(pa.binary())
            return text if part.writer is None else part.writer.framed(text)
        arrays = [self._array(column, batch) for column in part.columns]
        if not arrays:
            nothing = b"{}" if part.form == "json" else b"" if part.avro is None else part.avro.header
            found = pa.array([nothing] * batch.num_rows, pa.binary())
            return found if part.writer is None else part.writer.framed(found)
        try:
            if part.writer is not None:
                return part.writer.encoded(arrays)
            if part.avro is not None:
                from vsc.runtime.spark.connectors.kafka.avro import encoded

                return encoded(part.avro, arrays)
        except ValueError as error:
            raise SinkError(f"{self.place}: {error}", "correct the schema, or the rows") from None
        if part.form == KAFKA:
            return kafka_keys(part.columns[0], arrays[0])
        return (written(part.columns, arrays) if part.form == "json" else arrays[0]).cast(pa.binary())

    def _array(self, column: DeclaredColumn, batch: pa.RecordBatch) -> pa.Array:
        found = batch.columns[self.names.index(column.name) if column.name in self.names else -1]
        wanted = arrow_type(column.type)
        return found if found.type == wanted else found.cast(wanted)


def _text_of(part: Part) -> str:
    return f"_vsc_{part.name}"


def _is_plain(part: Part) -> bool:
    """Whether a task can encode a part. JSON that it cannot write as Spark does costs another way to the JVM and
    back."""
    return part.form != "json" or not part.columns or is_written(part.columns)


def _with_json(changes: DataFrame, encode: _Encoder, parts: Sequence[Part]) -> tuple[DataFrame, _Encoder]:
    """Rows of `Output.changes` with the JSON of `parts` in place of their columns; and what makes records of them."""
    given = changes.toDF(*(f"_vsc_column_{i}" for i in range(len(encode.names))), _CHANGE, _TIMESTAMP)
    inner = {TIMESTAMP: F.col(_TIMESTAMP)} | {name: F.col(f"_vsc_column_{i}") for i, name in enumerate(encode.names)}
    of_parts = {column.name for part in parts for column in part.columns}
    kept = [name for name in encode.names if name not in of_parts]
    texts = [_text(part, [inner[column.name].alias(column.name) for column in part.columns]) for part in parts]
    rows = given.select(*(inner[name] for name in kept), *texts, _CHANGE, _TIMESTAMP)
    return rows, replace(encode, names=(*kept, *map(_text_of, parts)))


def _text(part: Part, columns: Sequence[Column]) -> Column:
    """The JSON of a part; null for a key with a null in it (D26)."""
    text = to_json(columns)
    return F.when(reduce(and_, (column.isNotNull() for column in columns)), text) if part.name == "key" else text


def to_json(columns: Sequence[Column]) -> Column:
    """The text of an object of the columns."""
    return F.to_json(F.struct(*columns), _JSON)


def check_no_tombstones(node: Node, options: Options) -> None:
    """Raises SinkError for a table whose deletions could not be written."""
    if node.kind == "table" and key_format(options, node.schema.key) == "none":
        raise SinkError(
            f"{options.place}: with key_format 'none' deletions from table '{node.name}' cannot be written",
            "remove key_format, or write a stream (to_stream)",
        )
