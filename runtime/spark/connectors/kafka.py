"""Kafka: a source in the order of partitions and offsets, at the records' own times; a sink that writes once.

Guarantees of a source: a topic partition is a source partition, read by one task in the order of its offsets; a record
that does not fit is marked with the reason, not lost; a null value is marked as such, and every record has its own
time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.plan.nodes import Column as DeclaredColumn
from vsc.plan.nodes import Node, Sink
from vsc.plan.offsets import offsets_help, offsets_problem
from vsc.plan.types import MapType
from vsc.runtime.errors import SinkError, SourceError, VscRuntimeError
from vsc.runtime.spark.connectors.connector import Connector, EpochSink
from vsc.runtime.spark.connectors.file_rows import shown
from vsc.runtime.spark.connectors.jars import KAFKA
from vsc.runtime.spark.connectors.kafka_client import PREFIX, check_topic, is_empty
from vsc.runtime.spark.connectors.kafka_layout import Part, layout
from vsc.runtime.spark.ddl import ddl
from vsc.runtime.spark.options import Options, refuse
from vsc.runtime.spark.plain_json import plain_pattern
from vsc.runtime.spark.source_columns import BAD, CORRUPT, DELETED, JSON, OFFSET, PART, PART_DIGITS, TIME

__all__ = ["Kafka", "from_json"]

_DEFAULTS = {
    "maxOffsetsPerTrigger": "500000",
    "kafka.isolation.level": "read_committed",
    "kafka.max.poll.records": "10000",
}
"""An epoch is bounded; what a transaction has not committed is not there; and Spark, which asks the broker for the
offsets of a partition with each poll, polls seldom: unless the source says otherwise."""
_JSON = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, "timeZone": "UTC"}
_FORMATS = ("json", "string", "avro")
_KEY_FORMATS = ("string", "json", "avro", "none")


class Kafka(Connector):
    """Topics of Kafka."""

    kind = "kafka"

    def check_source(self, node: Node, options: Options, default_local: bool) -> None:
        """Refuses formats and options that cannot be, and a topic that cannot be read."""
        _check_formats(options, SourceError)
        refuse(options, "source", SourceError)
        topic, starts = options.text("topic"), options.get("starting_offsets")
        problem = None if starts is None else offsets_problem(str(starts), topic)
        if problem is not None:
            raise SourceError(f"{options.place}: {problem}", offsets_help(topic))
        layout(options, node, node.source.columns, "read")
        check_topic(options, "read")

    def rows(self, spark: SparkSession, node: Node, options: Options, read: frozenset[str]) -> DataFrame:
        """The records from the starting offsets on."""
        try:
            return _rows(spark, node, options)
        except AnalysisException as error:
            if "data source" in str(error):
                raise KAFKA.missing("its jars are not on the class path") from error
            raise

    def plain_columns(self, node: Node, options: Options) -> Sequence[DeclaredColumn]:
        """Those of a value in JSON, if they are of simple types."""
        value = layout(options, node, node.source.columns, "read").value
        return value.columns if _plain_pattern(value) is not None else ()

    def nothing_there(self, spark: SparkSession, options: Options) -> str | None:
        """That the topic is empty."""
        return f"the topic {options.text('topic')!r} holds no record" if is_empty(options) else None

    def check_sink(self, options: Options) -> None:
        """Refuses formats and options that cannot be, and a topic that cannot be written."""
        _check_formats(options, SinkError)
        refuse(options, "sink", SinkError)
        if options.text("format") == "string" and options.flag("with_timestamp"):
            raise SinkError(f"{options.place}: the format 'string' has no place for `with_timestamp`", "use json")
        check_topic(options, "write")

    def sink(self, spark: SparkSession, sink: Sink, node: Node, checkpoint: str) -> EpochSink:
        """The sink."""
        from vsc.runtime.spark.connectors.kafka_sink import KafkaSink, check_no_tombstones  # needs confluent_kafka

        check_no_tombstones(node, Options.of_sink(sink))
        return KafkaSink(sink, node, checkpoint)


def _check_formats(options: Options, error: type[VscRuntimeError]) -> None:
    """Raises an `error` for formats that are unknown."""
    for name, known in (("format", _FORMATS), ("key_format", _KEY_FORMATS)):
        given = options.get(name)
        if given is not None and given not in known:
            raise error(
                f"{options.place} has {name} {given!r}, which this version of vsc does not know for Kafka",
                "use one of " + ", ".join(known),
            )


def _rows(spark: SparkSession, node: Node, options: Options) -> DataFrame:
    columns = node.source.columns
    record = layout(options, node, columns, "read")
    headers = [] if record.headers is None else [_headers(record.headers).alias("of_headers")]
    texts = _records(spark, options).select(
        F.col("value").isNull().alias(DELETED), *map(F.col, ("partition", "offset", "timestamp")),
        *(column for part in record.parts for column in _texts(part)), *headers,
    )  # fmt: skip
    parsed = texts.select("*", *(_parsed(part).alias(f"of_{part.name}") for part in record.parts))
    place = {c.name: F.col(f"of_{part.name}")[c.name] for part in record.parts for c in part.columns}
    if record.headers is not None:
        place[record.headers.name] = F.col("of_headers")
    return parsed.select(
        *(place[c.name].alias(c.name) for c in columns),
        _part(options.text("topic")).alias(PART), F.col("offset").alias(OFFSET),
        F.unix_millis("timestamp").alias(TIME), F.col(DELETED),
        F.coalesce(*map(_problem, record.parts)).alias(BAD), *_unread(record.value),
    )  # fmt: skip


def _texts(part: Part) -> list[Column]:
    """What is made of the bytes of a part: in Avro nothing; else the text, why it is not text, and whether it is
    plain."""
    name, raw = part.name, F.col(part.name)
    if part.avro is not None:
        return [raw]
    text = F.try_validate_utf8(raw.cast("string"))  # null if the bytes are not UTF-8
    not_text = F.when(raw.isNotNull() & text.isNull(), F.lit(f"its {name} is not UTF-8 text"))
    pattern = _plain_pattern(part)
    plain = F.lit(False) if pattern is None else F.coalesce(text.rlike(pattern), F.lit(False))
    return [text.alias(name), not_text.alias(f"{name}_not_text"), plain.alias(f"{name}_plain")]


def _parsed(part: Part) -> Column:
    """A struct of the columns and of `BAD`, in Avro, or `CORRUPT`, of a row of `_texts`; null for what is plain."""
    text, columns = F.col(part.name), part.columns
    if part.avro is not None:
        from vsc.runtime.spark.connectors.kafka_avro import avro_column

        return avro_column(part.avro, text)
    if part.form != "json":
        return F.struct(*(text.alias(c.name) for c in columns), F.lit(None).cast("string").alias(CORRUPT))
    if _plain_pattern(part) is not None:
        text = F.when(~F.col(f"{part.name}_plain"), text)
    return from_json(_object(text, columns) if part.name == "key" else text, columns)


def _problem(part: Part) -> Column:
    """Why the bytes of a row of `_parsed` cannot be read, if it has to be said here."""
    if part.avro is not None:
        return F.concat(F.lit(f"its {part.name} is not of its Avro schema: "), F.col(f"of_{part.name}")[BAD])
    not_text = F.col(f"{part.name}_not_text")
    if part.name != "key" or part.form != "json":
        return not_text
    bad = F.col("key").isNotNull() & (F.col("of_key").isNull() | F.col("of_key")[CORRUPT].isNotNull())
    wanted = ddl((c.name, c.type) for c in part.columns).replace("`", "")
    misfit = F.concat(F.lit("its key '"), shown(F.col("key")), F.lit(f"' is not JSON for ({wanted})"))
    return F.coalesce(not_text, F.when(bad, misfit))


def _unread(value: Part) -> list[Column]:
    """Of a row of `_parsed`: the text that is not JSON of the columns, and the plain one, which is still to be read."""
    if value.avro is not None:
        return [F.lit(None).cast("string").alias(name) for name in (CORRUPT, JSON)]
    of, text, plain = F.col("of_value"), F.col("value"), F.col("value_plain")
    corrupt = F.when(text.isNotNull() & ~plain, F.when(of.isNull(), text).otherwise(of[CORRUPT]))
    return [corrupt.alias(CORRUPT), F.when(plain, text).alias(JSON)]


def _part(topic: str) -> Column:
    """What `kafka_part` gives. (Spark's `format_string` takes as long as the rest of a record.)"""
    number = F.col("partition").cast("string")
    digits = F.lpad(number, F.greatest(F.length(number), F.lit(PART_DIGITS)), F.lit("0"))
    return F.concat(F.lit(f"{topic}-"), digits)


def _plain_pattern(part: Part) -> str | None:
    """What the plain texts of a record's value look like; None where there are none."""
    return plain_pattern(part.columns) if part.form == "json" and part.name == "value" else None


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
        "includeHeaders": str(options.get("headers") is not None).lower(),
    }
    given = {name.lower() for name in options.spark}
    defaults = {name: value for name, value in _DEFAULTS.items() if name.lower() not in given}
    return spark.readStream.format("kafka").options(**defaults, **options.spark, **own).load()


def _object(text: Column, keys: Sequence[DeclaredColumn]) -> Column:
    """A key in JSON as an object: that of a single column may be the bare value."""
    if len(keys) != 1:
        return text
    bare = F.concat(F.lit("{" + json.dumps(keys[0].name) + ":"), text, F.lit("}"))
    return F.when(text.rlike(r"^\s*\{"), text).otherwise(bare)


def from_json(text: Column, columns: Sequence[DeclaredColumn]) -> Column:
    """A struct of the columns, and of `CORRUPT`: the text where it cannot be read."""
    fields: list[tuple[str, object]] = [*((c.name, c.type) for c in columns), (CORRUPT, "string")]
    return F.from_json(text, ddl(fields), _JSON)
