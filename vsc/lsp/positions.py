"""Places as editors count them: lines from 0 (ending with LF, CRLF or CR), and in a line the units of an encoding."""

from __future__ import annotations

import re
from bisect import bisect_right

from lsprotocol.types import Position, Range

from vsc.compiler.source import Span

__all__ = ["Positions"]

_CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
"""The codec of each encoding, and the size of its unit in bytes."""

_LINE_END = re.compile(r"\r\n|\n|\r")


class Positions:
    """Converts character offsets in a text to editors' positions and back.

    `encoding` is the one whose units the editor counts: UTF-16, unless it has asked for another.
    """

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self._text = text
        self._codec, self._size = _CODECS[encoding]
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]

    def position(self, offset: int) -> Position:
        """The position of the character at `offset`."""
        line = bisect_right(self._starts, offset) - 1
        return Position(line, self._units(self._text[self._starts[line] : offset]))

    def range(self, span: Span) -> Range:
        """The range of a span."""
        return Range(self.position(span.start), self.position(span.end))

    def whole(self) -> Range:
        """The range of the whole text."""
        return self.range(Span(0, len(self._text)))

    def offset(self, position: Position) -> int:
        """The offset of a position; for a position past the end of its line, the end's offset."""
        if position.line >= len(self._starts):
            return len(self._text)
        start = self._starts[position.line]
        end = _LINE_END.search(self._text, start)
        left = position.character
        for offset in range(start, len(self._text) if end is None else end.start()):
            if left <= 0:
                return offset
            left -= self._units(self._text[offset])
        return len(self._text) if end is None else end.start()

    def _units(self, text: str) -> int:
        return len(text.encode(self._codec, "surrogatepass")) // self._size
