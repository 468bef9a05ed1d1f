"""CSV read by each file's own header: lines of text in, the declared columns out.

Spark's CSV reader binds columns by position where a schema is given, and a stream must be given one; so Spark reads
lines, and this module the cells (pyarrow). Guarantees: a record keeps its order; one that cannot be read, or has a cell
that is not a value of its column (`expressions.cells`; binary is base64), comes out with the reason; a quoted cell
keeps its line breaks; memory is bounded by the longest line and `MAX_RECORD`, whatever the size of a file.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from itertools import pairwise
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from vsc.plan.nodes import Column
from vsc.plan.types import BINARY, DataType
from vsc.plan.words import bytes_text
from vsc.runtime.errors import SourceError
from vsc.runtime.expressions.cells import read_cells
from vsc.runtime.expressions.digits import of_base64
from vsc.runtime.operators.source.partition_folders import folder_texts
from vsc.runtime.records import Int64s
from vsc.runtime.spark.formats.csv_dialect import CsvDialect, record_ends, records
from vsc.runtime.spark.formats.misfits import misfit, shown
from vsc.runtime.spark.formats.source_columns import BAD, CORRUPT
from vsc.runtime.values import arrow_type

__all__ = ["CsvCells", "runs"]

CHUNK_BYTES = 8 << 20
MAX_RECORD = 64 << 20
_BOM = b"\xef\xbb\xbf"
_SEPARATORS = {",": ",", ";": ";", "\t": r"\t", "|": "|"}
"""What separates cells in most files, and how it is written in a topology."""


@dataclass(frozen=True)
class CsvCells:
    """For batches of (line, path, *others): the declared columns, path, others, and `BAD`.

    A line is bytes without its end, which is the dialect's. A blank line is not a record. A column that the header does
    not name is null. `place` is the source in messages. Times without an offset are of `zone`.
    """

    columns: tuple[Column, ...]
    dialect: CsvDialect
    place: str
    others: tuple[str, ...]
    chunk_bytes: int = CHUNK_BYTES
    texts: bool = False
    """Whether each record comes with its text, in a last column `CORRUPT`."""
    zone: tzinfo = UTC
    blank: frozenset[str] = frozenset()
    """The columns in which a quoted empty cell is null, as is a quoted `dialect.null`: those not of texts or bytes."""
    named: bool = False
    """Whether a header has to name one of the columns: else it is likely to be a row."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Cells of the records, file by file."""
        file: _File | None = None
        for batch in batches:
            for path, rows in runs(batch, 1):
                if file is None or path != file.path:
                    yield from file.end() if file is not None else ()
                    file = _File(self, path, tuple(rows.column(i)[0] for i in range(1, rows.num_columns)))
                yield from file.add(_joined(rows.column(0), self.dialect.line_end.encode()))
        yield from file.end() if file is not None else ()

    def header(self, path: str, data: bytes) -> list[str] | None:
        """The names in the header of the file at `path` that begins with `data`; None if it does not hold all of it."""
        file, data = _File(self, path, ()), data.removeprefix(_BOM)
        file.find_header(data, record_ends(data, self.dialect).tolist())
        return file.header


class _File:
    """One file: gathers its bytes, and hands out what the complete records among them hold."""

    def __init__(self, cells: CsvCells, path: str, others: tuple[pa.Scalar, ...]) -> None:
        self.path = path
        self._cells, self._others = cells, others
        self.header: list[str] | None = None
        self._pending: list[bytes] = []
        self._size, self._enough = 0, cells.chunk_bytes

    def add(self, data: memoryview) -> Iterator[pa.RecordBatch]:
        """Takes the next bytes of the file."""
        for start in range(0, len(data), self._cells.chunk_bytes):
            piece = bytes(data[start : start + self._cells.chunk_bytes])
            self._pending.append(piece)
            self._size += len(piece)
            if self._size >= self._enough:
                yield from self._complete()
                if self._size > MAX_RECORD:
                    raise SourceError(
                        f"{self._cells.place}: a record of the file {unquote(self.path)} is longer than "
                        f"{bytes_text(MAX_RECORD)}: it begins with {self._pending[0][:60].decode(errors='replace')!r}",
                        "close the quote, or write 'quote' = '' if a quote is a character like any other",
                    )

    def end(self) -> Iterator[pa.RecordBatch]:
        """The file has no more bytes."""
        self._pending.append(b"\n")
        yield from self._complete()
        if self._size:  # a quote of its last record is not closed
            yield self._batch({}, ["a quote is not closed"], b"".join(self._pending))

    def find_header(self, data: bytes, ends: list[int]) -> int:
        """Looks for the header among the records that end at `ends`, the first that is not blank; returns where what
        follows it begins."""
        start = 0
        for end in ends:
            if data[start:end].strip(b"\r\n") and any(names := self._names(data[start:end])):
                self.header = names
                return end
            start = end
        return start

    def _complete(self) -> Iterator[pa.RecordBatch]:
        """Hands out the complete records, and keeps the rest."""
        data = b"".join(self._pending)
        if self.header is None:
            data = data.removeprefix(_BOM)
        ends, behind = records(data, self._cells.dialect)
        complete = int(ends[-1]) if len(ends) else 0
        rest = data[complete:]
        # The rest is looked at again with what follows: only when it has doubled, or long records would take too long.
        self._pending, self._size, self._enough = [rest], len(rest), max(self._cells.chunk_bytes, 2 * len(rest))
        start = 0
        if self.header is None:
            start = self.find_header(data, ends.tolist())
            self._check_header()
        if start < complete:
            yield self._parsed(data[start:complete], behind[(behind >= start) & (behind < complete)] - start)

    def _check_header(self) -> None:
        folders = folder_texts(unquote(self.path))
        names = {column.name for column in self._cells.columns if column.name not in folders}
        if self._cells.named and self.header is not None and names and names.isdisjoint(self.header):
            raise SourceError(
                f"{self._cells.place}: the header of {unquote(self.path)} names none of the declared columns: it is "
                + shown(self._cells.dialect.separator.join(self.header)),
                "write a header into the file; or remove it, and add 'ignoreMissingFiles' = 'true' to the options of "
                "the source for one run; or add missing_columns = 'null' there, if there may be files without any of "
                "its columns",
            )

    def _names(self, line: bytes) -> list[str]:
        """The names in a header."""
        cells = self._cells
        where = f"{cells.place}: the header of {unquote(self.path)}"
        try:
            header = [name.strip() for name in self._read(line, None, []).column_names]
        except UnicodeDecodeError:
            raise SourceError(f"{where} is not UTF-8 text", "convert the file to UTF-8") from None
        declared = [column.name for column in cells.columns]
        for name in declared:
            if header.count(name) > 1:
                raise SourceError(f"{where} names {name!r} more than once")
        if len(header) == 1 and header[0] not in declared:
            counts = {one: header[0].count(one) for one in _SEPARATORS if one != cells.dialect.separator}
            other = max(counts, key=lambda one: counts[one])
            if counts[other]:
                raise SourceError(
                    f"{where} is the single cell {header[0]!r}: its columns seem to be separated by {other!r}, "
                    f"not by {cells.dialect.separator!r}",
                    f"write 'sep' = '{_SEPARATORS[other]}' among the options of the source",
                )
        return header

    def _parsed(self, data: bytes, behind: Int64s) -> pa.RecordBatch:
        """The rows in `data`, which has text behind closing quotes at these places."""
        assert self.header is not None
        reasons: dict[int, str] = {}

        def reject(row: pacsv.InvalidRow) -> str:
            reasons[int(row.number)] = f"it has {row.actual_columns} cells, not {row.expected_columns}"
            return "skip"

        names = [f"c{i}" for i in range(len(self.header))]
        places = {c: self.header.index(c.name) for c in self._cells.columns if c.name in self.header}
        table = self._read(data, reject, names, [names[i] for i in places.values()] or names[:1])
        total = table.num_rows + len(reasons)
        # pyarrow numbers records from 1; the rejected ones are put back as rows without cells, at their places.
        why: list[str | None] = [None] * total
        rejected = np.zeros(total, np.bool_)
        for number, reason in reasons.items():
            why[number - 1], rejected[number - 1] = reason, True
        place = pa.array(np.cumsum(~rejected) - 1, pa.int64(), mask=rejected)
        for number in self._numbers(data, behind):
            why[number] = why[number] or "text follows the closing quote of a cell"
        columns: dict[str, pa.Array] = {}
        for column, i in places.items():
            cells = table.column(names[i]).combine_chunks()
            cells, wrong = _utf8(cells.take(place) if reasons else cells)
            for number in wrong:
                why[number] = why[number] or f"column {column.name!r} is not UTF-8 text"
            if column.name in self._cells.blank:
                cells = _without(cells, ("", self._cells.dialect.null))
            columns[column.name] = values = _values(cells, column.type, self._cells.zone)
            if values.null_count > cells.null_count:
                for number in np.flatnonzero(pc.and_(values.is_null(), cells.is_valid())).tolist():
                    why[number] = why[number] or misfit(column, cells[number].as_py())
        return self._batch(columns, why, data)

    def _read(self, data: bytes, reject: object, names: list[str], wanted: list[str] | None = None) -> pa.Table:
        """pyarrow's reading of `data`; without `names` its first record has them."""
        dialect = self._cells.dialect
        return pacsv.read_csv(
            io.BytesIO(data),
            pacsv.ReadOptions(use_threads=False, column_names=names, block_size=len(data) + 1),
            pacsv.ParseOptions(
                delimiter=dialect.separator,
                quote_char=dialect.quote or False,
                escape_char=dialect.escape or False,
                newlines_in_values=True,
                invalid_row_handler=reject,
            ),
            pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.binary()),
                null_values=["", dialect.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                include_columns=wanted,
            ),
        )

    def _batch(self, found: dict[str, pa.Array], reasons: list[str | None], data: bytes) -> pa.RecordBatch:
        """The rows handed out, which `data` holds: a column that was not `found` is null."""
        total = len(reasons)
        arrays = [
            found[c.name] if c.name in found else pa.nulls(total, arrow_type(c.type)) for c in self._cells.columns
        ]
        arrays += [pa.repeat(value, total) for value in self._others]
        arrays.append(pa.array(reasons, pa.string()))
        names = [*(f"_vsc_column_{i}" for i in range(len(self._cells.columns))), *self._cells.others, BAD]
        if self._cells.texts:
            texts = self._texts(data)
            arrays.append(pa.array([_shown(text) for text in texts], pa.string()))
            names.append(CORRUPT)
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def _texts(self, data: bytes) -> list[bytes]:
        """The records in `data`."""
        return [data[start:end] for start, end in self._records(data)]

    def _numbers(self, data: bytes, places: Int64s) -> list[int]:
        """The numbers of the records in `data` that have these places."""
        if not len(places):
            return []
        ends = [end for _, end in self._records(data)]
        return [int(number) for number in np.unique(np.searchsorted(ends, places, side="right"))]

    def _records(self, data: bytes) -> list[tuple[int, int]]:
        """Where each record in `data` begins and ends; blank lines are not records."""
        ends = record_ends(data, self._cells.dialect).tolist()
        if ends[-1:] != [len(data)]:  # a `\\r`, or what an unclosed quote has left
            ends.append(len(data))
        return [(start, end) for start, end in pairwise([0, *ends]) if data[start:end].strip(b"\r\n")]


def _shown(record: bytes) -> str:
    """The text of a record; bytes that are not UTF-8 as escapes."""
    return record.strip(b"\r\n").decode(errors="backslashreplace")


def _values(cells: pa.Array, type: DataType, zone: tzinfo) -> pa.Array:
    """What the cells are as values of a type; null for null and for what is not a value."""
    if type == BINARY:
        return pa.array([None if cell is None else _from_base64(cell) for cell in cells.to_pylist()], pa.binary())
    return read_cells(cells, type, zone)


def _without(cells: pa.Array, nulls: tuple[str, ...]) -> pa.Array:
    """The cells with null for these texts. Programs that quote every cell write a missing number or date so."""
    return pc.if_else(pc.is_in(cells, pa.array(nulls, pa.string())), None, cells)


def _from_base64(text: str) -> bytes | None:
    try:
        return of_base64(text)
    except ValueError:
        return None


def _utf8(cells: pa.Array) -> tuple[pa.Array, list[int]]:
    """Bytes as text, and the rows whose bytes are not text: those are null."""
    try:
        return cells.cast(pa.string()), []
    except pa.ArrowInvalid:
        texts = [None if cell is None else _decoded(cell) for cell in cells.to_pylist()]
        wrong = [i for i, text in enumerate(texts) if text is None and cells[i].is_valid]
        return pa.array(texts, pa.string()), wrong


def _decoded(cell: bytes) -> str | None:
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return None


def _joined(lines: pa.Array, end: bytes) -> memoryview:
    """The bytes of the lines, each with its end."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return memoryview(pc.binary_join(whole, end)[0].as_buffer().to_pybytes() + end)


def runs(batch: pa.RecordBatch, column: int) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The stretches of rows of one file, whose path stands in that column."""
    encoded = pc.run_end_encode(batch.column(column))
    start = 0
    for end, path in zip(encoded.run_ends.to_pylist(), encoded.values.to_pylist(), strict=True):
        yield path, batch.slice(start, end - start)
        start = end
