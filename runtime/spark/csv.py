"""CSV read by each file's own header: lines of text in, one text column for each declared column out.

Spark's CSV reader binds columns by position where a schema is given, and a stream must be given one; so Spark reads
lines, this module the cells (pyarrow), and Spark SQL casts them. Guarantees: a record keeps its order; a record
with the wrong number of cells comes out marked; a quoted cell may hold line breaks. Not for types: see `sources`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from vsc.runtime.errors import SourceError

__all__ = ["CELL_OPTIONS", "CsvCells", "CsvDialect"]

CELL_OPTIONS = {"sep", "delimiter", "quote", "escape", "nullvalue", "header"}
"""Spark's options for CSV that are honoured here, in lower case; those of Spark's file source go on to Spark."""

CHUNK_LINES = 1 << 16


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """How cells are written: Spark's options and defaults (`escape` inside quotes besides a doubled quote)."""

    separator: str = ","
    quote: str = '"'
    escape: str | None = None
    null: str = ""

    @classmethod
    def of(cls, options: dict[str, str]) -> CsvDialect:
        """The dialect that Spark's options describe."""
        found = {name.lower(): value for name, value in options.items()}
        return cls(
            found.get("sep", found.get("delimiter", ",")),
            found.get("quote", '"'),
            found.get("escape"),
            found.get("nullvalue", ""),
        )


@dataclass
class CsvCells:
    """For mapInArrow over (line, part, *others): the declared columns as text, part, others, and whether it is bad.

    A blank line is no record. A column that the header does not name is null.
    """

    columns: tuple[str, ...]
    dialect: CsvDialect
    source: str
    others: tuple[pa.Field, ...] = ()
    bad: str = "_vsc_bad"
    _part: str | None = field(default=None, init=False)
    _header: list[str] | None = field(default=None, init=False)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Cells of the records, file by file."""
        lines: list[str] = []
        extra: tuple[pa.Scalar, ...] = ()
        for batch in batches:
            for part, rows in _runs(batch):
                if part != self._part:
                    yield from self._flush(lines, extra, last=True)
                    self._part, self._header, lines = part, None, []
                    extra = tuple(rows.column(i)[0] for i in range(1, rows.num_columns))
                lines.extend(rows.column(0).to_pylist())
                if len(lines) >= CHUNK_LINES:
                    complete = self._complete(lines)
                    yield from self._flush(lines[:complete], extra, last=False)
                    lines = lines[complete:]
        yield from self._flush(lines, extra, last=True)

    def _complete(self, lines: list[str]) -> int:
        """How many of the lines end outside of a quoted cell, up to the last one that does."""
        if not self.dialect.quote:
            return len(lines)
        quotes = pc.count_substring(pa.array(lines, pa.string()), self.dialect.quote).to_numpy()
        outside = np.flatnonzero(np.cumsum(quotes) % 2 == 0)
        return int(outside[-1]) + 1 if len(outside) else 0

    def _flush(self, lines: list[str], extra: tuple[pa.Scalar, ...], last: bool) -> Iterator[pa.RecordBatch]:
        if self._header is None:
            lines = self._take_header(lines)
        if not lines or self._header is None:
            return
        rejected: list[int] = []

        def reject(row: pacsv.InvalidRow) -> str:
            rejected.append(int(row.number))
            return "skip"

        dialect = self.dialect
        names = [f"c{i}" for i in range(len(self._header))]
        data = "\n".join(lines).encode()
        try:
            table = pacsv.read_csv(
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
                    column_types={name: pa.string() for name in names},
                    null_values=[dialect.null],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as error:
            raise SourceError(
                f"source '{self.source}': the file {unquote(self._part or '')} is not CSV: {error}"
            ) from error
        yield self._batch(table, np.array(rejected, dtype=np.int64), extra)

    def _take_header(self, lines: list[str]) -> list[str]:
        """Reads the header from the first line that is not blank; returns the lines behind it."""
        start = next((i for i, line in enumerate(lines) if line.strip()), None)
        if start is None:
            return []
        first = lines[start].removeprefix("\ufeff")
        reader = csv.reader([first], delimiter=self.dialect.separator, quotechar=self.dialect.quote or None)
        self._header = [name.strip() for name in next(reader)]
        for name in self.columns:
            if self._header.count(name) > 1:
                raise SourceError(
                    f"source '{self.source}': the header of {unquote(self._part or '')} names {name!r} more than once"
                )
        return lines[start + 1 :]

    def _batch(self, table: pa.Table, rejected: np.ndarray, extra: tuple[pa.Scalar, ...]) -> pa.RecordBatch:
        total = table.num_rows + len(rejected)
        assert self._header is not None
        # pyarrow numbers records from 1; the rejected ones are put back as rows without cells, at their places.
        bad = np.zeros(total, dtype=np.bool_)
        bad[rejected - 1] = True
        place = pa.array(np.where(bad, -1, np.cumsum(~bad) - 1), pa.int64())
        place = pc.if_else(pa.array(bad), pa.scalar(None, pa.int64()), place)
        arrays: list[pa.Array] = []
        for name in self.columns:
            if name in self._header:
                cells = table.column(self._header.index(name)).combine_chunks()
                arrays.append(cells.take(place) if len(rejected) else cells)
            else:
                arrays.append(pa.nulls(total, pa.string()))
        arrays.extend(pa.repeat(value, total) for value in extra)
        arrays.append(pa.array(bad))
        names = [*self.columns, *(f.name for f in self.others), self.bad]
        return pa.RecordBatch.from_arrays(arrays, names=names)


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The stretches of lines of one file (column 1 is its path)."""
    if batch.num_rows == 0:
        return
    encoded = pc.run_end_encode(batch.column(1))
    start = 0
    for end, part in zip(encoded.run_ends.to_pylist(), encoded.values.to_pylist(), strict=True):
        yield part, batch.slice(start, end - start)
        start = end
