"""Diagnostics for people: the source line, a mark under the place, the cause, and the one thing to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from vsc.compiler.diagnostics.model import Diagnostic
from vsc.compiler.source import SourceFile

__all__ = ["render_text", "summary", "visible"]

_TAB = 4
_RED, _YELLOW, _BLUE, _CYAN, _BOLD = "31", "33", "34", "36", "1"


class _Mark(NamedTuple):
    """Something to show under a line: from `start` to `end` (columns, 1-based, exclusive)."""

    start: int
    end: int
    sign: str
    message: str


def render_text(diagnostics: Iterable[Diagnostic], sources: Mapping[str, SourceFile], color: bool = False) -> str:
    """All diagnostics, one after the other. `sources` are the files by the paths that the diagnostics show.

    Marks stand under what they mean whatever the width of the characters before; tabs are shown as four columns.
    With `color` the text holds ANSI escapes; none come from the source itself.
    """
    return "".join(_one(diagnostic, sources.get(diagnostic.path), _Paint(color)) + "\n" for diagnostic in diagnostics)


def summary(diagnostics: Iterable[Diagnostic]) -> str:
    """``2 errors, 1 warning``; ``no findings``."""
    counts = {"error": 0, "warning": 0}
    for diagnostic in diagnostics:
        counts[diagnostic.severity] += 1
    parts = [f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts.items() if count]
    return ", ".join(parts) or "no findings"


def visible(text: str) -> str:
    """`text` without characters that would do something to a terminal; they are shown as their code points."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else f"<U+{ord(c):04X}>" for c in text)


class _Paint:
    def __init__(self, color: bool) -> None:
        self.color = color

    def __call__(self, text: str, *styles: str) -> str:
        return f"\x1b[{';'.join(styles)}m{text}\x1b[0m" if self.color and text else text


def _one(diagnostic: Diagnostic, source: SourceFile | None, paint: _Paint) -> str:
    hue = _RED if diagnostic.severity == "error" else _YELLOW
    head = paint(f"{diagnostic.severity}[{diagnostic.code}]", _BOLD, hue)
    lines = [f"{head}{paint(': ' + visible(diagnostic.message), _BOLD)}"]
    marks = _marks(diagnostic, source) if source is not None else {}
    margin = " " * len(str(max(marks, default=diagnostic.line)))
    bar = paint("|", _BLUE)
    place = f"{visible(diagnostic.path)}:{diagnostic.line}:{diagnostic.column}"
    lines.append(f"{margin}{paint('-->', _BLUE)} {place}")
    if source is not None and marks:
        lines.append(f"{margin} {bar}")
        before = None
        for number in sorted(marks):
            if before is not None and number > before + 1:
                lines.append(paint("...", _BLUE))
            before = number
            lines += _marked_line(source.line(number), number, marks[number], len(margin), hue, paint)
    if diagnostic.help is not None:
        if marks:
            lines.append(f"{margin} {bar}")
        lines.append(f"{margin} {paint('=', _BLUE)} {paint('help', _BOLD, _CYAN)}: {visible(diagnostic.help)}")
    return "\n".join(lines) + "\n"


def _marks(diagnostic: Diagnostic, source: SourceFile) -> dict[int, list[_Mark]]:
    """What to show under which line; a place over several lines is shown by its first."""
    marks: dict[int, list[_Mark]] = {}
    places = [(diagnostic.line, diagnostic.column, diagnostic.end_line, diagnostic.end_column, "^", "")]
    places += [(r.line, r.column, r.end_line, r.end_column, "-", r.message) for r in diagnostic.related]
    for line, column, end_line, end_column, sign, message in places:
        end = end_column if end_line == line else len(source.line(line)) + 1
        marks.setdefault(line, []).append(_Mark(column, max(end, column + 1), sign, message))
    return marks


def _marked_line(text: str, number: int, marks: list[_Mark], width: int, hue: str, paint: _Paint) -> list[str]:
    shown, columns = _layout(text)
    lines = [f"{paint(f'{number:>{width}} |', _BLUE)} {shown}".rstrip()]
    for mark in marks:
        start = _column(columns, mark.start)
        length = max(_column(columns, mark.end) - start, 1)
        sign = paint(mark.sign * length + (" " + visible(mark.message) if mark.message else ""),
                     hue if mark.sign == "^" else _BLUE)  # fmt: skip
        lines.append(f"{' ' * width} {paint('|', _BLUE)} {' ' * start}{sign}")
    return lines


def _layout(text: str) -> tuple[str, list[int]]:
    """The line as it is shown, and the screen column at which each of its characters begins (and the end)."""
    if text.isascii() and text.isprintable():
        return text, list(range(len(text) + 1))
    shown, columns, at = [], [], 0
    for character in text:
        columns.append(at)
        piece = " " * (_TAB - at % _TAB) if character == "\t" else visible(character)
        shown.append(piece)
        at += len(piece) if len(piece) != 1 else _width(character)
    return "".join(shown), [*columns, at]


def _width(character: str) -> int:
    """How many columns a printable character takes on a screen."""
    if character.isascii():
        return 1
    import unicodedata  # rarely needed

    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _column(columns: list[int], column: int) -> int:
    """The screen column of a 1-based source column, which may lie one behind the end of the line."""
    index = column - 1
    return columns[index] if index < len(columns) else columns[-1] + index - (len(columns) - 1)
