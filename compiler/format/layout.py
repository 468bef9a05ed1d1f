"""Lays out text that has possible line breaks: a group stands on one line if it fits (Wadler 2003).

A `Line` breaks if the innermost `Group` around it does not fit into the width. A comment breaks every group around it,
and ends its line.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SOFT", "SPACE", "Comment", "Doc", "Group", "Indent", "Line", "Sequence", "layout"]

INDENT = "  "


@dataclass(frozen=True, slots=True)
class Line:
    """A possible line break: `flat` if its group is on one line, else a line break, or `broken` if that is given."""

    flat: str
    broken: str | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment: `inline` at the end of a line, otherwise on its own line."""

    text: str
    inline: bool


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts in sequence."""

    parts: tuple[Doc, ...]


@dataclass(frozen=True, slots=True)
class Indent:
    """Lines that begin inside it are indented by one more level."""

    inner: Doc


@dataclass(frozen=True, slots=True)
class Group:
    """Breaks at all of its lines or at none of them. `breaks` is true if it can never stand on one line."""

    inner: Doc
    breaks: bool


Doc = str | Line | Comment | Sequence | Indent | Group
_Waiting = list[tuple[int, bool, Doc]]

SPACE = Line(" ", " ")
SOFT = Line("")


def layout(doc: Doc, width: int) -> str:
    """The text of `doc`."""
    out = _Output()
    waiting: _Waiting = [(0, False, doc)]
    while waiting:
        depth, flat, doc = waiting.pop()
        if isinstance(doc, str):
            out.write(depth, doc)
        elif isinstance(doc, Line):
            if flat or doc.broken is not None:
                out.space += doc.flat if flat else doc.broken or ""
            else:
                out.end_line()
        elif isinstance(doc, Comment):
            out.comment(depth, doc)
        elif isinstance(doc, Sequence):
            waiting.extend((depth, flat, part) for part in reversed(doc.parts))
        elif isinstance(doc, Indent):
            waiting.append((depth + 1, flat, doc.inner))
        else:
            fits = flat or (not doc.breaks and _fits(doc.inner, waiting, width - out.column(depth)))
            waiting.append((depth, fits, doc.inner))
    return "".join(out.parts)


def _fits(doc: Doc, after: _Waiting, room: int) -> bool:
    """Whether `doc` on one line, and the text after it up to the next break, fit into `room` columns."""
    parts: list[tuple[bool, Doc]] = [(True, doc)]
    place = len(after)
    while room >= 0:
        if not parts:
            if place == 0:
                return True
            place -= 1
            parts.append(after[place][1:])
        flat, part = parts.pop()
        if isinstance(part, str):
            first, newline, _ = part.partition("\n")
            if newline:  # a string that spans several lines
                return place < len(after) and len(first) <= room
            room -= len(part)
        elif isinstance(part, Line):
            if not flat and part.broken is None:
                return True
            room -= len(part.flat if flat else part.broken or "")
        elif isinstance(part, Comment):
            return True
        elif isinstance(part, Sequence):
            parts.extend((flat, one) for one in reversed(part.parts))
        else:
            parts.append((flat, part.inner))
    return False


class _Output:
    """The output so far. Blanks are written only before other text, never at the end of a line."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.space = ""
        self._column = 0  # 0: the line is empty
        self._ended = False  # the line ends with a comment

    def column(self, depth: int) -> int:
        return self._column + len(self.space) if self._column else len(INDENT) * depth

    def write(self, depth: int, text: str) -> None:
        if self._ended:
            self.end_line()
        lead = self.space if self._column else INDENT * depth
        self.parts += (lead, text)
        newline = text.rfind("\n")
        self._column = len(text) - newline - 1 if newline >= 0 else self._column + len(lead) + len(text)
        self.space = ""

    def comment(self, depth: int, comment: Comment) -> None:
        if comment.inline and self._column:
            self.space = " "
        else:
            self.end_line()
        self.write(depth, comment.text)
        self._ended = True

    def end_line(self) -> None:
        if self._column:
            self.parts.append("\n")
        self._column, self._ended, self.space = 0, False, ""
