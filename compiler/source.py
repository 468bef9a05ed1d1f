"""Source text and places in it.

A `Span` is a half-open range of character offsets; a `SourceFile` turns offsets into lines and columns, 1-based and
counted in characters, as editors show them. The texts of included files stand behind the text of the topology, so
that one offset is a place in any of them.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from vsc.plan.record import record

__all__ = ["Included", "Position", "SourceFile", "Span"]


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


@record
class Included:
    """A file that is included: its path, the offset at which its text begins, and the statement that includes it."""

    path: str
    start: int
    by: Span


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The text of a topology and the path that messages show for it.

    `included` are the files whose texts stand behind its own in `text`, each on a new line, in that order.
    """

    path: str
    text: str
    included: tuple[Included, ...] = ()
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        starts = [0]
        starts.extend(i + 1 for i, character in enumerate(self.text) if character == "\n")
        object.__setattr__(self, "_starts", tuple(starts))

    def position(self, offset: int) -> Position:
        """The line and column in its file of the character at `offset` (one past the end is allowed)."""
        line = bisect_right(self._starts, offset)
        part = self._part(offset)
        before = 0 if part is None else bisect_right(self._starts, part.start) - 1
        return Position(line - before, offset - self._starts[line - 1] + 1)

    def path_of(self, offset: int) -> str:
        """The path of the file in which `offset` is."""
        part = self._part(offset)
        return self.path if part is None else part.path

    def own(self, span: Span) -> Span:
        """`span`, or the statement of the topology itself that includes it."""
        part = self._part(span.start)
        return span if part is None else self.own(part.by)

    def line_of(self, span: Span) -> int:
        """The line of the topology itself on which `span`, or what includes it, begins."""
        return self.position(self.own(span).start).line

    def files(self) -> dict[str, SourceFile]:
        """The topology and the included files, each by itself, by their paths."""
        ends = [*(part.start - 1 for part in self.included), len(self.text)]
        starts = [(self.path, 0), *((part.path, part.start) for part in self.included)]
        return {path: SourceFile(path, self.text[at:end]) for (path, at), end in zip(starts, ends, strict=True)}

    def _part(self, offset: int) -> Included | None:
        place = bisect_right(self.included, offset, key=lambda part: part.start)
        return self.included[place - 1] if place else None

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
