"""The rows of files of text, such as JSON and CSV: Spark finds the files and reads their lines, the workers read them.

Guarantees: those of `file_rows`. Only what is written in a format that a source declares (`timestampFormat`,
`dateFormat`) is read by Spark once more: Java knows its patterns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from vsc.plan.connectors.files import of_files
from vsc.plan.nodes import Column as DeclaredColumn
from vsc.plan.nodes import Node, Source
from vsc.plan.types import STRING
from vsc.runtime.spark.base.ddl import ddl
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.file_rows import file_metadata, loaded
from vsc.runtime.spark.formats.csv import CsvCells
from vsc.runtime.spark.formats.csv_dialect import CsvDialect
from vsc.runtime.spark.formats.java_zones import timestamp_in_zone
from vsc.runtime.spark.formats.source_columns import BAD, CORRUPT, PART, START, TIME
from vsc.runtime.spark.formats.text_files import declared_formats, formatted_columns, line_reader
from vsc.runtime.spark.formats.text_lines import TextLines

__all__ = ["text_reader", "text_rows"]

_SHOWN = 80


def text_reader(node: Node, options: Options, raw: bool) -> CsvCells | TextLines | None:
    """What reads the lines of `text_rows`; None if these are rows already. `raw`: unreadable rows come with their
    text."""
    source = node.source
    return None if formatted_columns(source, options) else line_reader(node, source.columns, options, raw)


def text_rows(spark: SparkSession, node: Node, options: Options, raw: bool) -> DataFrame:
    """The lines of a source's files, each with the file that it is from; the rows, if the source declares formats."""
    source = node.source
    lines = _lines(spark, source, options)
    formatted = formatted_columns(source, options)
    if not formatted:
        return lines
    columns = tuple(replace(c, type=STRING) if c.name in formatted else c for c in source.columns)
    reader = line_reader(node, columns, options, True)
    types: list[tuple[str, object]] = [(f"_vsc_column_{i}", c.type) for i, c in enumerate(columns)]
    types += [(PART, "string"), (START, "bigint"), *([(TIME, "bigint")] if source.timestamp is None else [])]
    rows = lines.mapInArrow(reader, ddl([*types, (BAD, "string"), (CORRUPT, "string")]))
    return _typed(rows, source, options, formatted)


def _lines(spark: SparkSession, source: Source, options: Options) -> DataFrame:
    given = {name.lower(): value for name, value in options.spark.items()}
    own: list[tuple[str, str]] = []
    if options.text("format") == "csv":
        own.append(("lineSep", CsvDialect.of(options.spark, options.place).line_end))
    elif given.get("multiline", "").lower() == "true":
        own.append(("wholetext", "true"))
    elif "linesep" in given:
        own.append(("lineSep", given["linesep"]))
    to_spark = tuple(pair for pair in options.connector.spark_options if of_files(pair[0]))
    passed = replace(options.connector, spark_options=(*to_spark, *own))
    frame = loaded(spark.readStream.format("text"), replace(options, connector=passed))
    return frame.select(F.col("value").cast("binary"), *file_metadata(frame, source.timestamp is None))


def _typed(rows: DataFrame, source: Source, options: Options, formatted: frozenset[str]) -> DataFrame:
    """Rows in which the formatted columns are texts, with these read."""
    formats, zone = declared_formats(options), options.get("time_zone")
    values, problems = [], [F.col(BAD)]
    for i, column in enumerate(source.columns):
        cell = F.col(f"_vsc_column_{i}")
        value = _read(cell, str(column.type), formats, zone) if column.name in formatted else cell
        if column.name in formatted:
            problems.append(F.when(cell.isNotNull() & value.isNull(), _misfit(column, cell)))
        values.append(value.alias(column.name))
    problem = F.coalesce(*problems)
    others = [name for name in (PART, START, TIME) if name in rows.columns]
    return rows.select(*values, *others, problem.alias(BAD), CORRUPT)


def _read(text: Column, type: str, formats: Mapping[str, str], zone: object) -> Column:
    """The time of a text in a declared format, in the years that a text may have."""
    if type == "timestamp" and zone is not None:
        found = timestamp_in_zone(text, str(zone), formats)
    else:
        pattern = formats["timestampformat" if type == "timestamp" else "dateformat"]
        found = F.try_to_timestamp(text, F.lit(pattern)).cast(type)
    return F.when(F.year(found).between(1, 9999), found)


def _misfit(column: DeclaredColumn, text: Column) -> Column:
    """What `misfits.misfit` says, in Spark."""
    cut = F.when(F.length(text) > _SHOWN, F.concat(F.left(text, F.lit(_SHOWN - 3)), F.lit("..."))).otherwise(text)
    return F.concat(F.lit(f"column '{column.name}' ({column.type}) cannot hold '"), cut, F.lit("'"))
