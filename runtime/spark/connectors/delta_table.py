"""A Delta table: its transactions remember the last write of each writer, so that one that comes again is skipped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from vsc.runtime.errors import LakeTableError
from vsc.runtime.spark.connectors.lake_jars import DELTA
from vsc.runtime.spark.connectors.lake_table import LakeTable, identifier
from vsc.runtime.spark.ddl import quoted
from vsc.runtime.spark.hadoop import Files

__all__ = ["DeltaTable"]

_WRITE = "spark.databricks.delta.write"


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
        [found] = spark.sql(f"describe detail {self.sql}").select("format").collect()
        if found.format != "delta":
            raise LakeTableError(f"{self.place}: {self.name!r} is a table of format {found.format}", "name another")

    def properties(self, spark: SparkSession) -> Mapping[str, str]:
        """See `LakeTable`."""
        with self.usable():
            [found] = spark.sql(f"describe detail {self.sql}").select("properties").collect()
            return dict(found.properties)

    def written(self, spark: SparkSession, writer: str) -> int | None:
        """See `LakeTable`."""
        with self.usable():
            tables: Any = spark._jvm.io.delta.tables.DeltaTable  # type: ignore[union-attr]
            session = spark._jsparkSession
            if self.name is not None:
                table = tables.forName(session, self.sql)
            else:
                table = tables.forPath(session, Files(spark, str(self.path)).root)
            found = table.deltaLog().unsafeVolatileSnapshot().transactions().get(writer)
            return int(found.get()) if found.isDefined() else None

    def numbered(self, writer: str, number: int) -> Mapping[str, str]:
        """See `LakeTable`."""
        return {f"{_WRITE}.txnAppId": writer, f"{_WRITE}.txnVersion": str(number)}
