"""A single file of a source, read without Spark as a query reads it: for tests of topologies.

Guarantees: the rows, their order and what is wrong with them are those of a query. What only Spark can read is refused.
Not for finding files, and not for folders.
"""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from vsc.plan.connectors import FACTS
from vsc.plan.connectors.files import FILE_OPTIONS, of_files
from vsc.plan.nodes import Node
from vsc.plan.types import STRING
from vsc.runtime.errors import SourceError
from vsc.runtime.operators.source.partition_folders import folder_values
from vsc.runtime.operators.source.rows import SourceRows
from vsc.runtime.records import Origin
from vsc.runtime.spark.base.options import Options, refuse, resolved_where
from vsc.runtime.spark.formats.csv_dialect import CsvDialect
from vsc.runtime.spark.formats.declared_times import with_times
from vsc.runtime.spark.formats.parquet_files import ParquetFiles
from vsc.runtime.spark.formats.source_columns import PART, START, TIME
from vsc.runtime.spark.formats.source_rows import source_rows
from vsc.runtime.spark.formats.text_files import check_text, formatted_columns, line_reader
from vsc.runtime.spark.formats.text_formats import TEXT_FORMATS
from vsc.runtime.spark.formats.zones import check_zone
from vsc.runtime.values import arrow_type

__all__ = ["read"]

_TEXT = ("csv", *TEXT_FORMATS)
_BOM = b"\xef\xbb\xbf"
_PACKED = {".gz": gzip.decompress, ".bz2": bz2.decompress}
_PACKED_FOR_SPARK = (".deflate", ".lz4", ".snappy", ".zst")
_WITHOUT_EFFECT = FILE_OPTIONS | {"mergeschema"}
"""Spark's options, in lower case, that say nothing about the rows of a single parquet file."""
_INSTEAD = "write the rows into the test"


def read(node: Node, variables: Mapping[str, str], path: str, time: int | None) -> SourceRows:
    """The rows of the file at `path`. `time`: theirs, in ms, where a query takes that of the file.

    Raises SourceError, ConfigurationError or OSError.
    """
    options = resolved_where(lambda name: name != "path" and not of_files(name), node, variables)
    check_zone(options)
    refuse(options, "source", SourceError)
    _check_time(node, options, time)
    form = options.text("format")
    if form in _TEXT:
        batches = list(_text(node, options, path, time or 0))
    elif form == "parquet":
        batches = list(_parquet(node, options, path, time or 0))
    else:
        raise SourceError(f"{options.place}: only Spark can read files of the format {form!r}", _INSTEAD)
    origin = Origin(node.name, node.source.rank, "")
    if not batches:
        columns = tuple(pa.nulls(0, arrow_type(column.type)) for column in node.source.columns)
        batches = [pa.RecordBatch.from_arrays(list(columns), names=[f"_vsc_column_{i}" for i in range(len(columns))])]
    (rows,) = pa.Table.from_batches(batches).combine_chunks().to_batches() or batches[:1]
    return source_rows(node.source, origin, rows, 1, folder_values(path, node.source.columns))


def _check_time(node: Node, options: Options, time: int | None) -> None:
    untimed = node.source.timestamp is None and FACTS["files"].untimed(dict(options.connector.options)) != ""
    if untimed and time is None:
        raise SourceError(
            f"{options.place} has no `timestamp` clause: a query gives its rows the time at which the file was written",
            "give their time in the test: `timestamp`",
        )
    if not untimed and time is not None:
        raise SourceError(f"{options.place} reads the times of its rows from the file", "remove `timestamp`")


def _text(node: Node, options: Options, path: str, time: int) -> Iterable[pa.RecordBatch]:
    check_text(node.source, options)
    formatted = formatted_columns(node.source, options)
    columns = tuple(replace(c, type=STRING) if c.name in formatted else c for c in node.source.columns)
    lines = pa.array(_lines(_unpacked(path, options), options), pa.binary())
    places = [(PART, pa.scalar(quote(path))), (START, pa.scalar(0, pa.int64()))]
    if node.source.timestamp is None:
        places.append((TIME, pa.scalar(time, pa.int64())))
    arrays = [lines, *(pa.repeat(value, len(lines)) for _, value in places)]
    batch = pa.RecordBatch.from_arrays(arrays, names=["value", *(name for name, _ in places)])
    rows = line_reader(node, columns, options, True)([batch])
    declared = {i: c for i, c in enumerate(node.source.columns) if c.name in formatted}
    return (with_times(one, declared, options) for one in rows) if declared else rows


def _unpacked(path: str, options: Options) -> bytes:
    """What is in the file, as Spark unpacks it by its name."""
    data, suffix = Path(path).read_bytes(), Path(path).suffix.lower()
    if suffix in _PACKED_FOR_SPARK:
        raise SourceError(f"{options.place}: only Spark can unpack {path}", "unpack it, or pack it as .gz or .bz2")
    try:
        return _PACKED[suffix](data) if suffix in _PACKED else data
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise SourceError(f"{options.place}: {path} cannot be unpacked: {error}", "pack the file again") from None


def _lines(data: bytes, options: Options) -> list[bytes]:
    """The texts that Spark would cut a file into."""
    given = {name.lower(): value for name, value in options.spark.items()}
    end = given.get("linesep", "").encode()
    if options.text("format") == "csv":
        end = CsvDialect.of(options.spark, options.place).line_end.encode()
    elif given.get("multiline", "").lower() == "true":
        return [data]
    data = data.removeprefix(_BOM)
    if not end:
        return data.splitlines()  # of bytes: at \n, \r and \r\n alone
    lines = data.split(end)
    return lines if lines[-1] else lines[:-1]


def _parquet(node: Node, options: Options, path: str, time: int) -> Iterable[pa.RecordBatch]:
    for name in options.spark:
        if name.lower() not in _WITHOUT_EFFECT:
            raise SourceError(f"{options.place}: only Spark can read parquet files with {name!r}", _INSTEAD)
    columns = node.source.columns
    names, values = [PART], [pa.array([quote(path)])]
    if node.source.timestamp is None:
        names, values = [*names, TIME], [*values, pa.array([time], pa.int64())]
    files = ParquetFiles(columns, frozenset(column.name for column in columns), by_case=False)
    return files([pa.RecordBatch.from_arrays(values, names=names)])
