"""Kafka: a source in the order of partitions and offsets, at the records' own times; a sink that writes once.

Guarantees of a source: a topic partition is a source partition, read by one task in the order of its offsets; a record
that does not fit is marked with the reason, not lost; a null value is marked as such, and every record has its own
time.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.plan.connectors import FACTS
from vsc.plan.nodes import Column as DeclaredColumn
from vsc.plan.nodes import Node
from vsc.plan.offsets import offsets_help, offsets_problem
from vsc.plan.types import MapType
from vsc.runtime.errors import NewSchemaError, SinkError, SourceError, VscRuntimeError
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.options import Options, refuse
from vsc.runtime.spark.base.servers import Servers
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.connectors.jars import KAFKA
from vsc.runtime.spark.connectors.kafka.client import PREFIX, ConsumerGroup, brokers, check_topic, is_empty
from vsc.runtime.spark.connectors.kafka.input import KafkaInput
from vsc.runtime.spark.connectors.kafka.layout import Layout, Part, layout
from vsc.runtime.spark.connectors.kafka.position import settled_offsets, write_offsets
from vsc.runtime.spark.connectors.kafka.registry.framing import HEADERS
from vsc.runtime.spark.connectors.kafka.registry.schemas import FOLDER, tell
from vsc.runtime.spark.connectors.kafka.registry.source_schemas import SourceSchemas, inherit
from vsc.runtime.spark.connectors.kafka.registry.sources import check_source, registered_parts
from vsc.runtime.spark.connectors.kafka.texts import texts_reader
from vsc.runtime.spark.connectors.kafka.topic_ids import ReadTopic, recreated
from vsc.runtime.spark.connectors.kafka.topics import TopicLook
from vsc.runtime.spark.connectors.position import SeenFiles, SourceNotes
from vsc.runtime.spark.connectors.sink import ONLY_NEW, EpochSink, OpenSink
from vsc.runtime.spark.connectors.source import OpenSource
from vsc.runtime.spark.connectors.spark_source import Input, SparkSource
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.formats.source_columns import KEY, OFFSET, PARTITION, TIME, VALUE, RowReader

__all__ = ["KafkaSource", "KafkaTarget"]

_DEFAULTS = {
    "maxOffsetsPerTrigger": "500000",
    "kafka.isolation.level": "read_committed",
    "kafka.max.poll.records": "10000",
}
"""An epoch is bounded; what a transaction has not committed is not there; and Spark, which asks the broker for the
offsets of a partition with each poll, polls seldom: unless the source says otherwise."""
_log = logging.getLogger(__name__)


class KafkaSource(OpenSource):
    """A topic of Kafka that is read."""

    first = "earliest"
    spark_class = "KafkaMicroBatchStream"
    needs_input = True
    goes_on = True
    is_identified = True
    _topic: ReadTopic
    _group: ConsumerGroup | None = None
    _schemas: SourceSchemas | None = None

    def _check(self, default_local: bool) -> None:
        """Refuses formats and options that cannot be, and a topic that cannot be read."""
        options = self.options
        _check_formats(options, SourceError)
        refuse(options, "source", SourceError)
        topic, starts = options.text("topic"), options.get("starting_offsets")
        problem = None if starts is None else offsets_problem(str(starts), topic)
        if problem is not None:
            raise SourceError(f"{options.place}: {problem}", offsets_help(topic))
        layout(options, self.node, self.node.source.columns, "read")
        check_topic(options, "read")

    def reach(self) -> None:
        """Refuses a source whose columns are not in the newest schemas of the registry."""
        check_source(self.node, self.options)

    def rows(self, spark: SparkSession) -> DataFrame:
        """The records from the starting offsets on."""
        try:
            return _rows(spark, self.node, self.options)
        except AnalysisException as error:
            if "data source" in str(error):
                raise KAFKA.missing("its jars are not on the class path") from error
            raise

    def reader(self, spark: SparkSession) -> RowReader:
        """What reads keys and values."""
        source, key = self.node.source, frozenset(c.name for c in self.node.schema.key)
        record = layout(self.options, self.node, source.columns, "read")
        return texts_reader(record, source.columns, key, self.options, source.rank)

    def position_help(self) -> str:
        """Offsets."""
        return offsets_help(self.options.text("topic"))

    def settled_position(self, value: str) -> str:
        """An offset for each partition."""
        return settled_offsets(self.node, self.options, value)

    def begin_at(self, notes: SourceNotes, position: str, there: SeenFiles) -> None:
        """At these offsets."""
        write_offsets(notes, json.loads(position))

    def go_on(self, notes: SourceNotes, offset: str, read: SeenFiles) -> None:
        """At the offsets of topics that are still read."""
        topics = self.options.text("topic").split(",")
        known = {topic: offsets for topic, offsets in json.loads(offset).items() if topic in topics}
        if known:
            write_offsets(notes, known)

    def inherit(self, before: Node, old: Files, new: Files) -> None:
        """Its schemas."""
        inherit(before.source.rank, self.node.source.rank, old, new)

    def identify(self, spark: SparkSession, checkpoint: Checkpoint, known: str | None) -> None:
        """By the id of the topic."""
        self._topic = ReadTopic(self, TopicLook(spark))
        self._topic.begin(checkpoint, known)
        self.identity = self._topic.id
        if parts := registered_parts(self.node, self.options):
            self._schemas, self.learns = SourceSchemas(self, parts, checkpoint), True  # an epoch may meet a new one
        if self.options.get("group") is not None:
            self._group = ConsumerGroup(self.options)

    def tell(self, spark: SparkSession, epoch: int) -> None:
        """The schemas that are known."""
        if self._schemas is not None:
            tell(spark, self.node.source.rank, self._schemas.told(epoch))

    def learn(self, error: VscRuntimeError, epoch: int) -> bool:
        """The schemas that the epoch has met."""
        return self._schemas is not None and isinstance(error, NewSchemaError) and self._schemas.learn(error, epoch)

    def check_read(self, report: EpochReport) -> None:
        """Refuses, or counts, records of a topic that was created again, and such as Kafka has deleted."""
        assert self.running is not None
        self._topic.check(report, self.running)
        self.identity = self._topic.id

    def done(self) -> None:
        """Tells the consumer group how far the query has come."""
        if self._group is not None and self.running is not None:
            self._group.commit(self.running.ends() or {})

    def nothing_there(self, spark: SparkSession) -> str | None:
        """That the topic is empty."""
        return f"the topic {self.options.text('topic')!r} holds no record" if is_empty(self.options) else None

    def servers(self) -> tuple[Servers, ...]:
        """Each broker, as Kafka names it to clients."""
        return tuple((broker,) for broker in brokers(self.options))

    def is_secret(self, name: str) -> bool:
        """As any of Kafka's own may be."""
        return name.startswith(PREFIX) or super().is_secret(name)

    def _input(self, source: SparkSource) -> Input:
        return KafkaInput(source)


class KafkaTarget(OpenSink):
    """A topic of Kafka that is written."""

    is_identified = True

    @property
    def name(self) -> str:
        """Two sinks into one topic share its id."""
        return f"to {self.options.text('topic')}"

    def identify(self, spark: SparkSession, checkpoint: Checkpoint, known: str | None) -> None:
        """By the id of the topic. What another one lacks is only said."""
        self.identity = TopicLook(spark).id(self.options)
        if None not in (self.identity, known) and self.identity != known:
            _log.warning(f"{recreated(self.options)} since the checkpoint wrote to it; {ONLY_NEW}")

    def check(self) -> None:
        """Refuses formats and options that cannot be, and a topic that cannot be written."""
        options = self.options
        _check_formats(options, SinkError)
        refuse(options, "sink", SinkError)
        if options.text("format") == "string" and options.flag("with_timestamp"):
            raise SinkError(f"{options.place}: the format 'string' has no place for `with_timestamp`", "use json")
        check_topic(options, "write")

    def reach(self, fresh: bool, default_local: bool) -> None:
        """Refuses schemas that the registry does not have, or does not take."""
        if fresh:  # else the checkpoint has them
            self.reach_schemas()

    def reach_schemas(self) -> None:
        """Refuses schemas that the registry does not have, or does not take."""
        if self.options.get("registry") is not None:
            from vsc.runtime.spark.connectors.kafka.sink import KafkaSink  # needs confluent_kafka

            KafkaSink(self, "").reach()

    def inherit(self, before: str, old: Files, new: Files) -> None:
        """Its schemas. Whether they still fit the columns is seen when the run begins."""
        if old.exists(name := f"{FOLDER}/{before}.json"):
            new.write(f"{FOLDER}/{self.sink.id}.json", old.read(name))

    def servers(self) -> tuple[Servers, ...]:
        """Each broker, as Kafka names it to clients."""
        return tuple((broker,) for broker in brokers(self.options))

    def begin(self, spark: SparkSession, checkpoint: str) -> EpochSink:
        """See `OpenSink`."""
        from vsc.runtime.spark.connectors.kafka.sink import KafkaSink, check_no_tombstones  # needs confluent_kafka

        check_no_tombstones(self.node, self.options)
        return KafkaSink(self, checkpoint)


def _check_formats(options: Options, error: type[VscRuntimeError]) -> None:
    """Raises an `error` for formats that are unknown."""
    for name in ("format", "key_format"):
        given, known = options.get(name), FACTS["kafka"].options[name].choices
        if given is not None and given not in known:
            raise error(
                f"{options.place} has {name} {given!r}, which this version of vsc does not know for Kafka",
                "use one of " + ", ".join(known),
            )
        if given == "protobuf" and options.get("registry") is None:  # the compiler looks, unless a variable gives it
            raise error(f"{options.place}: the schemas of Protobuf come from a schema registry", "give `registry`")


def _rows(spark: SparkSession, node: Node, options: Options) -> DataFrame:
    """The columns of a record that `KafkaTexts` reads: Spark hands them over row by row, so each of them counts."""
    columns = node.source.columns
    record = layout(options, node, columns, "read")
    texts = {"key": KEY, "value": VALUE}
    return _records(spark, options).select(
        *((_framed(part) if part.registered else F.col(part.name)).alias(texts[part.name]) for part in record.parts),
        F.col("partition").alias(PARTITION), F.col("offset").alias(OFFSET), F.unix_millis("timestamp").alias(TIME),
        *(found.alias(f"_vsc_column_{columns.index(column)}") for column, found in _beside(record)),
    )  # fmt: skip


def _beside(record: Layout) -> Iterator[tuple[DeclaredColumn, Column]]:
    """The declared columns that are in neither text."""
    if record.headers is not None:
        yield record.headers, _headers(record.headers)
    for name, column in (("partition", record.partition), ("offset", record.offset)):
        if column is not None:
            yield column, F.col(name).cast(str(column.type))


def _framed(part: Part) -> Column:
    """The bytes of a part, behind what a header says of their schema, if one does."""
    named = F.filter("headers", lambda one: one["key"] == HEADERS[part.name])
    found = F.try_element_at(named, F.lit(-1))["value"]
    return F.coalesce(F.concat(found, F.col(part.name)), F.col(part.name))


def _headers(column: DeclaredColumn) -> Column:
    """The headers as the column has them: all, or in a map the last one of each name."""
    found = F.col("headers")
    if not isinstance(column.type, MapType):
        return found
    names = F.array_distinct(F.transform(found, lambda one: one["key"]))

    def last(name: Column) -> Column:
        return F.element_at(F.filter(found, lambda one: one["key"] == name), -1)["value"]

    return F.map_from_arrays(names, F.transform(names, last))


def _records(spark: SparkSession, options: Options) -> DataFrame:
    """The topic as Spark reads it."""
    own = {
        "subscribe": options.text("topic"),
        f"{PREFIX}bootstrap.servers": options.text("bootstrap_servers"),
        "startingOffsets": str(options.get("starting_offsets") or "earliest"),
        "includeHeaders": str(options.get("headers") is not None or options.get("registry") is not None).lower(),
    }
    given = {name.lower() for name in options.spark}
    defaults = {name: value for name, value in _DEFAULTS.items() if name.lower() not in given}
    return spark.readStream.format("kafka").options(**defaults, **options.spark, **own).load()
