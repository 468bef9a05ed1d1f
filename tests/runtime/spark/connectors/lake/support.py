"""What the tests of the lake formats share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.spark.support import compiled, run_once, write_json
from vsc.plan.parts import Connector
from vsc.runtime.errors import VscRuntimeError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.delta.connector import DeltaTable
from vsc.runtime.spark.connectors.iceberg.connector import IcebergTable
from vsc.runtime.spark.connectors.lake.table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Case"]


class Case:
    """A topology in a folder, its runs, and the tables in that folder. `${lake}` is the format in its text."""

    def __init__(self, text: str, folder: Path, spark: SparkSession, lake: str) -> None:
        self.folder, self.spark, self.lake = folder, spark, lake
        self.plan = compiled(text.replace("${lake}", lake))
        self.variables = {"in": str(folder / "in"), "out": str(folder / "out"), "table": str(folder / "table")}

    def file(self, number: int, *rows: dict[str, Any], folder: str = "in") -> None:
        write_json(self.folder / folder / f"{number}.json", rows, number)

    def run(self, checkpoint: str = "ck", **arguments: Any) -> list[Any]:
        return run_once(
            self.plan, self.spark, self.folder / checkpoint, variables=self.variables, partitions=1, **arguments
        )

    def uncommit(self, epoch: int) -> None:
        """As if the driver had died between the commit of the table and Spark's."""
        for name in (f"{epoch}", f".{epoch}.crc"):
            (self.folder / "ck/commits" / name).unlink()

    def rows(self, name: str = "table", columns: str = "*") -> list[tuple[Any, ...]]:
        """The rows of a table in the folder, sorted."""
        frame = self.spark.read.format(self.lake).load(str(self.folder / name)).selectExpr(*columns.split(", "))
        return sorted((tuple(row) for row in frame.collect()), key=repr)

    def versions(self, name: str = "table") -> int:
        """How many commits the table has had."""
        if self.lake == "delta":
            return len(list((self.folder / name / "_delta_log").glob("*.json")))
        return self.spark.read.format("iceberg").load(f"{self.folder / name}#snapshots").count()

    def sql(self) -> str:
        """The table's name in SQL."""
        return self.table.sql

    def delete(self, condition: str) -> None:
        """Deletes rows of the table, as another user of it does."""
        self.spark.sql(f"delete from {self.sql()} where {condition}")

    @property
    def table(self) -> LakeTable:
        """The table, known to the session."""
        kind = {"delta": DeltaTable, "iceberg": IcebergTable}[self.lake]
        found = kind(Options("the test", Connector(self.lake, (("path", self.variables["table"]),))))
        found.use(self.spark)
        return found

    def refused(self, **arguments: Any) -> VscRuntimeError:
        from vsc.runtime.spark.query.running_query import QueryFailedError

        with pytest.raises((VscRuntimeError, QueryFailedError)) as raised:
            self.run(**arguments)
        error = raised.value
        found = error.error if isinstance(error, QueryFailedError) else error
        assert isinstance(found, VscRuntimeError)
        return found
