"""Random CSV files: some written cell by cell, so that it is known which are null; some that are noise."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Literal

import pyarrow as pa

from vsc.plan.nodes import Column
from vsc.plan.types import STRING
from vsc.runtime.spark.formats.csv import CsvCells
from vsc.runtime.spark.formats.csv_dialect import CsvDialect
from vsc.runtime.spark.formats.source_columns import BAD

__all__ = ["Answer", "CsvFile", "by_python", "by_vsc", "random_file", "texts"]

Answer = list[list[str | None] | None]
"""The rows of a file; None is a row that cannot be read."""

NAMES = ["a", "b", "ü", "d\nd"]
LINE_ENDS = ["\n", "\r\n", "\r"]


def texts(names: Iterable[str]) -> tuple[Column, ...]:
    """Columns of text."""
    return tuple(Column(name, STRING) for name in names)


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A file; `written` are its rows where they are known beforehand."""

    text: str
    dialect: CsvDialect
    names: list[str]
    written: Answer | None


def random_file(rng: Random) -> CsvFile:
    """Any file."""
    separator = rng.choice(",,,;\t|")
    quote = rng.choice(['"', '"', '"', "'", ""])
    escape = rng.choice([None, None, "\\"])
    dialect = CsvDialect(
        separator, quote, escape, rng.choice(["", "", "-"]), rng.choice(["\n", "\n", "\n", "\r", "\r\n"])
    )
    names = NAMES[: rng.randint(1, 4 if quote else 3)]
    ends = rng.choice([["\n"], ["\r\n"], ["\r"], LINE_ENDS])
    header = separator.join(f"{quote}{n}{quote}" if "\n" in n or rng.random() < 0.3 else n for n in names)
    text = rng.choice(["", "", "\ufeff"]) + rng.choice(["", "", "", rng.choice(ends)]) + header + rng.choice(ends)
    if rng.random() < 0.5:
        noise = [separator, separator, quote, quote, escape or "", "\n", "\r\n", "\r", "x", "é", " ", "-", "\0"]
        body = "".join(rng.choices(noise, k=rng.randint(0, 60)))
        if escape and quote:  # behind a closing quote it is text for Python
            body = re.sub(rf"(?<={quote})\\+", "", body)
        body = body.rstrip("\\")  # whether the last line has an end is not known here
        return CsvFile(text + body, dialect, names, None)
    written: Answer = []
    for _ in range(rng.randint(0, 8)):
        if rng.random() < 0.1:
            text += rng.choice(ends)
        count = len(names) + rng.choice([0, 0, 0, 0, 0, 1, -1])
        cells = [_cell(rng, dialect) for _ in range(count)]
        line = separator.join(how for how, _ in cells)
        if line:
            text += line + rng.choice(ends)
            written.append([value for _, value in cells] if count == len(names) else None)
    if rng.random() < 0.4:
        text = text.removesuffix("\n").removesuffix("\r")
    return CsvFile(text, dialect, names, written)


def _cell(rng: Random, dialect: CsvDialect) -> tuple[str, str | None]:
    """A cell as it is written, and its value."""
    quote, escape = dialect.quote, dialect.escape
    if quote and rng.random() < 0.4:
        pieces = rng.choices([dialect.separator, quote, "\n", "\r\n", "\r", "x", "é", "-", "\\"], k=rng.randint(0, 5))
        written = "".join(
            rng.choice([quote, escape or quote]) + p if p == quote else escape + p if p == escape else p for p in pieces
        )
        return quote + written + quote, "".join(pieces)
    pieces = rng.choices(["x", "é", "-", " ", "7"], k=rng.choice([0, 0, 1, 1, 2, 5]))
    if pieces and quote and rng.random() < 0.2:
        pieces.append(quote)  # a quote that does not open its cell is text
    text = "".join(pieces)
    return text, None if text in ("", dialect.null) else text


def by_python(file: CsvFile) -> Answer:
    """What Python's csv reads; what is meant to be different: no blank lines, no open quote, no null.

    A row that it refuses with `strict` cannot be read: a quote that is not closed, or text behind one that is.
    """
    header, *rows = [row for row in _python(file) if row != []]
    assert header == file.names and header is not None
    return [[*row] if row is not None and len(row) == len(header) else None for row in rows]


def _python(file: CsvFile) -> Iterator[list[str] | None]:
    consumed: list[str] = []

    def lines() -> Iterator[str]:
        for line in io.StringIO(file.text.removeprefix("\ufeff"), newline=""):
            consumed.append(line)
            yield line

    for row in _reader(file.dialect, lines(), strict=False):
        try:
            assert next(_reader(file.dialect, [*consumed, "\n"], strict=True)) == row  # its line end may be escaped
            yield row
        except csv.Error:
            yield None
        consumed.clear()


def _reader(dialect: CsvDialect, lines: Iterable[str], strict: bool) -> Iterator[list[str]]:
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE
    return csv.reader(
        lines, delimiter=dialect.separator, quotechar=dialect.quote or None, escapechar=dialect.escape, quoting=quoting,
        strict=strict,
    )  # fmt: skip


def by_vsc(files: list[CsvFile], rng: Random) -> list[Answer]:
    """What vsc reads of files of one dialect, in batches and chunks that are cut anywhere."""
    first = files[0]
    cells = CsvCells(texts(first.names), first.dialect, "source 's'", ("part",), rng.choice([1, 2, 3, 7, 30, 8 << 20]))
    lines: list[tuple[bytes, str]] = []
    for number, file in enumerate(files):
        end = file.dialect.line_end.encode()
        found = file.text.encode().split(end)
        lines += [(line, str(number)) for line in (found if found[-1] else found[:-1])]
    batches = []
    while lines:
        size = rng.choice([1, 2, 5, 100])
        values, parts = zip(*lines[:size], strict=True)
        batches.append(pa.record_batch([pa.array(values, pa.binary()), pa.array(parts)], names=["value", "part"]))
        lines = lines[size:]
    answers: list[Answer] = [[] for _ in files]
    for batch in cells(batches):
        for row in batch.to_pylist():
            cells_read = [row[f"_vsc_column_{i}"] for i in range(len(first.names))]
            answers[int(row["part"])].append(cells_read if row[BAD] is None else None)
    return answers
