"""What the tests with PostgreSQL share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from servers.postgres import PostgresServer
from tests.runtime.spark.support import compiled, run_once, write_json
from vsc.runtime.errors import VscRuntimeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LOGIN", "Case"]

LOGIN = "'user' = 'vsc', 'password' = '${pw}'"


class Case:
    """A topology in a folder, and its runs."""

    def __init__(self, text: str, folder: Path, server: PostgresServer, spark: SparkSession) -> None:
        self.plan, self.folder, self.server, self.spark = compiled(text), folder, server, spark
        self.variables = {"in": str(folder / "in"), "out": str(folder / "out"), "url": server.url()}
        self.variables["pw"] = server.password
        self.checkpoint: Path | None = None
        """Where it lies if not in the folder."""

    def file(self, number: int, *rows: dict[str, Any], folder: str = "in") -> None:
        write_json(self.folder / folder / f"{number}.json", rows, number)

    def run(self, **arguments: Any) -> list[Any]:
        return run_once(
            self.plan,
            self.spark,
            self.checkpoint or self.folder / "ck",
            variables=self.variables,
            partitions=2,
            **arguments,
        )

    def refused(self, **arguments: Any) -> VscRuntimeError:
        from vsc.runtime.spark.query.running_query import QueryFailedError

        with pytest.raises((VscRuntimeError, QueryFailedError)) as raised:
            self.run(**arguments)
        error = raised.value
        found = error.error if isinstance(error, QueryFailedError) else error
        assert isinstance(found, VscRuntimeError)
        assert self.server.password not in str(found)
        return found
