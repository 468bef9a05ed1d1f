"""PostgreSQL: a sink that upserts and deletes a table's rows by key, or appends a stream's."""

from __future__ import annotations

from pyspark.sql import SparkSession

from vsc.extras import required
from vsc.plan.nodes import Node, Sink
from vsc.runtime.errors import SourceError
from vsc.runtime.spark.connectors.connector import Connector, EpochSink
from vsc.runtime.spark.connectors.jdbc_database import Database
from vsc.runtime.spark.connectors.jdbc_sink import JdbcSink
from vsc.runtime.spark.options import Options

__all__ = ["Jdbc"]


class Jdbc(Connector):
    """Tables of PostgreSQL."""

    kind = "jdbc"
    digests = True

    def check_source(self, node: Node, options: Options, default_local: bool) -> None:
        """Refuses it."""
        what = f"{options.place} reads from {self.kind}, which this version of vsc cannot run yet"
        raise SourceError(what, "read from files for now")

    def check_sink(self, options: Options) -> None:
        """Refuses what cannot be understood, and a missing client. Whether the server is there is seen later."""
        Database.of(options)
        options.flag("with_timestamp")
        options.flag("create")
        with required(f"{options.place}: jdbc"):
            import psycopg  # noqa: F401

    def sink(self, spark: SparkSession, sink: Sink, node: Node, checkpoint: str) -> EpochSink:
        """The sink."""
        return JdbcSink(sink, node, checkpoint)
