"""The rows that are appended to an Iceberg table, for Spark, as a stream. A file is a source partition, in its order.

Not for rows that are changed or deleted: Iceberg has no stream of them.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.plan.nodes import Node
from vsc.runtime.errors import SourceError
from vsc.runtime.spark.connectors.iceberg_table import IcebergTable
from vsc.runtime.spark.connectors.lake_table import check_readable
from vsc.runtime.spark.ddl import quoted
from vsc.runtime.spark.options import Options
from vsc.runtime.spark.source_columns import PART

__all__ = ["check_iceberg_source", "iceberg_rows", "look_at_iceberg"]

_OPTIONS = {
    "stream-from-timestamp", "streaming-skip-delete-snapshots", "streaming-skip-overwrite-snapshots",
    "streaming-max-files-per-micro-batch", "streaming-max-rows-per-micro-batch",
}  # fmt: skip
_WHOLE_FILES = {"split-size": str(1 << 50), "file-open-cost": str(1 << 50)}
"""A file is one task's: Iceberg neither splits nor packs files of that size."""


def check_iceberg_source(node: Node, options: Options) -> None:
    """Raises SourceError for options that cannot be."""
    for name in options.spark:
        if name.lower() not in _OPTIONS:
            raise SourceError(
                f"{options.place}: {name!r} is not an option of an Iceberg source",
                "those that there are: " + ", ".join(sorted(_OPTIONS)),
            )
    if node.source.timestamp is None:
        raise SourceError(
            f"{options.place}: the rows of an Iceberg table have no time of their own", "add `timestamp COLUMN`"
        )


def look_at_iceberg(spark: SparkSession, node: Node, options: Options) -> None:
    """Raises LakeTableError for a table that cannot be read as it is declared."""
    check_readable(spark, node, IcebergTable(options))


def iceberg_rows(spark: SparkSession, node: Node, options: Options, read: frozenset[str]) -> DataFrame:
    """See `Connector.rows`."""
    table = IcebergTable(options)
    table.columns(spark)
    reader = spark.readStream.format("iceberg").options(**options.spark, **_WHOLE_FILES)
    with table.usable():
        frame = reader.load(table.sql)
    columns = [
        (F.col(quoted(c.name)) if c.name in read else F.lit(None)).cast(str(c.type)).alias(c.name)
        for c in node.source.columns
    ]
    return frame.select(*columns, F.input_file_name().alias(PART))
