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
from vsc.plan.types import DataType
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
        unreadable, example = self._misfits(sample, columns)
        return Headers(tuple(columns), tuple(left_out.items()), unreadable=unreadable, first_unreadable=example)

    def batches(self, sample: Sample, headers: Headers) -> Iterator[tuple[DataFile, dict[str, pa.Array]]]:
        """The rows that a run reads, file by file, as columns of the declared types; a column that a file does not have
        is left out."""
        types = {column.name: column.type for column in headers.columns}
        for file in sample.files:
            for cut in self._batches(file.path, list(types), sample.limit):
                columns = {name: _as(cut.column(name), types[name]) for name in cut.schema.names if name in types}
                lost = None if self.orc else _lost(cut, columns, types)
                yield file, columns if lost is None else {k: v.filter(pc.invert(lost)) for k, v in columns.items()}

    def _misfits(self, sample: Sample, columns: list[DataColumn]) -> tuple[int, str | None]:
        """How many rows have a value that their column's type cannot hold, which a run drops; and the first one."""
        count, first = 0, None
        types = {column.name: column.type for column in columns}
        for file in () if self.orc else sample.files:
            held = {field.name: field.type for field in self._open(file.path).schema_arrow}
            names = [name for name, type in types.items() if name in held and held[name] != arrow_type(type)]
            row = 0
            for cut in self._batches(file.path, names, sample.limit) if names else ():
                found = {name: _as(cut.column(name), types[name]) for name in cut.schema.names}
                lost = _lost(cut, found, types)
                if lost is not None:
                    count, at = count + pc.sum(lost).as_py(), pc.index(lost, True).as_py()
                    name = next(
                        name for name in found if cut.column(name)[at].is_valid and not found[name][at].is_valid
                    )
                    first = first or f"{file.path}, row {row + at + 1}: {name} does not fit in {types[name]}"
                row += cut.num_rows
        return count, first

    def _declared(self, type: pa.DataType) -> DataType | None:
        if pa.types.is_timestamp(type) and self.orc and type.tz is not None:
            return None  # ORC's "timestamp with local time zone"
        return declared(type)

    def _open(self, path: str) -> pa.NativeFile:
        try:
            return orc.ORCFile(path) if self.orc else pq.ParquetFile(path)
        except (OSError, pa.ArrowException) as error:
            raise unreadable(path, error) from error

    def _batches(self, path: str, wanted: list[str], limit: int | None) -> Iterator[pa.RecordBatch]:
        """The first `limit` rows of a file, of these columns that it has."""
        left = limit
        for batch in self._all(path, wanted):
            yield batch if left is None else batch.slice(0, left)
            if left is not None:
                left -= batch.num_rows
                if left <= 0:
                    return

    def _all(self, path: str, wanted: list[str]) -> Iterator[pa.RecordBatch]:
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


def _as(column: pa.Array, type: DataType) -> pa.Array:
    """A column as a run reads it: null where the declared type cannot hold a value. For nested types, only which rows
    are null matters here."""
    wanted = arrow_type(type)
    if pa.types.is_nested(wanted):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.type == wanted:
        return column
    if pa.types.is_temporal(column.type) and pa.types.is_integer(wanted):
        width = pa.int32() if pa.types.is_time32(column.type) else pa.int64()
        return column.view(width).cast(wanted)
    if (convert := conversion("", column.type, type)) is not None:
        return convert(column)
    try:
        return pc.cast(column, wanted)
    except pa.ArrowException:  # files with different types; `headers` reports them
        return pa.nulls(len(column), wanted)


def _lost(batch: pa.RecordBatch, columns: dict[str, pa.Array], types: dict[str, DataType]) -> pa.Array | None:
    """Of which rows a value became null in `columns`, as its type cannot hold it; None: of none."""
    lost = None
    for name, column in columns.items():
        held = batch.column(name)
        if column.null_count > held.null_count and conversion("", held.type, types[name]) is not None:
            found = pc.and_(column.is_null(), held.is_valid())
            lost = found if lost is None else pc.or_(lost, found)
    return lost
