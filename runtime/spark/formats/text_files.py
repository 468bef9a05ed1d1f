"""What reads files of text, such as JSON and CSV, whoever hands over their lines."""

from __future__ import annotations

from vsc.plan.nodes import Column, Node, Source
from vsc.plan.types import BINARY, STRING, ArrayType, MapType, StructType, other_key
from vsc.runtime.errors import SourceError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.formats.csv import CsvCells
from vsc.runtime.spark.formats.csv_dialect import CsvDialect
from vsc.runtime.spark.formats.source_columns import PART, START, TIME
from vsc.runtime.spark.formats.text_formats import TEXT_FORMATS
from vsc.runtime.spark.formats.text_lines import TextLines
from vsc.runtime.spark.formats.text_rows import Wanted
from vsc.runtime.spark.formats.zones import declared_zone

__all__ = ["check_text", "declared_formats", "formatted_columns", "line_reader"]

_FORMATS = {"timestampformat": "timestamp", "dateformat": "date"}
"""Spark's options, in lower case, for how times are written, and the type that each is for."""


def check_text(source: Source, options: Options) -> None:
    """Refuses columns that JSON or CSV, or a declared format, cannot have. SourceError."""
    form, formats = options.text("format"), declared_formats(options)
    for column in source.columns:
        nested = isinstance(column.type, ArrayType | MapType | StructType)
        if nested and form == "csv":
            raise SourceError(f"{options.place}: column {column.name!r} is {column.type}, which a CSV cell cannot hold")
        if form == "json" and (key := other_key(column.type)) is not None:
            raise SourceError(
                f"{options.place}: column {column.name!r} is {column.type}, and the keys of JSON are texts, not {key}",
                "declare the keys as string, and cast them in an expression",
            )
        for name, type in _FORMATS.items():
            if nested and name in formats and type in str(column.type):
                raise SourceError(
                    f"{options.place}: column {column.name!r} is {column.type}, and a format is for columns of {type}",
                    f"declare the {type} in it as string, and read it in an expression",
                )


def declared_formats(options: Options) -> dict[str, str]:
    """Spark's options of a source for how times are written, by their names in lower case."""
    return {name.lower(): value for name, value in options.spark.items() if name.lower() in _FORMATS}


def formatted_columns(source: Source, options: Options) -> frozenset[str]:
    """The columns that are written in a format of their own."""
    types = {_FORMATS[name] for name in declared_formats(options)}
    return frozenset(column.name for column in source.columns if str(column.type) in types)


def line_reader(node: Node, columns: tuple[Column, ...], options: Options, raw: bool) -> CsvCells | TextLines:
    """What makes rows of `columns` of lines, each with its file and what else applies of `source_columns`.

    `raw`: unreadable rows come with their text.
    """
    source = node.source
    others, zone = (PART, START, *([TIME] if source.timestamp is None else [])), declared_zone(options)
    if (form := options.text("format")) in TEXT_FORMATS:
        wanted = Wanted(columns, frozenset(c.name for c in node.schema.key), zone)
        return TextLines(TEXT_FORMATS[form].reader(wanted, options), others, columns != source.columns)
    dialect, named = CsvDialect.of(options.spark, options.place), options.get("missing_columns") != "null"
    blank = frozenset(column.name for column in source.columns if column.type not in (STRING, BINARY))
    return CsvCells(columns, dialect, options.place, others, texts=raw, zone=zone, blank=blank, named=named)
