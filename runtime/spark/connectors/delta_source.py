"""The rows of a Delta table for Spark, as a stream: rows that are appended, or the table's change feed.

Of the feed, a row that was inserted or is the newer one of an update is a row, a row that was deleted one without
value; its own time is that of the commit. Guarantees: changes of a key are in one source partition, in the order of the
table's versions, in each of them deletions first; otherwise a file is a source partition, in its order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.plan.nodes import Node, Source
from vsc.runtime.errors import LakeTableError, SourceError
from vsc.runtime.spark.connectors.delta_table import DeltaTable
from vsc.runtime.spark.connectors.file_rows import MAX_BYTES
from vsc.runtime.spark.connectors.lake_merge import place
from vsc.runtime.spark.connectors.lake_table import check_readable
from vsc.runtime.spark.ddl import ddl, quoted
from vsc.runtime.spark.options import Options
from vsc.runtime.spark.source_columns import DELETED, PART, TIME
from vsc.runtime.spark.wire import ROWS_A_BATCH

__all__ = ["check_delta_source", "delta_rows", "look_at_delta"]

_FEED = "readChangeFeed"
_OPTIONS = {
    "readchangefeed", "startingversion", "startingtimestamp", "maxfilespertrigger", "maxbytespertrigger",
    "ignoredeletes", "ignorechanges", "skipchangecommits", "excluderegex", "failondataloss",
}  # fmt: skip
"""Delta's options for a stream, in lower case."""
_ENABLED = "delta.enableChangeDataFeed"
_VERSION, _FILE, _ROW = "_vsc_version", "_vsc_file", "_vsc_row"
_SHUFFLED = "spark.sql.shuffle.partitions"


def check_delta_source(node: Node, options: Options) -> None:
    """Raises SourceError for options that cannot be."""
    for name, value in options.spark.items():
        if name.lower() not in _OPTIONS:
            raise SourceError(
                f"{options.place}: {name!r} is not an option of a Delta source",
                "those that there are: " + ", ".join(sorted(_OPTIONS)),
            )
        if name.lower() == _FEED.lower() and value.lower() not in ("true", "false"):
            raise SourceError(f"{options.place}: {name!r} is true or false, not {value!r}")
    if node.source.timestamp is None and not _reads_feed(node, options):
        raise SourceError(
            f"{options.place}: the appended rows of a Delta table have no time of their own",
            f"add `timestamp COLUMN`, or read the change feed, with the times of the commits: remove {_FEED!r}",
        )


def look_at_delta(spark: SparkSession, node: Node, options: Options) -> None:
    """Raises LakeTableError for a table that cannot be read as it is declared."""
    table = DeltaTable(options)
    check_readable(spark, node, table)
    if _reads_feed(node, options) and table.properties(spark).get(_ENABLED) != "true":
        raise LakeTableError(
            f"{options.place}: {table.shown} has no change feed",
            f"switch it on: alter table {table.sql} set tblproperties ({_ENABLED} = true)"
            + (
                f"; if rows are only appended, read them with {_FEED!r} = 'false'"
                if node.source.timestamp is not None
                else "; or read appended rows, with `timestamp COLUMN`"
                + (f" and {_FEED!r} = 'false'" if node.kind == "table" else "")
            ),
        )


def delta_rows(spark: SparkSession, node: Node, options: Options, read: frozenset[str]) -> DataFrame:
    """See `Connector.rows`."""
    table, feed = DeltaTable(options), _reads_feed(node, options)
    table.columns(spark)
    given = {name: value for name, value in options.spark.items() if name.lower() != _FEED.lower()}
    if not {name.lower() for name in given} & {"maxfilespertrigger", "maxbytespertrigger"}:
        given["maxBytesPerTrigger"] = str(MAX_BYTES)
    reader = spark.readStream.format("delta").options(**given, **{_FEED: str(feed).lower()})
    with table.usable():
        frame = reader.load(str(table.path)) if table.name is None else reader.table(table.sql)
    declared = [_declared(node.source, name, read) for name in (c.name for c in node.source.columns)]
    if not feed:
        return frame.select(*declared, F.input_file_name().alias(PART))
    changes = frame.where("_change_type != 'update_preimage'").select(
        *declared,
        F.unix_millis("_commit_timestamp").alias(TIME),
        (F.col("_change_type") == "delete").alias(DELETED),
        F.col("_commit_version").alias(_VERSION),
        F.input_file_name().alias(_FILE),
    )
    keys = [c.name for c in node.schema.key]
    if not keys:
        part = F.format_string("%020d/%s", _VERSION, _FILE)
        return changes.withColumn(PART, part).drop(_VERSION, _FILE)
    places = [place(i) for i, c in enumerate(node.source.columns) if c.name in keys]
    ordered = _ordered(changes, node.source, places, int(str(spark.conf.get(_SHUFFLED))))
    return ordered.toDF(*(c.name for c in node.source.columns), TIME, DELETED, PART)


def _ordered(changes: DataFrame, source: Source, keys: list[str], partitions: int) -> DataFrame:
    """The changes by key, with their source partition, in its order; the declared columns are called by their places.

    Spark sorts no stream: each task sorts what it gets of an epoch.
    """
    declared: list[tuple[str, object]] = [(place(i), c.type) for i, c in enumerate(source.columns)]
    given = [*declared, (TIME, "bigint"), (DELETED, "boolean"), (_VERSION, "bigint"), (_FILE, "string")]
    numbered = [*given, (_ROW, "bigint")]
    handed = [*declared, (TIME, "bigint"), (DELETED, "boolean"), (PART, "string")]
    named = changes.toDF(*(name for name, _ in given)).mapInArrow(_number, ddl(numbered))
    part = F.format_string("key-%06d", F.pmod(F.hash(*keys), F.lit(partitions)))
    return named.repartition(partitions, *keys).withColumn(PART, part).mapInArrow(_sorted, ddl(handed))


def _number(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches with one more column, a number that counts the rows of the task."""
    done = 0
    for batch in batches:
        numbers = pa.array(np.arange(done, done + batch.num_rows, dtype=np.int64))
        done += batch.num_rows
        yield pa.RecordBatch.from_arrays([*batch.columns, numbers], names=[*batch.schema.names, _ROW])


def _sorted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a task in order, without what tells it."""
    found = list(batches)
    if not found:
        return
    table = pa.Table.from_batches(found)
    upserts = pc.invert(table[DELETED]).cast(pa.int8())
    order = pa.table([table[_VERSION], upserts, table[_FILE], table[_ROW]], names=["version", "upsert", "file", "row"])
    kept = table.drop_columns([_VERSION, _FILE, _ROW])
    chosen = pc.sort_indices(order, sort_keys=[(name, "ascending") for name in order.column_names])
    yield from kept.take(chosen).combine_chunks().to_batches(max_chunksize=ROWS_A_BATCH)


def _declared(source: Source, name: str, read: frozenset[str]) -> Column:
    type = next(str(c.type) for c in source.columns if c.name == name)
    return (F.col(quoted(name)) if name in read else F.lit(None)).cast(type).alias(name)


def _reads_feed(node: Node, options: Options) -> bool:
    """Whether the change feed is read: for a table, and for the times of its commits, unless the option says so."""
    given = next((value for name, value in options.spark.items() if name.lower() == _FEED.lower()), None)
    return node.kind == "table" or node.source.timestamp is None if given is None else given.lower() == "true"
