"""Iceberg: tables, and the rows that are appended to one, as a stream. A file is a source partition, in its order.

The summaries of a table's snapshots hold who wrote them, and which write it was. A table that is named by its path is
one of a Hadoop catalog of vsc's own, whose warehouse is the folder above. Not for rows that are changed or deleted:
Iceberg has no stream of them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.runtime.errors import LakeTableError, SourceError
from vsc.runtime.spark.base.ddl import quoted
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.java import java_class
from vsc.runtime.spark.checkpoint.spark_logs import replace_log
from vsc.runtime.spark.connectors.jars import ICEBERG
from vsc.runtime.spark.connectors.lake.connector import LakeSource, LakeTarget
from vsc.runtime.spark.connectors.lake.table import LakeTable, declared, identifier
from vsc.runtime.spark.connectors.position import SeenFiles, SourceNotes
from vsc.runtime.spark.formats.source_columns import PART

__all__ = ["IcebergSource", "IcebergTable", "IcebergTarget"]

_BEGUN_AT = "offsets/0"
"""Iceberg's own note of where a source began."""
_NOTHING, _NO_SNAPSHOT = "-", -1
"""The offset of a source that has read nothing, and the snapshot in that of a table without rows."""
_FROM = "stream-from-timestamp"
_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_SUMMARY = "spark.sql.iceberg.snapshot-property"
_WRITER, _NUMBER = "vsc.writer", "vsc.write"
_WHOLE_FILES = {"split-size": str(1 << 50), "file-open-cost": str(1 << 50)}
"""A file is one task's: Iceberg neither splits nor packs files of that size."""


class IcebergTable(LakeTable):
    """See the module."""

    lake = ICEBERG

    def use(self, spark: SparkSession) -> None:
        """See `LakeTable`."""
        if self.name is not None:
            self.sql = identifier(self.name, self.place)
            return
        warehouse, _, table = Files(spark, str(self.path)).root.rstrip("/").rpartition("/")
        catalog = f"vsc_{zlib.crc32(warehouse.encode()):08x}"
        settings = {"": _CATALOG, ".type": "hadoop", ".warehouse": warehouse, ".cache-enabled": "false"}
        for name, value in settings.items():
            spark.conf.set(f"spark.sql.catalog.{catalog}{name}", value)
        self.sql = f"{catalog}.{quoted(table)}"

    def check(self, spark: SparkSession) -> None:
        """See `LakeTable`."""
        self._table(spark)

    def properties(self, spark: SparkSession) -> Mapping[str, str]:
        """See `LakeTable`."""
        return dict(self._table(spark).properties())

    def location(self, spark: SparkSession) -> str:
        """See `LakeTable`."""
        return str(self._table(spark).location())

    def written(self, spark: SparkSession, writer: str) -> int | None:
        """See `LakeTable`."""
        table = self._table(spark)
        snapshot = table.currentSnapshot()
        while snapshot is not None:
            summary = snapshot.summary()
            if summary.get(_WRITER) == writer:
                return int(summary.get(_NUMBER))
            parent = snapshot.parentId()
            snapshot = None if parent is None else table.snapshot(parent)
        return None

    def forgets(self, spark: SparkSession) -> bool:
        """Once the snapshot has expired."""
        return True

    def numbered(self, writer: str, number: int) -> Mapping[str, str]:
        """See `LakeTable`."""
        return {f"{_SUMMARY}.{_WRITER}": writer, f"{_SUMMARY}.{_NUMBER}": str(number)}

    def has(self, spark: SparkSession, snapshot: int) -> bool:
        """Whether a snapshot has not expired."""
        return self._table(spark).snapshot(snapshot) is not None

    def begins_at(self, spark: SparkSession) -> int | None:
        """The time, in ms, of the oldest snapshot from which one comes to the newest, if those before it have expired:
        no stream reads the rows that they added."""
        table = self._table(spark)
        snapshot, parent = None, table.currentSnapshot()
        while parent is not None:
            snapshot, id = parent, parent.parentId()
            parent = None if id is None else table.snapshot(id)
        return None if snapshot is None or snapshot.parentId() is None else int(snapshot.timestampMillis())

    def _table(self, spark: SparkSession) -> Any:
        with self.errors_in_words():
            tables = java_class(spark, "org.apache.iceberg.spark.Spark3Util")
            table = tables.loadIcebergTable(spark._jsparkSession, self.sql)
            table.refresh()
            return table


class IcebergTarget(LakeTarget):
    """A table of Iceberg that is written."""

    table = IcebergTable


class IcebergSource(LakeSource):
    """A table of Iceberg that is read."""

    spark_class = "SparkMicroBatchStream"
    table = IcebergTable
    parses = True
    goes_on = True

    def go_on(self, notes: SourceNotes, offset: str, read: SeenFiles) -> None:
        """At the snapshot; a history has been taken."""
        if self.is_snapshot:
            notes.write_known(read)
        else:
            notes.write(_BEGUN_AT, offset)

    def catch_up(self, spark: SparkSession, notes: SourceNotes, offset: Callable[[], str]) -> None:
        """Iceberg begins each run with what there is behind the snapshot at which the checkpoint began. If that has
        expired, it began with the one at which it goes on: behind its end there may be nothing, which Iceberg does not
        bear."""
        name = f"sources/{notes.number}/{_BEGUN_AT}"
        if self.is_snapshot or not notes.files.exists(name):
            return
        table = IcebergTable(self.options)
        table.columns(spark)
        began = json.loads(notes.files.read(name))["snapshot_id"]
        if began != _NO_SNAPSHOT and not table.has(spark, began) and (now := offset()) != _NOTHING:
            replace_log(notes.files, name, json.dumps({**json.loads(now), "position": 0}))

    def _check_stream(self) -> None:
        if self.node.source.timestamp is None:
            raise SourceError(
                f"{self.place}: the rows of an Iceberg table have no time of their own", "add `timestamp COLUMN`"
            )

    def _look_at_stream(self, spark: SparkSession, table: LakeTable) -> None:
        assert isinstance(table, IcebergTable)
        oldest, given = table.begins_at(spark), self.options.spark_word(_FROM)
        if oldest is not None and (given is None or not given.isdigit() or int(given) < oldest - 1):
            raise LakeTableError(
                f"{self.place}: the first snapshots of {table.shown} have expired, and no stream reads the rows "
                "that they added",
                f"to read only what the snapshots that are left have added, write {_FROM!r} = '{oldest - 1}'",
            )

    def _stream(self, spark: SparkSession, table: LakeTable) -> DataFrame:
        frame = spark.readStream.format("iceberg").options(**self.options.spark, **_WHOLE_FILES).load(table.sql)
        return frame.select(*declared(self.node, self.read), F.input_file_name().alias(PART))
