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

from vsc.plan.nodes import Column
from vsc.plan.types import BIGINT, BOOLEAN
from vsc.runtime.errors import SinkError, SourceError
from vsc.runtime.spark.base.options import Options, refuse
from vsc.runtime.spark.connectors.jars import check_release
from vsc.runtime.spark.connectors.lake.history import PROBLEM, History, points
from vsc.runtime.spark.connectors.lake.input import LakeInput
from vsc.runtime.spark.connectors.lake.merge import AT, PRESENT, place
from vsc.runtime.spark.connectors.lake.sink import LakeSink
from vsc.runtime.spark.connectors.lake.table import LakeTable, declared, identifier
from vsc.runtime.spark.connectors.sink import EpochSink, OpenSink
from vsc.runtime.spark.connectors.snapshot import kept_rows, take_once, write_rows
from vsc.runtime.spark.connectors.source import OpenSource
from vsc.runtime.spark.connectors.spark_source import Input, SparkSource
from vsc.runtime.spark.formats.source_columns import BAD, DELETED, TIME

__all__ = ["LakeSource", "LakeTarget"]


class _InLake:
    """What a source and a sink have in common. `table` is their format's."""

    options: Options
    place: str
    table: type[LakeTable]

    def path(self) -> str | None:
        """The path, of a table that has one."""
        return None if self.options.get("path") is None else self.options.text("path")

    def catalogued(self, spark: SparkSession) -> str | None:
        """The folder of a table that has a name."""
        table = self.table(self.options)
        if table.name is None or table.open(spark) is None:
            return None
        with table.errors_in_words():
            return table.location(spark)

    def _check_named(self) -> None:
        """Refuses a Spark without the format, and a name that is none."""
        check_release(self.table.lake, self.place)
        if self.options.get("path") is None:
            identifier(self.options.text("table"), self.place)


class LakeTarget(_InLake, OpenSink):
    """A table of one lake format that is written."""

    def check(self) -> None:
        """Refuses a Spark without the format, and what cannot be understood."""
        self._check_named()
        self.options.flag("with_timestamp")
        self.options.flag("create")
        self.options.is_upsert()
        refuse(self.options, "sink", SinkError)

    def begin(self, spark: SparkSession, checkpoint: str) -> EpochSink:
        """See `OpenSink`."""
        return LakeSink(spark, self, checkpoint, self.table(self.options))


class LakeSource(_InLake, OpenSource):
    """A table of one lake format that is read."""

    parses: ClassVar[bool] = False
    """Whether Spark's source takes only offsets that it has parsed."""

    def _check(self, default_local: bool) -> None:
        """Refuses a Spark without the format, and what cannot be understood."""
        self._check_named()
        refuse(self.options, "source", SourceError)
        if not self.is_snapshot:
            self._check_stream()

    def look(self, spark: SparkSession) -> None:
        """Refuses a table that cannot be read as it is declared."""
        table = self.table(self.options)
        found = table.readable(spark, self.node)
        if self.is_snapshot:
            History.of(found, table, self.options.connector)
        else:
            self._look_at_stream(spark, table)

    @property
    def is_snapshot(self) -> bool:
        """Whether it is a history."""
        return self.options.connector.keeps_history

    def take(self, spark: SparkSession, begun: bool) -> None:
        """Takes a history; other rows are read as they come."""

        def write(path: str) -> None:
            table, columns = self.table(self.options), self.node.source.columns
            history = History.of(table.columns(spark), table, self.options.connector)
            of_key = {c.name for c in self.node.schema.key}
            keys = [place(i) for i, c in enumerate(columns) if c.name in of_key]
            with table.errors_in_words():
                found = points(spark.table(table.sql), declared(self.node, self.read), keys, history).select(
                    *(place(i) for i in range(len(columns))),
                    F.coalesce(F.unix_millis(F.timestamp_micros(AT)), F.lit(0)),
                    ~F.col(PRESENT),
                    PROBLEM,
                )
                named = found.toDF(*(c.name for c in columns), TIME, DELETED, BAD).orderBy(TIME).coalesce(1)
                write_rows(named, path)

        if self.is_snapshot:
            take_once(spark, self.place, self.kept, begun, write)

    def rows(self, spark: SparkSession) -> DataFrame:
        """The rows of a table from the version on at which the query began; or those of a history."""
        if self.is_snapshot:
            beside = (Column(TIME, BIGINT), Column(DELETED, BOOLEAN))
            source = replace(self.node.source, columns=(*self.node.source.columns, *beside))
            return kept_rows(spark, source, self.place, self.kept, self.read | {TIME, DELETED})
        table = self.table(self.options)
        table.readable(spark, self.node)
        with table.errors_in_words():
            return self._stream(spark, table)

    def _input(self, source: SparkSource) -> Input:
        return LakeInput(source, self.parses)

    def _check_stream(self) -> None:
        """Refuses what cannot be of a source of rows. SourceError."""
        raise NotImplementedError

    def _look_at_stream(self, spark: SparkSession, table: LakeTable) -> None:
        """Refuses a table, whose columns are right, that cannot be read as a stream. LakeTableError."""

    def _stream(self, spark: SparkSession, table: LakeTable) -> DataFrame:
        """The rows of a table, as they come."""
        raise NotImplementedError
