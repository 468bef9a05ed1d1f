"""Kafka: a source in the order of partitions and offsets, at the records' own times; a sink that writes once."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from vsc.plan.nodes import Column, Node, Sink
from vsc.plan.offsets import offsets_help, offsets_problem
from vsc.runtime.errors import SinkError, SourceError, VscRuntimeError
from vsc.runtime.spark.connectors.connector import Connector, EpochSink
from vsc.runtime.spark.connectors.jars import KAFKA
from vsc.runtime.spark.connectors.kafka_client import PREFIX, check_topic, is_empty
from vsc.runtime.spark.connectors.kafka_layout import layout
from vsc.runtime.spark.connectors.kafka_rows import SOURCE_OPTIONS, kafka_rows, plain_columns
from vsc.runtime.spark.options import Options

__all__ = ["Kafka"]

_SPLITS = {"minpartitions", "maxrecordsperpartition"}
_OWN = {
    "subscribe": "topic", "subscribepattern": "topic", "assign": "topic", "topic": "topic",
    "kafka.bootstrap.servers": "bootstrap_servers", "startingoffsets": "starting_offsets",
}  # fmt: skip
"""Spark's options that vsc has its own for."""
_GUARANTEES = {
    "kafka.transactional.id", "kafka.enable.idempotence", "kafka.acks", "kafka.request.required.acks",
    "kafka.max.in.flight.requests.per.connection", "kafka.max.in.flight", "kafka.group.id",
}  # fmt: skip
_FORMATS = ("json", "string", "avro")
_KEY_FORMATS = ("string", "json", "avro", "none")


class Kafka(Connector):
    """Topics of Kafka."""

    kind = "kafka"

    def check_source(self, node: Node, options: Options, default_local: bool) -> None:
        """Refuses formats and options that cannot be, and a topic that cannot be read."""
        for name in options.spark:
            if name.lower() in _SPLITS:
                raise SourceError(
                    f"{options.place}: {name!r} would split a topic partition between tasks, and its order would be "
                    "lost",
                    "remove it; 'maxOffsetsPerTrigger' bounds an epoch",
                )
        _check_options(options, SourceError, "source", SOURCE_OPTIONS)
        topic, starts = options.text("topic"), options.get("starting_offsets")
        problem = None if starts is None else offsets_problem(str(starts), topic)
        if problem is not None:
            raise SourceError(f"{options.place}: {problem}", offsets_help(topic))
        layout(options, node, node.source.columns, "read")
        check_topic(options, "read")

    def rows(self, spark: SparkSession, node: Node, options: Options, read: frozenset[str]) -> DataFrame:
        """The records from the starting offsets on."""
        try:
            return kafka_rows(spark, node, options)
        except AnalysisException as error:
            if "data source" in str(error):
                raise KAFKA.missing("its jars are not on the class path") from error
            raise

    def plain_columns(self, node: Node, options: Options) -> Sequence[Column]:
        """Those of a value in JSON, if they are of simple types."""
        return plain_columns(node, options)

    def nothing_there(self, spark: SparkSession, options: Options) -> str | None:
        """That the topic is empty."""
        return f"the topic {options.text('topic')!r} holds no record" if is_empty(options) else None

    def check_sink(self, options: Options) -> None:
        """Refuses formats and options that cannot be, and a topic that cannot be written."""
        for name in options.spark:
            if name in _GUARANTEES:
                raise SinkError(
                    f"{options.place}: vsc sets {name!r} itself, to write each result once", f"remove {name!r}"
                )
        _check_options(options, SinkError, "sink")
        if options.text("format") == "string" and options.flag("with_timestamp"):
            raise SinkError(f"{options.place}: the format 'string' has no place for `with_timestamp`", "use json")
        check_topic(options, "write")

    def sink(self, spark: SparkSession, sink: Sink, node: Node, checkpoint: str) -> EpochSink:
        """The sink."""
        from vsc.runtime.spark.connectors.kafka_sink import KafkaSink, check_no_tombstones  # needs confluent_kafka

        check_no_tombstones(node, Options.of_sink(sink))
        return KafkaSink(sink, node, checkpoint)


def _check_options(
    options: Options, error: type[VscRuntimeError], what: str, of_spark: Collection[str] = frozenset()
) -> None:
    """Raises an `error` for formats that are unknown, and for an option that a Kafka source or sink (`what`) cannot
    have. `of_spark`: the options of Spark that it can."""
    for name, known in (("format", _FORMATS), ("key_format", _KEY_FORMATS)):
        given = options.get(name)
        if given is not None and given not in known:
            raise error(
                f"{options.place} has {name} {given!r}, which this version of vsc does not know for Kafka",
                "use one of " + ", ".join(known),
            )
    for name in options.spark:
        lower = name.lower()
        if lower in _OWN:
            raise error(f"{options.place}: {name!r} is given by `{_OWN[lower]}`", f"remove {name!r}")
        if lower not in of_spark and not name.startswith(PREFIX):
            raise error(
                f"{options.place}: {name!r} is not an option of a Kafka {what}",
                f"Kafka's own options begin with {PREFIX!r}"
                + (f"; Spark's are {', '.join(sorted(of_spark))}" if of_spark else ""),
            )
