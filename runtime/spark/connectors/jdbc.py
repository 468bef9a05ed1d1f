"""PostgreSQL: a snapshot of a table as a source; a sink that keeps a table by key, or appends a stream."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from vsc.extras import required
from vsc.plan.nodes import Node, Sink, Source
from vsc.runtime.spark.connectors.connector import Connector, EpochSink
from vsc.runtime.spark.connectors.jdbc_database import Database
from vsc.runtime.spark.connectors.jdbc_sink import JdbcSink
from vsc.runtime.spark.connectors.jdbc_snapshot import look_at_table, snapshot_rows, take_snapshot
from vsc.runtime.spark.options import Options

__all__ = ["Jdbc"]


class Jdbc(Connector):
    """Tables of PostgreSQL."""

    kind = "jdbc"
    digests = True

    def check_source(self, node: Node, options: Options, default_local: bool) -> None:
        """Refuses what cannot be understood, and a missing client."""
        _check(options)

    def look(self, spark: SparkSession, node: Node, options: Options) -> None:
        """Refuses a table that cannot be read as it is declared."""
        assert isinstance(node.operation, Source)
        look_at_table(node.operation, options)

    def take(self, spark: SparkSession, node: Node, options: Options, read: frozenset[str], begun: bool) -> None:
        """Takes the snapshot."""
        take_snapshot(spark, node, options, read, begun)

    def rows(self, spark: SparkSession, node: Node, options: Options, read: frozenset[str]) -> DataFrame:
        """The rows of the snapshot."""
        return snapshot_rows(spark, node, options, read)

    def check_sink(self, options: Options) -> None:
        """Refuses what cannot be understood, and a missing client. Whether the server is there is seen later."""
        _check(options)
        options.flag("with_timestamp")
        options.flag("create")

    def sink(self, spark: SparkSession, sink: Sink, node: Node, checkpoint: str) -> EpochSink:
        """The sink."""
        return JdbcSink(sink, node, checkpoint)


def _check(options: Options) -> None:
    Database.of(options)
    with required(f"{options.place}: jdbc"):
        import psycopg  # noqa: F401
