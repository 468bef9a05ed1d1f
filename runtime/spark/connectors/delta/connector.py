"""Delta Lake: tables, and the rows of one as a stream: rows that are appended, or the table's change feed.

A table's transactions remember the last write of each writer, so that one that comes again is skipped.

Of the feed, a row that was inserted or is the newer one of an update is a row, a row that was deleted one without
value; so is the older one of an update, if its key has no row any more in that version of the table. Its own time is
that of the commit. Guarantees: changes of a key are in one source partition, in the order of the table's versions, in
each of them deletions first; otherwise a file is a source partition, in its order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.plan.nodes import Source
from vsc.runtime.errors import LakeTableError, SourceError
from vsc.runtime.spark.base.ddl import ddl, quoted
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.java import java_class
from vsc.runtime.spark.connectors.file_rows import MAX_BYTES
from vsc.runtime.spark.connectors.jars import DELTA
from vsc.runtime.spark.connectors.lake.connector import LakeSource, LakeTarget
from vsc.runtime.spark.connectors.lake.merge import place
from vsc.runtime.spark.connectors.lake.table import LakeTable, declared, identifier
from vsc.runtime.spark.exchange.wire import ROWS_A_BATCH
from vsc.runtime.spark.formats.source_columns import DELETED, PART, TIME

__all__ = ["DeltaSource", "DeltaTable", "DeltaTarget"]

_WRITE = "spark.databricks.delta.write"
_FEED = "readChangeFeed"
_ENABLED = "delta.enableChangeDataFeed"
_RETENTION = "delta.setTransactionRetentionDuration"
_VERSION, _FILE, _ROW, _OLDER = "_vsc_version", "_vsc_file", "_vsc_row", "_vsc_older"
_SHUFFLED = "spark.sql.shuffle.partitions"


class DeltaTable(LakeTable):
    """See the module."""

    lake = DELTA

    def use(self, spark: SparkSession) -> None:
        """See `LakeTable`."""
        if self.name is not None:
            self.sql = identifier(self.name, self.place)
        else:
            self.sql = f"delta.{quoted(Files(spark, str(self.path)).root)}"

    def check(self, spark: SparkSession) -> None:
        """Raises LakeTableError for a table of another format."""
        found = self._detail(spark, "format")
        if found != "delta":
            raise LakeTableError(f"{self.place}: {self.name!r} is a table of format {found}", "name another")

    def properties(self, spark: SparkSession) -> Mapping[str, str]:
        """See `LakeTable`."""
        with self.errors_in_words():
            return dict(self._detail(spark, "properties"))

    def location(self, spark: SparkSession) -> str:
        """See `LakeTable`."""
        return str(self._detail(spark, "location"))

    def written(self, spark: SparkSession, writer: str) -> int | None:
        """See `LakeTable`."""
        with self.errors_in_words():
            tables = java_class(spark, "io.delta.tables.DeltaTable")
            session = spark._jsparkSession
            if self.name is not None:
                table = tables.forName(session, self.sql)
            else:
                table = tables.forPath(session, Files(spark, str(self.path)).root)
            found = table.deltaLog().unsafeVolatileSnapshot().transactions().get(writer)
            return int(found.get()) if found.isDefined() else None

    def forgets(self, spark: SparkSession) -> bool:
        """If its transactions expire, which they do not by default."""
        return _RETENTION in self.properties(spark)

    def numbered(self, writer: str, number: int) -> Mapping[str, str]:
        """See `LakeTable`."""
        return {f"{_WRITE}.txnAppId": writer, f"{_WRITE}.txnVersion": str(number)}

    def _detail(self, spark: SparkSession, name: str) -> Any:
        [found] = spark.sql(f"describe detail {self.sql}").select(name).collect()
        return found[0]


class DeltaTarget(LakeTarget):
    """A table of Delta Lake that is written."""

    table = DeltaTable


class DeltaSource(LakeSource):
    """A table of Delta Lake that is read."""

    spark_class = "DeltaSource"
    table = DeltaTable

    def _check_stream(self) -> None:
        if self.node.source.timestamp is None and not self._reads_feed:
            raise SourceError(
                f"{self.place}: the appended rows of a Delta table have no time of their own",
                f"add `timestamp COLUMN`, or read the change feed, with the times of the commits: remove {_FEED!r}",
            )

    def _look_at_stream(self, spark: SparkSession, table: LakeTable) -> None:
        node = self.node
        if not self._reads_feed or table.properties(spark).get(_ENABLED) == "true":
            return
        if node.source.timestamp is not None:
            other = f"if rows are only appended, read them with {_FEED!r} = 'false'"
        else:
            other = "or read appended rows, with `timestamp COLUMN`"
            other += f" and {_FEED!r} = 'false'" if node.kind == "table" else ""
        raise LakeTableError(
            f"{self.place}: {table.shown} has no change feed",
            f"switch it on: alter table {table.sql} set tblproperties ({_ENABLED} = true); {other}",
        )

    def _stream(self, spark: SparkSession, table: LakeTable) -> DataFrame:
        node, read, feed = self.node, self.read, self._reads_feed
        given = {name: value for name, value in self.options.spark.items() if name.lower() != _FEED.lower()}
        if not {name.lower() for name in given} & {"maxfilespertrigger", "maxbytespertrigger"}:
            given["maxBytesPerTrigger"] = str(MAX_BYTES)
        reader = spark.readStream.format("delta").options(**given, **{_FEED: str(feed).lower()})
        frame = reader.load(str(table.path)) if table.name is None else reader.table(table.sql)
        if not feed:
            return frame.select(*declared(node, read), F.input_file_name().alias(PART))
        older = F.col("_change_type") == "update_preimage"
        changes = frame.select(
            *declared(node, read),
            F.unix_millis("_commit_timestamp").alias(TIME),
            (older | (F.col("_change_type") == "delete")).alias(DELETED),
            older.alias(_OLDER),
            F.col("_commit_version").alias(_VERSION),
            F.input_file_name().alias(_FILE),
        )
        keys = [c.name for c in node.schema.key]
        if not keys:
            part = F.format_string("%020d/%s", _VERSION, _FILE)
            return changes.where(f"not {_OLDER}").withColumn(PART, part).drop(_VERSION, _FILE, _OLDER)
        places = [place(i) for i, c in enumerate(node.source.columns) if c.name in keys]
        ordered = _ordered(changes, node.source, places, int(str(spark.conf.get(_SHUFFLED))))
        return ordered.toDF(*(c.name for c in node.source.columns), TIME, DELETED, PART)

    @property
    def _reads_feed(self) -> bool:
        """Whether the change feed is read: for a table, and for the times of its commits, unless the option says so."""
        given = self.options.spark_word(_FEED)
        return self.node.kind == "table" or self.node.source.timestamp is None if given is None else given == "true"


def _ordered(changes: DataFrame, source: Source, keys: list[str], partitions: int) -> DataFrame:
    """The changes by key, with their source partition, in its order; the declared columns are called by their places.

    Spark sorts no stream: each task sorts what it gets of an epoch.
    """
    columns: list[tuple[str, object]] = [(place(i), c.type) for i, c in enumerate(source.columns)]
    given = [*columns, (TIME, "bigint"), (DELETED, "boolean"), (_OLDER, "boolean")]
    given += [(_VERSION, "bigint"), (_FILE, "string")]
    handed = [*columns, (TIME, "bigint"), (DELETED, "boolean"), (PART, "string")]
    named = changes.toDF(*(name for name, _ in given))
    numbered = named.mapInArrow(_number, ddl([*given, (_ROW, "bigint")]))
    part = F.format_string("key-%06d", F.pmod(F.hash(*keys), F.lit(partitions)))
    return (
        numbered.repartition(partitions, *keys).withColumn(PART, part).mapInArrow(partial(_sorted, keys), ddl(handed))
    )


def _number(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches with one more column, a number that counts the rows of the task: Spark numbers no stream."""
    done = 0
    for batch in batches:
        numbers = pa.array(np.arange(done, done + batch.num_rows, dtype=np.int64))
        done += batch.num_rows
        yield pa.RecordBatch.from_arrays([*batch.columns, numbers], names=[*batch.schema.names, _ROW])


def _sorted(keys: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a task in order, without what tells it. All changes that an epoch has of a key come to one task."""
    found = list(batches)
    if not found:
        return
    table = _changed(pa.Table.from_batches(found), keys)
    upserts = pc.invert(table[DELETED]).cast(pa.int8())
    order = pa.table([table[_VERSION], upserts, table[_FILE], table[_ROW]], names=["version", "upsert", "file", "row"])
    kept = table.drop_columns([_VERSION, _FILE, _ROW, _OLDER])
    chosen = pc.sort_indices(order, sort_keys=[(name, "ascending") for name in order.column_names])
    yield from kept.take(chosen).combine_chunks().to_batches(max_chunksize=ROWS_A_BATCH)


def _changed(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The changes without those older rows of updates that delete nothing: their key, if it is one, has a row in the
    same version."""
    older, row = (pc.fill_null(column, False).to_numpy() for column in (table[_OLDER], pc.invert(table[DELETED])))
    if not older.any():
        return table
    of_key = table.select(keys)
    no_key = np.any([column.is_null().to_numpy() for column in of_key.columns], axis=0)
    while any(pa.types.is_struct(field.type) for field in of_key.schema):
        of_key = of_key.flatten()
    code = np.zeros(table.num_rows, np.int64)
    for column in (table[_VERSION], *of_key.columns):
        encoded = pc.dictionary_encode(column, null_encoding="encode").combine_chunks()
        parts = code * len(encoded.dictionary) + encoded.indices.to_numpy()
        code = np.unique(parts, return_inverse=True)[1]
    has_row = np.zeros(table.num_rows, bool)
    has_row[code[row]] = True
    return table.filter(pa.array(~older | ~(no_key | has_row[code])))
