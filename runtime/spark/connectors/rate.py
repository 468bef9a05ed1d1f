"""A source that makes rows: Spark's `rate`."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.plan.nodes import Node, Source
from vsc.runtime.errors import SourceError
from vsc.runtime.spark.connectors.connector import Connector
from vsc.runtime.spark.options import Options
from vsc.runtime.spark.source_columns import TIME

__all__ = ["Rate"]

_COLUMNS = {"value": "bigint", "at": "timestamp"}


class Rate(Connector):
    """Rows of a number and the time at which it was made."""

    kind = "rate"

    def check_source(self, node: Node, options: Options, default_local: bool) -> None:
        """Checks the rate and the columns."""
        rows = options.text("rows_per_second")
        if not (rows.isdecimal() and int(rows) > 0):
            raise SourceError(
                f"{options.place}: rows_per_second is a whole number of at least 1, not {rows!r}",
                "give one, such as 10",
            )
        assert isinstance(node.operation, Source)
        for column in node.operation.columns:
            if _COLUMNS.get(column.name) != str(column.type):
                raise SourceError(
                    f"{options.place}: rate has the columns value bigint and at timestamp, "
                    f"not {column.name} {column.type}"
                )

    def rows(self, spark: SparkSession, node: Node, options: Options, read: frozenset[str]) -> DataFrame:
        """One task makes all rows, so that they are one source partition in the order of `value`."""
        source = node.operation
        assert isinstance(source, Source)
        reader = spark.readStream.format("rate").option("numPartitions", "1")
        reader = reader.option("rowsPerSecond", options.text("rows_per_second"))
        for name, value in options.spark.items():
            reader = reader.option(name, value)
        frame = reader.load()
        columns = {"value": F.col("value"), "at": F.col("timestamp")}
        chosen = [columns[c.name].alias(c.name) for c in source.columns]
        if source.timestamp is None:
            chosen.append(F.unix_millis(F.col("timestamp")).alias(TIME))
        return frame.select(*chosen)
