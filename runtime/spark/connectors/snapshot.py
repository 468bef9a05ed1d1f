"""What a source takes only once: its rows, written into the checkpoint as parquet and read from there.

Guarantees: a snapshot appears whole, in one rename; a query that restarts reads the one that it began with.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from vsc.plan.nodes import Connector, Source
from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.file_rows import file_rows

__all__ = ["ROWS_A_FILE", "kept_rows", "take_once"]

ROWS_A_FILE = 1 << 20


def take_once(spark: SparkSession, options: Options, begun: bool, write: Callable[[str], None]) -> None:
    """Has `write` write the snapshot to the path that it is given, unless it is in `options.kept`.

    `begun`: it was there before; CheckpointError if it is missing then.
    """
    folder, _, name = options.kept.rpartition("/")
    kept = Files(spark, folder)
    if kept.exists(name):
        return
    if begun:
        raise CheckpointError(
            f"{options.place}: its snapshot, {kept.path(name)}, is missing from the checkpoint", "restore the folder"
        )
    aside = f"{name}-{uuid.uuid4().hex}"
    try:
        write(kept.path(aside))
    except Exception:
        kept.delete(aside)
        raise
    kept.rename(aside, name)


def kept_rows(spark: SparkSession, source: Source, options: Options, read: frozenset[str]) -> DataFrame:
    """The rows of the snapshot in `options.kept`, as `file_rows` gives them."""
    Files(spark, options.kept).make()  # not there yet when a plan is only explained
    files = Connector("files", (("path", options.kept), ("format", "parquet")))
    return file_rows(spark, source, Options(options.place, files), read, marked=True)
