"""The rows of files for Spark: declared columns by name, and what stage 0 needs beside them.

Guarantees: one file is one source partition, read by one task from its beginning to its end; columns are bound by
name; a row that does not fit is marked, not lost. Not for keys, event time and filters: that is stage 0's.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from vsc.plan.connectors.files import FILE_OPTIONS
from vsc.plan.nodes import Column as DeclaredColumn
from vsc.plan.nodes import Source
from vsc.runtime.spark.base.ddl import ddl, quoted
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.base.paths import logged_url
from vsc.runtime.spark.formats.held_types import HeldTypes
from vsc.runtime.spark.formats.parquet_files import ParquetFiles
from vsc.runtime.spark.formats.source_columns import BAD, INDEX, PART, START, TIME
from vsc.runtime.spark.session.local_files import listing_a_source
from vsc.runtime.spark.session.session import frozen_session

__all__ = ["file_metadata", "file_paths", "file_rows", "files_there", "held_types", "loaded", "parquet_files"]

MAX_BYTES = 128 << 20
"""How many bytes of files an epoch takes from a source that has no bound of its own; at least one file."""

_BINARY = "path string, modificationTime timestamp, length bigint, content binary"
"""The columns of Spark's format of whole files."""
_OPENING = 4 << 20
"""What opening a file costs beside reading it, in bytes, for Spark that makes tasks of files (its own default)."""
_READING = ("spark.sql.parquet.", "spark.sql.legacy.parquet.")
"""What begins the settings of how Spark reads parquet."""
_WRITING = (
    "spark.sql.parquet.output", "spark.sql.parquet.compression.", "spark.sql.parquet.writeLegacyFormat",
    "spark.sql.parquet.fieldId.write.",
)  # fmt: skip
"""What begins the settings among them that are about writing only: vsc sets one itself, and Spark one if its package
for object stores is there."""


def file_rows(
    spark: SparkSession, source: Source, options: Options, read: frozenset[str], marked: bool = False
) -> DataFrame:
    """The rows of parquet and ORC files that Spark reads, see `OpenSource.rows`; a column that nothing reads is null.

    `marked`: the files have a column `BAD`. `source` may declare `TIME`, the rows' own times.
    """
    form = options.text("format")
    columns: list[tuple[str, object]] = [(c.name, c.type) for c in source.columns]
    if marked:
        columns.append((BAD, "string"))
    frame = loaded(spark.readStream.format(form).schema(ddl(columns)), options)
    chosen = [_declared(c, c.name in read) for c in source.columns]
    timed = source.timestamp is None and all(c.name != TIME for c in source.columns)
    chosen += file_metadata(frame, timed, form == "parquet")
    if marked:
        chosen.append(F.col(BAD))
    return frame.select(*chosen)


def parquet_files(spark: SparkSession, source: Source, options: Options, read: frozenset[str]) -> ParquetFiles | None:
    """What reads the files of a source in the workers; None where Spark reads them.

    Spark does where a worker may not see the files, and where it has been told how to read them: by an option of the
    source, or by a setting.
    """
    given = {name.lower(): value for name, value in options.spark.items()}
    if options.text("format") != "parquet" or given.keys() - FILE_OPTIONS:
        return None
    if given.get("recursivefilelookup", "true").lower() != "true" or not Files(spark, options.text("path")).is_local:
        return None
    told = (name for name in spark.conf.getAll if name.startswith(_READING) and not name.startswith(_WRITING))
    if any(told) or _is_encrypted(spark):
        return None
    return ParquetFiles(source.columns, read, _by_case(spark))


def held_types(spark: SparkSession, source: Source, options: Options, read: frozenset[str]) -> HeldTypes | None:
    """What looks in the workers at the types of files that Spark reads; None if these may not see them."""
    if not Files(spark, options.text("path")).is_local or _is_encrypted(spark):
        return None
    return HeldTypes(options.text("format"), tuple(c for c in source.columns if c.name in read), _by_case(spark))


def _is_encrypted(spark: SparkSession) -> bool:
    return spark._jsc.hadoopConfiguration().get("parquet.crypto.factory.class") is not None


def _by_case(spark: SparkSession) -> bool:
    """Whether names are case-sensitive."""
    return spark.conf.get("spark.sql.caseSensitive", "false") == "true"


def file_paths(spark: SparkSession, source: Source, options: Options) -> DataFrame:
    """The files of a source, each a row: `PART` and, without a timestamp clause, `TIME`. Nothing of them is read.

    A task reads several of them, one after the other: as many tasks are made as there are cores, by the files' sizes.
    """
    packing = frozen_session(spark)
    packing.conf.set("spark.sql.files.openCostInBytes", str(_OPENING))
    frame = loaded(packing.readStream.format("binaryFile").schema(_BINARY), options)
    part, _, *time = file_metadata(frame, source.timestamp is None)
    return frame.select(part, *time)


def files_there(spark: SparkSession, options: Options) -> Iterator[tuple[str, int]]:
    """The files that a source would read now: the URL of each, as Spark logs it, and when it was changed, in ms."""
    frame = loaded(spark.read.format("binaryFile").schema(_BINARY), options)
    known = frame.metadataColumn("_metadata")
    for row in frame.select(known["file_path"], F.unix_millis(known["file_modification_time"])).toLocalIterator():
        yield logged_url(row[0]), row[1]


def _declared(column: DeclaredColumn, read: bool) -> Column:
    """A declared column; null if it stays in the files."""
    return F.col(quoted(column.name)) if read else F.lit(None).cast(str(column.type)).alias(column.name)


def loaded(reader: DataFrameReader | DataStreamReader, options: Options) -> DataFrame:
    """The files of a source."""
    # Every file below the folder is data, and one that is new to us is new however old it is. What Spark has listed
    # but not taken it keeps, however little it is (ratio 0), so that `file_input` sees it.
    defaults = {"recursiveFileLookup": "true", "maxFileAge": "36500d", "discardCachedInputRatio": "0"}
    given = {name.lower() for name in options.spark}
    if not given & {"maxfilespertrigger", "maxbytespertrigger"}:
        defaults["maxBytesPerTrigger"] = str(MAX_BYTES)
    own = {name: value for name, value in defaults.items() if name.lower() not in given}
    # A file that is gone is seen by `gone_files`: Spark must not leave it out while it reads.
    passed = {name: value for name, value in options.spark.items() if name.lower() != "ignoremissingfiles"}
    with listing_a_source(reader._spark):  # Spark looks for folders that are columns
        return reader.options(**own, **passed).load(options.text("path"))


def file_metadata(frame: DataFrame, timed: bool, indexed: bool = False) -> list[Column]:
    """Where a row is from: `PART` and `INDEX`, or `START`; and `TIME`."""
    known = frame.metadataColumn("_metadata")  # by its place: a declared column may have this name
    path = known["file_path"]
    if indexed:
        index = known["row_index"]
        columns = [F.when(index == 0, path).alias(PART), index.alias(INDEX)]
    else:
        columns = [path.alias(PART), known["file_block_start"].alias(START)]
    if timed:
        columns.append(F.unix_millis(known["file_modification_time"]).alias(TIME))
    return columns
