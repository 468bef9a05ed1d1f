"""Parquet files that Spark finds and a Python worker reads: no row of them is ever a row of the JVM.

Guarantees: the rows of a file come in their order, each with its number in the file; a file is read row group by row
group, in batches of a bounded size; whatever the declared types hold is read (`parquet_types`), a file with anything
else is refused. Not for finding files, nor for which of them belong to an epoch: that is Spark's
(`connectors.file_rows`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vsc.plan.nodes import Column
from vsc.plan.types import ArrayType, MapType, StructType
from vsc.runtime.errors import SourceError
from vsc.runtime.spark.base.paths import local_path, logged_url
from vsc.runtime.spark.formats.file_errors import gone, mismatch, other_shape, type_text, unreadable
from vsc.runtime.spark.formats.misfits import misfit
from vsc.runtime.spark.formats.parquet_nested import leaves, nested_conversion
from vsc.runtime.spark.formats.parquet_types import Conversion, conversion, held_type
from vsc.runtime.spark.formats.source_columns import BAD, INDEX, PART, TIME
from vsc.runtime.values import arrow_type

__all__ = ["ParquetFiles"]

BATCH_ROWS, BATCH_BYTES = 1 << 17, 32 << 20
"""How much of a file is read at once: so many rows, or about as many as have so many bytes."""
_BUFFER = 1 << 20
"""How many bytes of a column are taken from the disk at once."""
_MODERN = (3, 0)
"""The first version of Spark that writes dates before 1582 as everyone else does."""
_FIRST = {
    pa.date32(): (-141_427, "date", 1582), pa.timestamp("us", "UTC"): (-2_208_988_800_000_000, "timestamp", 1900),
}  # fmt: skip
"""Where the calendar that older versions of Spark wrote in begins to agree with everyone else's: in a number, in
words."""

_Found = tuple[str, Conversion]
"""A column of a file: its name there, and how it becomes what is declared."""


@dataclass(frozen=True)
class ParquetFiles:
    """For `StageZeroTask`: what reads the files of a source, whose paths come in the rows' stead.

    `columns` are declared, and those of them in `read` are read; `by_case`: names are case-sensitive.
    """

    columns: tuple[Column, ...]
    read: frozenset[str]
    by_case: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the files in `PART`: the declared columns, `PART`, `INDEX`, `BAD` and, if given, `TIME`."""
        for batch in batches:
            times = batch.column(TIME) if TIME in batch.schema.names else None
            for i, url in enumerate(batch.column(PART).to_pylist()):
                yield from _rows(self, url, None if times is None else times[i])


def _rows(files: ParquetFiles, url: str, time: pa.Scalar | None) -> Iterator[pa.RecordBatch]:
    first = 0
    for columns, count, bad in _columns(files, url):
        part = pa.nulls(count, pa.string())
        if not first:
            part = pa.concat_arrays([pa.array([url]), part[1:]])
        arrays = [*columns, part, pa.array(np.arange(first, first + count)), bad]
        names = [*(f"_vsc_column_{i}" for i in range(len(columns))), PART, INDEX, BAD]
        if time is not None:
            arrays.append(pa.repeat(time, count))
            names.append(TIME)
        yield pa.RecordBatch.from_arrays(arrays, names=names)
        first += count


def _columns(files: ParquetFiles, url: str) -> Iterator[tuple[list[pa.Array], int, pa.Array]]:
    """The declared columns of a file, batch by batch, how many rows there are, and why a row cannot be read."""
    where = f"the file {logged_url(url)}"
    try:
        with pq.ParquetFile(
            unquote(local_path(url)),
            buffer_size=_BUFFER,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        ) as file:
            if not file.metadata.num_rows:
                return
            found = _found(files, file, where)
            names = [name for name, _ in found.values()]
            for batch in file.iter_batches(_step(file, names), columns=names, use_threads=False):
                columns = [_column(c, batch, found.get(c.name)) for c in files.columns]
                yield columns, batch.num_rows, _problems(files.columns, columns, batch, found)
    except FileNotFoundError:
        raise gone(where) from None
    except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise unreadable(where, str(error).strip().partition("\n")[0]) from error


def _step(file: pq.ParquetFile, names: list[str]) -> int:
    """How many rows to read at once."""
    first, rows = {name.partition(".")[0] for name in names}, int(file.metadata.num_rows)
    groups = map(file.metadata.row_group, range(file.num_row_groups))
    columns = (group.column(i) for group in groups for i in range(group.num_columns))
    size: int = sum(c.total_uncompressed_size for c in columns if c.path_in_schema.partition(".")[0] in first)
    return max(1, min(BATCH_ROWS, BATCH_BYTES * rows // max(1, size)))


def _found(files: ParquetFiles, file: pq.ParquetFile, where: str) -> dict[str, _Found]:
    """What a file has of the columns that are read: their names there, and how they become what is declared."""
    fold = str if files.by_case else str.lower
    there: dict[str, list[tuple[pa.Field, int]]] = {}
    leaf = 0
    for field in file.schema_arrow:
        there.setdefault(fold(field.name), []).append((field, leaf))
        leaf += _width(field.type)
    old = _has_old_calendar(file)
    conversions: dict[str, _Found] = {}
    for column in files.columns:
        same = there.get(fold(column.name), [])
        if column.name not in files.read or not same:
            continue
        if len(same) > 1:
            names = ", ".join(field.name for field, _ in same)
            raise unreadable(where, f"it has more than one column '{column.name}': {names}")
        ((field, leaf),) = same
        nested = isinstance(column.type, ArrayType | MapType | StructType)
        if pa.types.is_nested(held_type(field.type)) and not nested:
            raise other_shape(where, file.schema_arrow)
        if nested:
            convert = nested_conversion(field.type, column.type, fold)
        else:
            known = file.schema.column(leaf)
            held = pa.uuid() if known.logical_type.type == "UUID" else field.type
            convert = conversion(known.physical_type, held, column.type)
        if convert is None:
            raise mismatch(where, column.name, str(column.type), type_text(field.type))
        if old:
            convert = partial(_same_in_both_calendars, convert, where)
        conversions[column.name] = field.name, convert
    return conversions


def _column(declared: Column, batch: pa.RecordBatch, found: _Found | None) -> pa.Array:
    """A declared column of a batch of the file, which has it as `found`."""
    if found is None:
        return pa.nulls(batch.num_rows, arrow_type(declared.type))
    name, convert = found
    return convert(batch.column(name))


def _problems(
    declared: tuple[Column, ...], columns: list[pa.Array], batch: pa.RecordBatch, found: dict[str, _Found]
) -> pa.Array:
    """Why a row cannot be read: a value that its column cannot hold has become null."""
    why: dict[int, str] = {}
    for column, array in zip(declared, columns, strict=True):
        there = batch.column(found[column.name][0]) if column.name in found else None
        if there is not None and array.null_count > there.null_count:
            for row in np.flatnonzero(pc.and_(array.is_null(), there.is_valid())).tolist():
                why.setdefault(row, misfit(column, _text(there[row])))
    return pa.array(map(why.get, range(batch.num_rows)), pa.string()) if why else pa.nulls(batch.num_rows, pa.string())


def _text(value: pa.Scalar) -> str:
    try:
        return str(value.as_py())
    except (OverflowError, ValueError):  # a time that Python has no name for
        return f"{value.value} {value.type.unit}" if pa.types.is_timestamp(value.type) else "a time in it"


def _width(type: pa.DataType) -> int:
    """How many columns of the file a field of this type is made of."""
    type = held_type(type)
    if not pa.types.is_nested(type):
        return 1
    return sum(_width(type.field(i).type) for i in range(type.num_fields))


def _has_old_calendar(file: pq.ParquetFile) -> bool:
    """Whether the times of a file may have been written in another calendar."""
    notes = file.metadata.metadata or {}
    version = re.match(rb"(\d+)\.(\d+)", notes.get(b"org.apache.spark.version", b""))
    old = version is not None and tuple(map(int, version.groups())) < _MODERN
    return old or bool(notes.keys() & {b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"})


def _same_in_both_calendars(convert: Conversion, where: str, column: pa.Array) -> pa.Array:
    """The column converted; refuses times that are not the same in the other calendar as in ours."""
    converted = convert(column)
    for leaf in leaves(converted):
        if leaf.type not in _FIRST:
            continue
        first, name, year = _FIRST[leaf.type]
        number = pc.min(leaf.view(pa.int32() if name == "date" else pa.int64())).as_py()
        if number is not None and number < first:
            raise SourceError(
                f"{where} has a {name} of before {year}, in the calendar of an old version of Spark",
                "write 'datetimeRebaseMode' = 'LEGACY', 'int96RebaseMode' = 'LEGACY' among the options of the "
                "source: Spark then reads its files",
            )
    return converted
