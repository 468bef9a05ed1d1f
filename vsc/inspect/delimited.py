"""CSV: the delimiter, each file's header, and what the cells of a column have in common."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from vsc.inspect.files import count_lines, open_file, unreadable
from vsc.inspect.model import DataColumn, DataFile, Headers, InspectError, Sample
from vsc.inspect.texts import Texts, instants
from vsc.plan.types import STRING
from vsc.runtime.spark.formats.csv_dialect import CsvDialect, records
from vsc.runtime.values import arrow_type

__all__ = ["Delimited"]

_SEPARATORS = (",", ";", "\t", "|")
_PEEK = 1 << 16
_BLOCK = 1 << 22
_BEHIND = "text follows the closing quote of a cell"
_LONGEST = 1 << 26
"""A record that is longer is taken as it is: most likely a quote is not closed."""


class Delimited:
    """Reads CSV files with the same cells as `vsc run`: an empty cell is null, a quoted empty one in a text is not."""

    def __init__(self) -> None:
        self.separators: dict[str, str] = {}
        self.null = ""
        self.unreadable, self.first_unreadable = 0, ""

    def rows(self, file: DataFile, limit: int) -> int:
        """An upper bound of a file's rows (a quoted cell may hold line ends). Stops counting just past `limit`."""
        return count_lines(file.path, limit)

    def headers(self, sample: Sample) -> Headers:
        """The columns of all headers, each with a type that can read all its cells."""
        texts: dict[str, Texts] = {}
        present: Counter[str] = Counter()
        odd: list[tuple[str, str]] = []
        self.unreadable, self.first_unreadable = 0, ""
        for file in sample.files:
            header, strange = self._names(file.path)
            names = [name for name in dict.fromkeys(header) if name]
            odd += [pair for pair in strange if pair not in odd]
            present.update(names)
            for name in names:
                texts.setdefault(name, Texts())
            for batch in self._cells(file, sample.limit, header):
                for name in names:
                    if len(there := batch.column(name).drop_null()):
                        texts[name].see(there, cells=True)
        self.null, columns = _without_markers(texts)
        columns = [
            replace(column, absent=len(sample.files) - present[column.name])
            for column in columns
            if column.name not in dict(odd)
        ]
        return Headers(
            tuple(columns), tuple(odd), self._notes(sample), self._options(), self.unreadable, self.first_unreadable
        )

    def batches(self, sample: Sample, headers: Headers) -> Iterator[tuple[DataFile, dict[str, pa.Array]]]:
        """The rows, file by file, as columns of the declared types; a column that a file does not have is left out."""
        for file in sample.files:
            names, _ = self._names(file.path)
            for batch in self._cells(file, sample.limit, names):
                yield (
                    file,
                    {c.name: _typed(batch.column(c.name), c, self.null) for c in headers.columns if c.name in names},
                )

    def _notes(self, sample: Sample) -> tuple[str, ...]:
        notes = []
        used = set(self.separators.values())
        if len(used) > 1:
            notes.append(f"the files have different delimiters ({' '.join(map(repr, sorted(used)))}): a run reads one")
        first = sample.files[0].path
        if any(_is_data(name) for name in self._names(first)[0]):
            notes.append(f"the first line of {first} looks like data, but vsc takes it as the header")
        if self.null:
            notes.append(f"{self.null!r} stands for a missing value, so it is null in every column")
        return tuple(notes)

    def _options(self) -> tuple[tuple[str, str], ...]:
        separator = next(iter(self.separators.values()), ",")
        options = (("sep", separator.replace("\t", r"\t")),) if separator != "," else ()
        return (*options, ("nullValue", self.null)) if self.null else options

    def _names(self, path: str) -> tuple[list[str], list[tuple[str, str]]]:
        """The names in a file's header, with None for unusable ones; and why those are unusable."""
        with open_file(path) as stream:
            start = stream.read(_PEEK)
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise _not_utf8(path, "utf-16")
        text = start.decode("utf-8-sig", "replace")
        lines = [line for line in text.splitlines() if line.strip()]
        if not lines:
            return [], []
        separator = self.separators.setdefault(path, _separator(lines if len(start) < _PEEK else lines[:-1] or lines))
        names = [name.strip() for name in next(csv.reader([lines[0]], delimiter=separator))]
        odd = [
            (name or "(no name)", f"the header of {path} {'names it twice' if name else 'has a column without a name'}")
            for name, count in Counter(names).items()
            if count > 1 or not name
        ]
        return names, odd

    def _cells(self, file: DataFile, limit: int | None, names: list[str]) -> Iterator[pa.RecordBatch]:
        """The cells as texts, by the columns' names. If a header has a name twice, the first one counts."""
        if not any(names):
            return
        keys = [f"c{i}" for i in range(len(names))]
        chosen = {name: keys[names.index(name)] for name in names if name}
        left = limit
        try:
            with open_file(file.path) as stream:
                records = _Records(stream, CsvDialect(self.separators[file.path]), len(names))
                for batch in self._open(records, file, keys, list(chosen.values())):
                    cut = batch if left is None else batch.slice(0, left)
                    yield cut.rename_columns(list(chosen))
                    if left is not None:
                        left -= cut.num_rows
                        if left <= 0:
                            return
        except pa.ArrowInvalid as error:
            if "invalid UTF8" in str(error):
                raise _not_utf8(file.path) from error
            raise unreadable(file.path, error) from error

    def _open(self, records: _Records, file: DataFile, keys: list[str], chosen: list[str]) -> pacsv.CSVStreamingReader:
        def bad(row: pacsv.InvalidRow) -> str:
            self.unreadable += 1
            why = f"{row.actual_columns} cells where the header has {row.expected_columns}"
            if row.text.startswith(_BEHIND):
                why = _BEHIND
            self.first_unreadable = self.first_unreadable or f"{file.path}, row {row.number - 1}: {why}"
            return "skip"

        return pacsv.open_csv(
            records,
            pacsv.ReadOptions(use_threads=False, column_names=keys, skip_rows_after_names=1, block_size=_BLOCK),
            pacsv.ParseOptions(
                delimiter=self.separators[file.path], newlines_in_values=True, invalid_row_handler=bad
            ),
            pacsv.ConvertOptions(
                column_types=dict.fromkeys(keys, pa.string()), include_columns=chosen,
                null_values=["", self.null], strings_can_be_null=True, quoted_strings_can_be_null=False,
            ),
        )  # fmt: skip


class _Records(io.RawIOBase):
    """The records of a file; in place of each with text behind a closing quote, which pyarrow would read and a run
    does not, one of more cells than `columns`.

    The last line has an end: pyarrow would read an empty last cell as an empty string.
    """

    def __init__(self, inner: pa.NativeFile, dialect: CsvDialect, columns: int) -> None:
        super().__init__()
        self.inner, self.dialect = inner, dialect
        self.instead = (_BEHIND + dialect.separator * columns + "\n").encode()
        self._begun, self._ended = False, False
        self._rest = self._ready = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while not self._ready and not self._ended:
            data: bytes = self.inner.read(None if size < 0 else size)
            self._ended = not data
            self._take(self._rest + data)
        found, self._ready = (self._ready, b"") if size < 0 else (self._ready[:size], self._ready[size:])
        return found

    def _take(self, data: bytes) -> None:
        """Makes the complete records ready, and keeps the rest; one that is too long is no longer looked at."""
        if self._ended and data[-1:] not in (b"", b"\n", b"\r"):
            data += b"\n"
        ends, places = records(data, self.dialect)
        whole = self._ended or len(data) > _LONGEST
        complete = len(data) if whole else int(ends[-1]) if len(ends) else 0
        self._rest, data = data[complete:], data[:complete]
        places = places[places < complete]
        if len(places):
            starts = [0, *ends[ends < complete].tolist(), complete]
            bad = set(np.searchsorted(starts[1:], places, side="right").tolist()) - ({0} if not self._begun else set())
            parts = enumerate(pairwise(starts))
            data = b"".join(self.instead if n in bad else data[start:end] for n, (start, end) in parts)
        self._begun |= bool(data)
        self._ready = data


def _separator(lines: list[str]) -> str:
    """The delimiter that gives the most cells, the same number on each line; if none does, the comma."""
    best, most = ",", 1
    for candidate in _SEPARATORS:
        try:
            widths = Counter(len(row) for row in csv.reader(lines[:200], delimiter=candidate) if row)
        except csv.Error:
            continue
        width, times = widths.most_common(1)[0]
        if width > most and times * 10 >= sum(widths.values()) * 9:
            best, most = candidate, width
    return best


def _without_markers(texts: dict[str, Texts]) -> tuple[str, list[DataColumn]]:
    """The text that stands for null, and the columns. Besides the empty cell, a run accepts one such text."""
    typed = {name: seen.column(name, cells=True) for name, seen in texts.items() if seen.markers}
    blocking = {
        marker for name, column in typed.items() if column.type != STRING or column.patterns
        for marker in texts[name].markers
    }  # fmt: skip
    null = next(iter(blocking)) if len(blocking) == 1 else ""
    columns = []
    for name, seen in texts.items():
        column = seen.column(name, cells=True)
        others = seen.markers - {null}
        if others:
            note = f"{seen.marked:,} × {' or '.join(sorted(others))}"
            note += f", else {column.type}" if column.type != STRING else ""
            column = DataColumn(name, STRING, (*(() if column.type != STRING else column.notes), note))
        columns.append(column)
    return null, columns


def _typed(texts: pa.Array, column: DataColumn, null: str) -> pa.Array:
    """Cells as the column's type, which is known to fit all of them. But in a text, quoted ones may be null as well."""
    if column.type == STRING:
        return texts
    texts = pc.if_else(pc.is_in(texts, pa.array(["", null])), None, texts)
    match str(column.type):
        case "timestamp":
            return instants(texts, *column.patterns[:1])
        case "date" if column.patterns:
            return instants(texts, column.patterns[0]).cast(pa.date32())
        case "date":
            return pc.strptime(texts, "%Y-%m-%d", "s", error_is_null=True).cast(pa.date32())
        case "double":
            special = pc.replace_substring(texts, "Infinity", "inf")
            return special.cast(pa.float64())
        case _:
            return texts.cast(arrow_type(column.type))


def _is_data(name: str) -> bool:
    texts = Texts()
    texts.see(pa.array([name]))
    return bool(name) and texts.column(name, cells=True).type != STRING


def _not_utf8(path: str, likely: str = "latin1") -> InspectError:
    return InspectError(
        f"{path} is not UTF-8 text, the only encoding that vsc reads",
        f"convert it, as in `iconv -f {likely} -t utf-8 IN > OUT`",
    )
