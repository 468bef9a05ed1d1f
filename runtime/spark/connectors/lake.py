"""Delta Lake and Iceberg: sources of rows, changes and histories; sinks that append, upsert or keep a history."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from vsc.plan.nodes import Node, Sink
from vsc.runtime.errors import SinkError
from vsc.runtime.spark.connectors.connector import Connector, EpochSink
from vsc.runtime.spark.connectors.delta_source import check_delta_source, delta_rows, look_at_delta
from vsc.runtime.spark.connectors.delta_table import DeltaTable
from vsc.runtime.spark.connectors.iceberg_source import check_iceberg_source, iceberg_rows, look_at_iceberg
from vsc.runtime.spark.connectors.iceberg_table import IcebergTable
from vsc.runtime.spark.connectors.lake_jars import check_release
from vsc.runtime.spark.connectors.lake_seed import check_seed, look_at_seed, seed_rows, take_seed
from vsc.runtime.spark.connectors.lake_sink import LakeSink
from vsc.runtime.spark.connectors.lake_table import LakeTable, identifier
from vsc.runtime.spark.options import Options

__all__ = ["Delta", "Iceberg"]


class _LakeConnector(Connector):
    """Tables of one lake format."""

    table: type[LakeTable]

    def check_sink(self, options: Options) -> None:
        """Refuses a Spark without the format, and what cannot be understood."""
        self._check(options)
        options.flag("with_timestamp")
        if options.spark and not options.flag("create"):
            raise SinkError(
                f"{options.place}: quoted options are properties of a table that is created, such as "
                f"{next(iter(options.spark))!r}",
                "add create = true, or remove them",
            )

    def sink(self, spark: SparkSession, sink: Sink, node: Node, checkpoint: str) -> EpochSink:
        """The sink."""
        return LakeSink(spark, sink, node, checkpoint, self.table(Options.of_sink(sink)))

    def check_source(self, node: Node, options: Options, default_local: bool) -> None:
        """Refuses a Spark without the format, and what cannot be understood."""
        self._check(options)
        if options.connector.keeps_history:
            check_seed(options)
        else:
            self._check_rows(node, options)

    def look(self, spark: SparkSession, node: Node, options: Options) -> None:
        """Refuses a table that cannot be read as it is declared."""
        if options.connector.keeps_history:
            look_at_seed(spark, node, self.table(options), options)
        else:
            self._look_at_rows(spark, node, options)

    def take(self, spark: SparkSession, node: Node, options: Options, read: frozenset[str], begun: bool) -> None:
        """Takes a history; other rows are read as they come."""
        if options.connector.keeps_history:
            take_seed(spark, node, options, self.table(options), read, begun)

    def rows(self, spark: SparkSession, node: Node, options: Options, read: frozenset[str]) -> DataFrame:
        """The rows of a table from the version on at which the query began; or those of a history."""
        if options.connector.keeps_history:
            return seed_rows(spark, node, options, read)
        return self._rows(spark, node, options, read)

    def _check(self, options: Options) -> None:
        check_release(self.table.lake, options.place)
        if options.get("path") is None:
            identifier(options.text("table"), options.place)

    def _check_rows(self, node: Node, options: Options) -> None:
        raise NotImplementedError

    def _look_at_rows(self, spark: SparkSession, node: Node, options: Options) -> None:
        raise NotImplementedError

    def _rows(self, spark: SparkSession, node: Node, options: Options, read: frozenset[str]) -> DataFrame:
        raise NotImplementedError


class Delta(_LakeConnector):
    """Tables of Delta Lake."""

    kind = "delta"
    table = DeltaTable
    _check_rows = staticmethod(check_delta_source)
    _look_at_rows = staticmethod(look_at_delta)
    _rows = staticmethod(delta_rows)


class Iceberg(_LakeConnector):
    """Tables of Iceberg."""

    kind = "iceberg"
    table = IcebergTable
    _check_rows = staticmethod(check_iceberg_source)
    _look_at_rows = staticmethod(look_at_iceberg)
    _rows = staticmethod(iceberg_rows)
