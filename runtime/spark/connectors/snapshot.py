"""What a source takes only once: its rows, written into the checkpoint as parquet and read from there.

Guarantees: a query begins with a whole snapshot, and one that restarts reads the one that it began with. On a local
disk, a snapshot appears in one rename; elsewhere, where a folder's may be many, it is whole once Spark has marked it.
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

__all__ = ["kept_rows", "mark_whole", "take_once", "write_rows"]

ROWS_A_FILE = 1 << 20
_MARKS = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
_MARK = "_SUCCESS"


def take_once(spark: SparkSession, place: str, path: str, begun: bool, write: Callable[[str], None]) -> None:
    """Has `write` write the snapshot of the source at `place` to the path that it is given, unless it is in `path`.

    `begun`: it was there before; CheckpointError if it is missing then.
    """
    kept = Files(spark, path)
    if kept.exists("" if begun or kept.is_local else _MARK):
        return
    if begun:
        raise CheckpointError(
            f"{place}: its snapshot, {kept.root}, is missing from the checkpoint", "restore the folder"
        )
    if not kept.is_local:
        kept.delete("")
        write(kept.root)
        return
    folder, _, name = path.rpartition("/")
    aside = f"{name}-{uuid.uuid4().hex}"
    above = Files(spark, folder)
    try:
        write(above.path(aside))
    except Exception:
        above.delete(aside)
        raise
    above.rename(aside, name)


def mark_whole(files: Files, name: str) -> None:
    """Marks a snapshot that has been copied to the folder `name`."""
    files.overwrite(f"{name}/{_MARK}", "")


def write_rows(rows: DataFrame, path: str) -> None:
    """Writes a snapshot, and marks it when it is whole."""
    rows.write.option("maxRecordsPerFile", ROWS_A_FILE).option(_MARKS, "true").parquet(path)


def kept_rows(spark: SparkSession, source: Source, place: str, path: str, read: frozenset[str]) -> DataFrame:
    """The rows of the snapshot in `path`, of the source at `place`, as `file_rows` gives them."""
    Files(spark, path).make()  # not there yet when a plan is only explained
    files = Connector("files", (("path", path), ("format", "parquet")))
    return file_rows(spark, source, Options(place, files), read, marked=True)
