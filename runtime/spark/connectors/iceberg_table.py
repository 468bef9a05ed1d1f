"""An Iceberg table: the summaries of its snapshots hold who wrote them, and which write it was.

A table that is named by its path is one of a Hadoop catalog of vsc's own, whose warehouse is the folder above.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from vsc.runtime.spark.connectors.lake_jars import ICEBERG
from vsc.runtime.spark.connectors.lake_table import LakeTable, identifier
from vsc.runtime.spark.ddl import quoted
from vsc.runtime.spark.hadoop import Files

__all__ = ["IcebergTable"]

_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_SUMMARY = "spark.sql.iceberg.snapshot-property"
_WRITER, _NUMBER = "vsc.writer", "vsc.write"


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

    def numbered(self, writer: str, number: int) -> Mapping[str, str]:
        """See `LakeTable`."""
        return {f"{_SUMMARY}.{_WRITER}": writer, f"{_SUMMARY}.{_NUMBER}": str(number)}

    def _table(self, spark: SparkSession) -> Any:
        with self.usable():
            jvm: Any = spark._jvm
            table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, self.sql)
            table.refresh()
            return table
