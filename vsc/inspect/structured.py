"""Parquet and ORC: the columns that the files' own schemas declare, and their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq

from vsc.inspect.arrow_types import known, widest
from vsc.inspect.files import unreadable
from vsc.inspect.model import DataColumn, DataFile, Headers, Sample
from vsc.plan.types import STRING, TIMESTAMP, DataType
from vsc.runtime.file_types import declared
from vsc.runtime.spark.formats.parquet_types import conversion
from vsc.runtime.values import arrow_type

__all__ = ["Structured"]

_BATCH = 16_384


class Structured:
    """Reads parquet (``orc`` false) or ORC files."""

    def __init__(self, orc: bool) -> None:
        self.orc = orc

    def rows(self, file: DataFile, limit: int) -> int:
        """How many rows a file has."""
        opened = self._open(file.path)
        return int(opened.nrows if self.orc else opened.metadata.num_rows)

    def headers(self, sample: Sample) -> Headers:
        """The columns of all files, each with a type that can read it in every file that has it."""
        types: dict[str, tuple[DataType, str]] = {}
        present: Counter[str] = Counter()
        notes: dict[str, list[str]] = {}
        left_out: dict[str, str] = {}
        for file in sample.files:
            schema = self._open(file.path).schema if self.orc else self._open(file.path).schema_arrow
            folded = Counter(name.lower() for name in schema.names)
            for field in schema:
                present[field.name] += 1
                if folded[field.name.lower()] > 1:
                    same = " and ".join(name for name in schema.names if name.lower() == field.name.lower())
                    left_out[field.name] = f"{file.path} has {same}, and a run cannot tell which one it is to read"
                    continue
                type = self._declared(field.type)
                if type is None:
                    left_out[field.name] = f"Spark cannot read {field.type} from {'ORC' if self.orc else 'parquet'}"
                    continue
                before, first = types.setdefault(field.name, (type, file.path))
                wide = widest(before, type, by_value=not self.orc)
                if wide is None:
                    notes.setdefault(field.name, []).append(
                        f"{before} in {first}, but {type} in {file.path}: a run stops there"
                    )
                else:
                    types[field.name] = (wide, first)
        columns = []
        for name, (type, _) in types.items():
            if name in left_out:
                continue
            said = list(dict.fromkeys(notes.get(name, [])))[:2]
            columns.append(DataColumn(name, known(type), tuple(said), absent=len(sample.files) - present[name]))
        return Headers(tuple(columns), tuple(left_out.items()))

    def batches(self, sample: Sample, headers: Headers) -> Iterator[tuple[DataFile, dict[str, pa.Array]]]:
        """The rows, file by file, as columns of the declared types; a column that a file does not have is left out."""
        types = {column.name: arrow_type(column.type) for column in headers.columns}
        for file in sample.files:
            left = sample.limit
            for batch in self._batches(file.path, list(types)):
                cut = batch if left is None else batch.slice(0, left)
                yield file, {name: _as(cut.column(name), types[name]) for name in cut.schema.names if name in types}
                if left is not None:
                    left -= cut.num_rows
                    if left <= 0:
                        break

    def _declared(self, type: pa.DataType) -> DataType | None:
        if pa.types.is_timestamp(type) and self.orc and type.tz is not None:
            return None  # ORC's "timestamp with local time zone"
        return declared(type)

    def _open(self, path: str) -> pa.NativeFile:
        try:
            return orc.ORCFile(path) if self.orc else pq.ParquetFile(path)
        except (OSError, pa.ArrowException) as error:
            raise unreadable(path, error) from error

    def _batches(self, path: str, wanted: list[str]) -> Iterator[pa.RecordBatch]:
        opened = self._open(path)
        names = [name for name in (opened.schema if self.orc else opened.schema_arrow).names if name in wanted]
        try:
            if not self.orc:
                yield from opened.iter_batches(_BATCH, columns=names)
                return
            for stripe in range(opened.nstripes):
                batch = opened.read_stripe(stripe, columns=names)
                yield from (batch.slice(start, _BATCH) for start in range(0, batch.num_rows, _BATCH))
        except (OSError, pa.ArrowException) as error:
            raise unreadable(path, error) from error


def _as(column: pa.Array, type: pa.DataType) -> pa.Array:
    """A column as the declared type. For nested types, only which rows are null matters here."""
    if pa.types.is_nested(type):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.type == type:
        return column
    if pa.types.is_timestamp(column.type) and pa.types.is_timestamp(type):
        return _converted(column, TIMESTAMP)
    if isinstance(column.type, pa.UuidType) and pa.types.is_string(type):
        return _converted(column, STRING)
    if pa.types.is_temporal(column.type) and pa.types.is_integer(type):
        width = pa.int32() if pa.types.is_time32(column.type) else pa.int64()
        return column.view(width).cast(type)
    try:
        return pc.cast(column, type)
    except pa.ArrowException:  # files with different types; `headers` reports them
        return pa.nulls(len(column), type)


def _converted(column: pa.Array, type: DataType) -> pa.Array:
    """The column as a run reads it."""
    convert = conversion("", column.type, type)
    assert convert is not None
    return convert(column)
