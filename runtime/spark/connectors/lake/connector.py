"""What Delta Lake and Iceberg have in common: sources of rows and histories; sinks that append, upsert or keep a
history.

A history is the source of a versioned table: its rows are taken once, into the checkpoint, and read from there.
Guarantees of it: those of `snapshot`; versions and deletions come in the order of their times. Later changes of the
history are not seen. All other rows are read as they come.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.plan.nodes import Column, Node, Sink
from vsc.plan.types import BIGINT, BOOLEAN
from vsc.runtime.errors import SinkError, SourceError
from vsc.runtime.spark.base.options import Options, refuse
from vsc.runtime.spark.connectors.connector import Connector, EpochSink
from vsc.runtime.spark.connectors.jars import check_release
from vsc.runtime.spark.connectors.lake.history import PROBLEM, History, points
from vsc.runtime.spark.connectors.lake.input import LakeInput
from vsc.runtime.spark.connectors.lake.merge import AT, PRESENT, place
from vsc.runtime.spark.connectors.lake.sink import LakeSink
from vsc.runtime.spark.connectors.lake.table import LakeTable, declared, identifier
from vsc.runtime.spark.connectors.snapshot import kept_rows, take_once, write_rows
from vsc.runtime.spark.connectors.spark_source import Input, SparkSource
from vsc.runtime.spark.formats.source_columns import BAD, DELETED, TIME

__all__ = ["LakeConnector"]


class LakeConnector(Connector):
    """Tables of one lake format."""

    table: type[LakeTable]
    parses: ClassVar[bool] = False
    """Whether Spark's source takes only offsets that it has parsed."""

    def check_sink(self, options: Options) -> None:
        """Refuses a Spark without the format, and what cannot be understood."""
        self._check(options)
        options.flag("with_timestamp")
        options.flag("create")
        options.is_upsert()
        refuse(options, "sink", SinkError)

    def sink(self, spark: SparkSession, sink: Sink, node: Node, checkpoint: str) -> EpochSink:
        """The sink."""
        return LakeSink(spark, sink, node, checkpoint, self.table(Options.of_sink(sink)))

    def check_source(self, node: Node, options: Options, default_local: bool) -> None:
        """Refuses a Spark without the format, and what cannot be understood."""
        self._check(options)
        refuse(options, "source", SourceError)
        if not options.connector.keeps_history:
            self._check_stream(node, options)

    def look(self, spark: SparkSession, node: Node, options: Options) -> None:
        """Refuses a table that cannot be read as it is declared."""
        table = self.table(options)
        found = table.readable(spark, node)
        if options.connector.keeps_history:
            History.of(found, table, options.connector)
        else:
            self._look_at_stream(spark, table, node, options)

    def is_snapshot(self, options: Options) -> bool:
        """Of a history."""
        return options.connector.keeps_history

    def take(self, spark: SparkSession, node: Node, options: Options, read: frozenset[str], begun: bool) -> None:
        """Takes a history; other rows are read as they come."""

        def write(path: str) -> None:
            table, columns = self.table(options), node.source.columns
            history = History.of(table.columns(spark), table, options.connector)
            of_key = {c.name for c in node.schema.key}
            keys = [place(i) for i, c in enumerate(columns) if c.name in of_key]
            with table.errors_in_words():
                found = points(spark.table(table.sql), declared(node, read), keys, history).select(
                    *(place(i) for i in range(len(columns))),
                    F.coalesce(F.unix_millis(F.timestamp_micros(AT)), F.lit(0)),
                    ~F.col(PRESENT),
                    PROBLEM,
                )
                named = found.toDF(*(c.name for c in columns), TIME, DELETED, BAD).orderBy(TIME).coalesce(1)
                write_rows(named, path)

        if self.is_snapshot(options):
            take_once(spark, options, begun, write)

    def rows(self, spark: SparkSession, node: Node, options: Options, read: frozenset[str]) -> DataFrame:
        """The rows of a table from the version on at which the query began; or those of a history."""
        if options.connector.keeps_history:
            beside = (Column(TIME, BIGINT), Column(DELETED, BOOLEAN))
            source = replace(node.source, columns=(*node.source.columns, *beside))
            return kept_rows(spark, source, options, read | {TIME, DELETED})
        table = self.table(options)
        table.readable(spark, node)
        with table.errors_in_words():
            return self._stream(spark, table, node, options, read)

    def folder(self, options: Options) -> str | None:
        """The path, of a table that has one."""
        return None if options.get("path") is None else options.text("path")

    def input_path(self, options: Options) -> str | None:
        """The path of the table, as its input."""
        return self.folder(options)

    def catalogued(self, spark: SparkSession, options: Options) -> str | None:
        """Of a table that has a name."""
        table = self.table(options)
        if table.name is None or table.open(spark) is None:
            return None
        with table.errors_in_words():
            return table.location(spark)

    def _input(self, source: SparkSource) -> Input:
        return LakeInput(source, self.parses)

    def _check(self, options: Options) -> None:
        check_release(self.table.lake, options.place)
        if options.get("path") is None:
            identifier(options.text("table"), options.place)

    def _check_stream(self, node: Node, options: Options) -> None:
        """Refuses what cannot be of a source of rows. SourceError."""
        raise NotImplementedError

    def _look_at_stream(self, spark: SparkSession, table: LakeTable, node: Node, options: Options) -> None:
        """Refuses a table, whose columns are right, that cannot be read as a stream. LakeTableError."""

    def _stream(
        self, spark: SparkSession, table: LakeTable, node: Node, options: Options, read: frozenset[str]
    ) -> DataFrame:
        """The rows of a table, as they come."""
        raise NotImplementedError
