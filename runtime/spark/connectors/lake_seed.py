"""A history as the source of a versioned table: its rows are taken once, into the checkpoint, and read from there.

Guarantees: those of `snapshot`; versions and deletions come in the order of their times. Later changes of the history
are not seen.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from vsc.plan.nodes import Column, Connector, Node
from vsc.plan.types import BIGINT, BOOLEAN
from vsc.runtime.errors import LakeTableError, SourceError
from vsc.runtime.spark.connectors.lake_history import PROBLEM, TIME_TYPES, History, points
from vsc.runtime.spark.connectors.lake_merge import AT, PRESENT, place
from vsc.runtime.spark.connectors.lake_table import LakeTable, check_readable
from vsc.runtime.spark.connectors.lake_types import columns_by_name
from vsc.runtime.spark.connectors.snapshot import ROWS_A_FILE, kept_rows, take_once
from vsc.runtime.spark.ddl import quoted
from vsc.runtime.spark.options import Options
from vsc.runtime.spark.source_columns import BAD, DELETED, TIME

__all__ = ["check_seed", "history_of", "look_at_seed", "seed_rows", "take_seed"]


def check_seed(options: Options) -> None:
    """Raises SourceError for options that have no effect."""
    for name in options.spark:
        raise SourceError(f"{options.place}: {name!r} has no effect: a history is read once, whole", f"remove {name!r}")


def look_at_seed(spark: SparkSession, node: Node, table: LakeTable, options: Options) -> None:
    """Raises LakeTableError for a table that cannot be read as it is declared."""
    check_readable(spark, node, table)
    history_of(table.columns(spark), table, options.connector)


def history_of(found: StructType, table: LakeTable, connector: Connector) -> History:
    """The columns of times of a table with the columns `found`. LakeTableError if one is missing, or has no times."""
    known = columns_by_name(found)
    fields = []
    for name in (connector.valid_from, connector.valid_to):
        field = known.get(name.lower())
        if field is None or not isinstance(field.dataType, TIME_TYPES):
            what = "no such column" if field is None else field.dataType.simpleString()
            raise LakeTableError(
                f"{table.place}: {table.shown} does not fit: its column '{name}' of times is {what}",
                "name columns of type timestamp or bigint (milliseconds) with valid_from and valid_to",
            )
        fields.append(field)
    return History(*fields)


def take_seed(
    spark: SparkSession, node: Node, options: Options, table: LakeTable, read: frozenset[str], begun: bool
) -> None:
    """Takes the rows into `options.kept`, unless they are there. `begun`: they were there before."""

    def write(path: str) -> None:
        history, declared = history_of(table.columns(spark), table, options.connector), node.source.columns
        columns = [(F.col(quoted(c.name)) if c.name in read else F.lit(None)).cast(str(c.type)) for c in declared]
        of_key = {c.name for c in node.schema.key}
        keys = [place(i) for i, c in enumerate(declared) if c.name in of_key]
        with table.usable():
            rows = points(spark.table(table.sql), columns, keys, history).select(
                *(place(i) for i in range(len(declared))),
                F.coalesce(F.unix_millis(F.timestamp_micros(AT)), F.lit(0)),
                ~F.col(PRESENT),
                PROBLEM,
            )
            timed = rows.toDF(*(c.name for c in declared), TIME, DELETED, BAD)
            timed.orderBy(TIME).coalesce(1).write.option("maxRecordsPerFile", ROWS_A_FILE).parquet(path)

    take_once(spark, options, begun, write)


def seed_rows(spark: SparkSession, node: Node, options: Options, read: frozenset[str]) -> DataFrame:
    """See `Connector.rows`: of the snapshot in `options.kept`."""
    beside = (Column(TIME, BIGINT), Column(DELETED, BOOLEAN))
    source = replace(node.source, columns=(*node.source.columns, *beside))
    return kept_rows(spark, source, options, read | {TIME, DELETED}, timed=True)
