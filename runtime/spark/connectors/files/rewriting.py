"""Writes the rows of several files of a sink into one, on Spark: in the order of the files, each value as it is.

JSON and CSV are copied by lines, whatever they say. Parquet and ORC are read and written; a column that only some files
have is null in the rows of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.files.small_files import PublishedFile

__all__ = ["Rewriting"]

_TEXT = ("csv", "json")
_FILE, _BLOCK, _ROW = _ORDER = ("_vsc_file", "_vsc_block", "_vsc_row")
"""Where a row stands: its file, by name; its place in it, of a block, and of the row in that."""
_LINE = "_vsc_line"
_WHOLE = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
"""A session's defaults for these would lose rows."""
_ONE_FILE = {"maxRecordsPerFile": "0"}
"""Whatever the session's default is."""


class Rewriting:
    """The files of the sink with these options."""

    def __init__(self, spark: SparkSession, options: Options) -> None:
        self._spark = spark
        self._form = options.text("format")
        self._options = options.spark
        lower: Mapping[str, str] = {name.lower(): value for name, value in self._options.items()}
        self._header = self._form == "csv" and lower.get("header", "true").lower() == "true"
        self._lines = {"lineSep": lower.get("linesep", "\n")}  # without it, Spark takes a \r in a value for an end
        codec = lower.get("compression", lower.get("codec"))
        self._packed = {} if codec is None else {"compression": codec}

    @property
    def has_header(self) -> bool:
        """Whether each file begins with a header."""
        return self._header

    def alike(self, run: Sequence[PublishedFile], root: str, written: str) -> Sequence[PublishedFile]:
        """The longest part of a run whose files, by their names below `root`, begin with the header of the file
        `written`: the first line of another one may be a row, of a time when the sink had other options."""
        if not self._header:
            return run
        lines = _numbered(self._read("text", [written, *(f"{root}/{file.name}" for file in run)]))
        first = lines.where(F.col(_LINE) == 1).select(_FILE, "value").collect()
        found = {row[_FILE]: row["value"] for row in first}
        header = found.get(written.rpartition("/")[2])
        parts = groupby(run, lambda file: header is not None and found.get(file.name.rpartition("/")[2]) == header)
        return max((list(part) for same, part in parts if same), key=len, default=[])

    def rewrite(self, paths: Sequence[str], folder: str) -> None:
        """Writes one file into a folder that is not there yet."""
        rows = self._read("text" if self._form in _TEXT else self._form, paths)
        if self._header:
            is_first = F.col(_FILE) == paths[0].rpartition("/")[2]
            rows = _numbered(rows).where((F.col(_LINE) > 1) | is_first).drop(_LINE)
        writer = rows.sortWithinPartitions(*_ORDER).drop(*_ORDER).write
        if self._form in _TEXT:
            writer.options(**self._lines, **self._packed, **_ONE_FILE).text(folder)
        else:
            writer.format(self._form).options(**self._options, **_ONE_FILE).save(folder)

    def _read(self, form: str, paths: Sequence[str]) -> DataFrame:
        """The rows of files in one partition, each with its place."""
        own = self._lines if form == "text" else {"mergeSchema": "true"}
        rows = self._spark.read.format(form).options(**own, **_WHOLE).load(list(paths))
        place = {
            _FILE: F.substring_index(F.input_file_name(), "/", -1),
            _BLOCK: F.input_file_block_start(),
            _ROW: F.monotonically_increasing_id(),
        }
        return rows.withColumns(place).coalesce(1)


def _numbered(lines: DataFrame) -> DataFrame:
    """The lines with their numbers in their files, from 1."""
    return lines.withColumn(_LINE, F.row_number().over(Window.partitionBy(_FILE).orderBy(_BLOCK, _ROW)))
