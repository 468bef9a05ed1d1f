"""Source text and places in it.

A `Span` is a half-open range of character offsets; a `SourceFile` turns offsets into lines and columns, 1-based and
counted in characters, as editors show them.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from vsc.plan.record import record

__all__ = ["Position", "SourceFile", "Span"]


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Characters ``start`` to ``end`` (exclusive) of a source file."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The smallest span that holds both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


@record
class Position:
    """A line and a column, both 1-based."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The text of one topology and the path that messages show for it."""

    path: str
    text: str
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        starts = [0]
        starts.extend(i + 1 for i, character in enumerate(self.text) if character == "\n")
        object.__setattr__(self, "_starts", tuple(starts))

    def position(self, offset: int) -> Position:
        """The line and column of the character at `offset` (one past the end is allowed)."""
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of line `number`, without its line end; empty past the end of the file."""
        if not 1 <= number <= len(self._starts):
            return ""
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r")

    def slice(self, span: Span) -> str:
        """The text of `span`."""
        return self.text[span.start : span.end]
