"""How a CSV file is written: its special characters, and where its records end.

Guarantees: `record_ends` ends records where pyarrow's parser and Python's ``csv`` do, so a file may be cut there and
nowhere else. A line ends in ``\\n``, ``\\r\\n`` or ``\\r``. A quote opens a cell only as its first character; elsewhere
in a cell that is not quoted it is text. `records` also finds what Python's ``csv`` refuses with ``strict``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vsc.plan.connectors.files import CELL_TEXTS, cell_problems
from vsc.runtime.errors import SourceError
from vsc.runtime.records import Int64s

__all__ = ["CsvDialect", "record_ends", "records"]

_LF, _CR = 10, 13


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """Spark's options and defaults; without a `quote` no character is one."""

    separator: str = ","
    quote: str = '"'
    escape: str | None = None
    """Makes the next character text, in a quoted cell or outside; a doubled quote is one quote in any case."""
    null: str = ""
    """A cell that is null, besides the empty one, unless it is quoted."""
    line_end: str = "\n"
    """Where Spark cuts a file into values."""

    @classmethod
    def of(cls, options: dict[str, str], place: str) -> CsvDialect:
        """The dialect that Spark's options describe. Raises SourceError, starting with `place`, if invalid."""
        for problem in cell_problems(options):
            raise SourceError(f"{place}: {problem.message}", problem.help)
        written = {name.lower(): CELL_TEXTS.get(value, value) for name, value in options.items()}
        separator = written.get("sep", written.get("delimiter", ","))
        quote = written.get("quote", '"')
        escape = written.get("escape", "")
        line_end = written.get("linesep", "\n")
        return cls(separator, quote, None if escape in ("", quote) else escape, written.get("nullvalue", ""), line_end)


def record_ends(data: bytes, dialect: CsvDialect) -> Int64s:
    """The places just after each record and blank line of `data`, which begins with one.

    A ``\\r`` at the very end counts as none, as ``\\n`` may follow.
    """
    return records(data, dialect)[0]


def records(data: bytes, dialect: CsvDialect) -> tuple[Int64s, Int64s]:
    """`record_ends`, and the places of text between a closing quote and the end of its cell, as in ``"5" pipe",``.

    Readers differ in what they make of such a cell: most likely its quotes are not doubled.
    """
    codes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(codes == _LF)
    if b"\r" in data:
        returns = np.flatnonzero(codes[:-1] == _CR)
        ends = np.sort(np.concatenate([ends, returns[codes[returns + 1] != _LF]]))
    text = _escaped(codes, dialect.escape)
    if text is not None:
        ends = ends[~text[ends]]
    quotes = _quotes(codes, text, dialect)
    if not len(quotes):
        return ends + 1, quotes
    behind = quotes[1::2] + 1
    behind = behind[: np.searchsorted(behind, len(codes))]
    after = codes[behind]
    ended = (after == ord(dialect.separator)) | (after == ord(dialect.quote)) | (after == _LF) | (after == _CR)
    return ends[np.searchsorted(quotes, ends) % 2 == 0] + 1, behind[~ended]


def _escaped(codes: np.ndarray, escape: str | None) -> np.ndarray | None:
    """Which characters an escape makes text."""
    if escape is None:
        return None
    places = np.flatnonzero(codes == ord(escape))
    numbers = np.arange(len(places))
    starts = np.diff(places, prepend=-2) != 1
    in_run = numbers - np.maximum.accumulate(np.where(starts, numbers, 0))
    found = np.zeros(len(codes) + 1, np.bool_)
    found[places[in_run % 2 == 0] + 1] = True
    return found


def _quotes(codes: np.ndarray, text: np.ndarray | None, dialect: CsvDialect) -> Int64s:
    """The places of the quotes that open a cell and of those that close one, in turns.

    A doubled quote closes the cell and opens it again.
    """
    if not dialect.quote:
        return np.empty(0, np.int64)
    places = np.flatnonzero(codes == ord(dialect.quote))
    if text is not None:
        places = places[~text[places]]
    before = codes[places - 1]
    first = (before == ord(dialect.separator)) | (before == _LF) | (before == _CR)
    if text is not None:
        first &= ~text[places - 1]
    first |= places == 0
    doubled = np.diff(places, prepend=-2) == 1
    if (first | doubled)[::2].all():
        return places
    return _taking_turns(places, first)


def _taking_turns(places: Int64s, first: np.ndarray) -> Int64s:
    """The quotes that open and close a field, where others are mere text: one by one."""
    turns: list[int] = []
    closed = -2
    for place, is_first in zip(places.tolist(), first.tolist(), strict=True):
        if len(turns) % 2:
            closed = place
            turns.append(place)
        elif is_first or place == closed + 1:
            turns.append(place)
    return np.array(turns, np.int64)
