"""A streaming DataFrame for each source: declared columns by name, and what the source task needs beside them.

Guarantees: one file is one source partition, read by one task from its beginning to its end; columns are bound by
name; a row that does not fit is marked, not lost. Not for keys, event time and filters: that is the source task's.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.plan.nodes import Column as DeclaredColumn
from vsc.plan.nodes import Node, Plan, Source
from vsc.plan.types import ArrayType, MapType, StructType
from vsc.runtime.errors import SourceError
from vsc.runtime.spark.csv import REASON, CsvCells
from vsc.runtime.spark.csv_dialect import CELL_OPTIONS, CsvDialect
from vsc.runtime.spark.hadoop import Files, is_local, local_path, usable
from vsc.runtime.spark.options import Options
from vsc.runtime.spark.stage_zero import BAD, CORRUPT, INDEX, PART, START, TIME
from vsc.runtime.spark.zones import OPTION, check_zone, known_zone, timestamp_in_zone

__all__ = ["FILE_OPTIONS", "FORMATS", "check_sources", "empty_sources", "quoted", "source_frame"]

FORMATS = ("parquet", "json", "csv", "orc")
_LATER = {"kafka", "delta", "jdbc"}
_TEXT_FORMATS = {"timestampformat", "dateformat"}
FILE_OPTIONS = {
    "maxfilespertrigger", "maxbytespertrigger", "latestfirst", "filenameonly", "maxfileage", "cleansource",
    "sourcearchivedir", "pathglobfilter", "modifiedbefore", "modifiedafter", "recursivefilelookup",
}  # fmt: skip
"""Spark's options, in lower case, that say which files are read, not how."""
MAX_BYTES = 128 << 20
"""How many bytes of files an epoch takes from a source that has no bound of its own; at least one file."""


def quoted(name: str) -> str:
    """A column's name as Spark SQL writes it."""
    return "`" + name.replace("`", "``") + "`"


def check_sources(plan: Plan, default_local: bool = True) -> None:
    """Refuses what can be refused without Spark: connectors that are not there, local paths that do not exist.

    `default_local`: paths without a scheme are on this machine.
    """
    for node in plan.nodes:
        if not isinstance(node.operation, Source):
            continue
        options = Options.of_source(node)
        kind = node.operation.connector.kind
        if kind == "memory":
            raise SourceError(
                f"{options.place} reads from memory (), which only the test driver can fill",
                "give it another connector, files for example, or run it with vsc.testing.TopologyTestDriver",
            )
        if kind in _LATER:
            raise SourceError(
                f"{options.place} reads from {kind}, which this version of vsc cannot run yet",
                "read from files for now",
            )
        if kind not in ("files", "rate"):
            raise SourceError(f"{options.place} reads from {kind!r}, an unknown connector")
        if kind == "files":
            _check_files(node, options, default_local)
        else:
            _check_rate(options)


def _check_files(node: Node, options: Options, default_local: bool) -> None:
    form = options.text("format")
    if form not in FORMATS:
        raise SourceError(f"{options.place} has format {form!r}, which this version of vsc cannot read", _formats())
    path = options.text("path")
    if is_local(path, default_local) and not glob.glob(local_path(path)) and not os.path.exists(local_path(path)):
        raise _missing(options, path)
    if options.get("missing_columns") not in (None, "error", "null"):
        raise SourceError(
            f"{options.place}: missing_columns is 'error' or 'null', not {options.get('missing_columns')!r}"
        )
    check_zone(options)
    if form == "csv":
        _check_csv(node, options)


def _check_rate(options: Options) -> None:
    rows = options.text("rows_per_second")
    if not (rows.isdecimal() and int(rows) > 0):
        raise SourceError(
            f"{options.place}: rows_per_second is a whole number of at least 1, not {rows!r}", "give one, such as 10"
        )


def _formats() -> str:
    return "the formats are " + ", ".join(FORMATS)


def _missing(options: Options, path: str) -> SourceError:
    return SourceError(
        f"{options.place}: there is no file or folder {path!r}",
        "make it, or correct the path; relative paths are relative to the working directory",
    )


def _check_csv(node: Node, options: Options) -> None:
    assert isinstance(node.operation, Source)
    CsvDialect.of(options.spark, options.place)
    for column in node.operation.columns:
        if isinstance(column.type, ArrayType | MapType | StructType):
            raise SourceError(f"{options.place}: column {column.name!r} is {column.type}, which a CSV cell cannot hold")
    for name, value in options.spark.items():
        if name.lower() == "header" and value.lower() != "true":
            raise SourceError(f"{options.place}: CSV columns go by the header, it cannot be switched off")
        if name.lower() not in CELL_OPTIONS | _TEXT_FORMATS | FILE_OPTIONS:
            raise SourceError(
                f"{options.place}: vsc does not support the option {name!r} for CSV",
                "those it can are " + ", ".join(sorted(CELL_OPTIONS | _TEXT_FORMATS | FILE_OPTIONS)),
            )


def source_frame(spark: SparkSession, node: Node, read: frozenset[str]) -> DataFrame:
    """The rows of a source: declared columns, in order, then of `PART`, `START`, `TIME` and `BAD` those that apply.

    `read` names the declared columns that anything reads; where the format can leave the others in their files they
    are null.
    """
    source = node.operation
    assert isinstance(source, Source)
    options = Options.of_source(node)
    if source.connector.kind == "rate":
        return _rate(spark, source, options)
    path = options.text("path")
    with usable(SourceError, f"{options.place}: {path!r}", "correct the path, or what keeps it from being read"):
        found = Files(spark, path).matches()
    if not found:
        raise _missing(options, path)
    form = options.text("format")
    if form == "csv":
        return _csv(spark, source, options)
    return _structured(spark, source, options, form, read)


def _structured(spark: SparkSession, source: Source, options: Options, form: str, read: frozenset[str]) -> DataFrame:
    reader = spark.readStream.format(form)
    ddl = [f"{quoted(c.name)} {c.type}" for c in source.columns]
    if form == "json":
        ddl.append(f"{CORRUPT} string")
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
        reader = reader.option(OPTION, known_zone(spark, options))  # else it is the session's, when a batch is read
    frame = _load(reader.schema(", ".join(ddl)), options)
    columns = [_declared(c, form == "json" or c.name in read) for c in source.columns]
    columns += _metadata(source, frame, form == "parquet")
    if form == "json":
        columns.append(F.col(CORRUPT))
    return frame.select(*columns)


def _declared(column: DeclaredColumn, read: bool) -> Column:
    """A declared column; null if it stays in the files. (In JSON it decides whether the row can be read.)"""
    return F.col(quoted(column.name)) if read else F.lit(None).cast(str(column.type)).alias(column.name)


def _load(reader: object, options: Options) -> DataFrame:
    # Every file below the folder is data, and one that is new to us is new however old it is. What Spark has listed
    # but not taken it keeps, however little it is (ratio 0), so that `unread` sees it.
    defaults = {"recursiveFileLookup": "true", "maxFileAge": "36500d", "discardCachedInputRatio": "0"}
    given = {name.lower() for name in options.spark}
    if not given & {"maxfilespertrigger", "maxbytespertrigger"}:
        defaults["maxBytesPerTrigger"] = str(MAX_BYTES)
    for name, value in defaults.items():
        if name.lower() not in given:
            reader = reader.option(name, value)  # type: ignore[attr-defined]
    for name, value in options.spark.items():
        reader = reader.option(name, value)  # type: ignore[attr-defined]
    frame: DataFrame = reader.load(options.text("path"))  # type: ignore[attr-defined]
    return frame


def _metadata(source: Source, frame: DataFrame, indexed: bool = False) -> list[Column]:
    known = frame.metadataColumn("_metadata")  # by its place: a declared column may have this name
    path = known["file_path"]
    if indexed:
        index = known["row_index"]
        columns = [F.when(index == 0, path).alias(PART), index.alias(INDEX)]
    else:
        columns = [path.alias(PART), known["file_block_start"].alias(START)]
    if source.timestamp is None:
        columns.append(F.unix_millis(known["file_modification_time"]).alias(TIME))
    return columns


def _csv(spark: SparkSession, source: Source, options: Options) -> DataFrame:
    dialect = CsvDialect.of(options.spark, options.place)
    to_spark = tuple(pair for pair in options.connector.spark_options if pair[0].lower() in FILE_OPTIONS)
    passed = replace(options.connector, spark_options=(*to_spark, ("lineSep", dialect.line_end)))
    frame = _load(spark.readStream.format("text"), replace(options, connector=passed))
    lines = frame.select(F.col("value").cast("binary"), *_metadata(source, frame))
    names = tuple(c.name for c in source.columns)
    others = {PART: "string", START: "bigint"} | ({TIME: "bigint"} if source.timestamp is None else {})
    types = dict.fromkeys(names, "string") | others | {REASON: "string"}
    cells = CsvCells(names, dialect, options.place, tuple(others))
    text = lines.mapInArrow(cells, ", ".join(f"{quoted(name)} {type}" for name, type in types.items()))
    formats = {name.lower(): value for name, value in options.spark.items() if name.lower() in _TEXT_FORMATS}
    zone, typed, problems = known_zone(spark, options), [], [F.col(REASON)]
    for column in source.columns:
        cell = F.col(quoted(column.name))
        value = _cell(cell, column.type, formats, zone)
        if str(column.type) != "string":
            problems.append(F.when(cell.isNotNull() & value.isNull(), _misfit(column, cell)))
        typed.append(value.alias(column.name))
    return text.select(*typed, *map(F.col, others), F.coalesce(*problems).alias(BAD))


def _misfit(column: DeclaredColumn, cell: Column) -> Column:
    text = F.when(F.length(cell) > 80, F.concat(F.left(cell, F.lit(77)), F.lit("..."))).otherwise(cell)
    return F.concat(F.lit(f"column '{column.name}' ({column.type}) cannot hold '"), text, F.lit("'"))


def _cell(cell: Column, type: object, formats: dict[str, str], zone: str) -> Column:
    name = str(type)
    if name == "string":
        return cell
    if name == "timestamp" and zone != "UTC":
        return timestamp_in_zone(cell, zone, formats)
    if name == "timestamp" and "timestampformat" in formats:
        return F.try_to_timestamp(cell, F.lit(formats["timestampformat"]))
    if name == "date" and "dateformat" in formats:
        return F.try_to_timestamp(cell, F.lit(formats["dateformat"])).cast("date")
    return cell.try_cast(name)


def _rate(spark: SparkSession, source: Source, options: Options) -> DataFrame:
    wanted = {"value": "bigint", "at": "timestamp"}
    for column in source.columns:
        if wanted.get(column.name) != str(column.type):
            raise SourceError(
                f"{options.place}: rate has the columns value bigint and at timestamp, not {column.name} {column.type}"
            )
    # One task makes all rows, so that they are one source partition in the order of `value`.
    reader = spark.readStream.format("rate").option("numPartitions", "1")
    reader = reader.option("rowsPerSecond", options.text("rows_per_second"))
    for name, value in options.spark.items():
        reader = reader.option(name, value)
    frame = reader.load()
    columns = {"value": F.col("value"), "at": F.col("timestamp")}
    chosen = [columns[c.name].alias(c.name) for c in source.columns]
    if source.timestamp is None:
        chosen.append(F.unix_millis(F.col("timestamp")).alias(TIME))
    return frame.select(*chosen)


def empty_sources(spark: SparkSession, resolved: Plan, read: Mapping[str, int]) -> Iterator[str]:
    """A line for each files source that has no file; only of those that brought nothing is it asked."""
    for node in resolved.nodes:
        source = node.operation
        if isinstance(source, Source) and source.connector.kind == "files" and not read.get(node.name):
            options = Options.of_source(node)
            path = options.text("path")
            if not Files(spark, path).has_data():
                yield f"{options.place} has nothing to read: there are no files in {path!r}"
