"""Renders diagnostics for people: the source line, a mark under the place, the cause, and the one thing to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from vsc.compiler.diagnostics.model import Diagnostic, Severity
from vsc.compiler.source import SourceFile

__all__ = ["MOST", "render_problem", "render_text", "summary", "visible"]

MOST = 20
"""How many diagnostics of one file are shown. More usually share a cause with these, or the file is not a topology."""

_TAB = 4
_WIDE = 160
"""How many characters of a line are shown. A longer line is cut around the mark."""
_BEFORE = 40
"""How many characters are shown before the mark if the line is cut there."""
_RED, _YELLOW, _BLUE, _CYAN, _BOLD = "31", "33", "34", "36", "1"
_HUES: dict[Severity, str] = {"error": _RED, "warning": _YELLOW}


class _Mark(NamedTuple):
    """Something to show under a line, from column `start` to `end` (1-based, the end is exclusive)."""

    start: int
    end: int
    sign: str
    message: str


def render_text(diagnostics: Iterable[Diagnostic], sources: Mapping[str, SourceFile], color: bool = False) -> str:
    """Renders all diagnostics in order. `sources` maps the paths in the diagnostics to the files.

    Marks stand under the right characters even after wide ones; tabs are shown as four columns. With `color` the text
    contains ANSI escapes, but never any from the source itself. If a file has more than `MOST` diagnostics, errors are
    shown in preference to warnings, and a line says how many more there are.
    """
    found: dict[str, list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        found.setdefault(diagnostic.path, []).append(diagnostic)
    return "".join(_of_file(of_file, sources.get(path), _Paint(color)) for path, of_file in found.items())


def render_problem(severity: Severity, code: str | None, message: str, help: str | None, color: bool = False) -> str:
    """Renders, in the same form, a problem without a place in a topology."""
    paint = _Paint(color)
    lines = [_head(severity, code, "\n".join(map(visible, message.splitlines())), paint)]
    if help is not None:
        lines.append(f" {_help(help, paint)}")
    return "\n".join(lines)


def _of_file(diagnostics: Sequence[Diagnostic], source: SourceFile | None, paint: _Paint) -> str:
    shown = diagnostics
    if len(diagnostics) > MOST:
        serious = sorted(diagnostics, key=lambda diagnostic: diagnostic.severity != "error")
        kept = {id(diagnostic) for diagnostic in serious[:MOST]}
        shown = [diagnostic for diagnostic in diagnostics if id(diagnostic) in kept]
    text = "".join(_one(diagnostic, source, paint) + "\n" for diagnostic in shown)
    if len(shown) < len(diagnostics):
        more = summary(serious[MOST:])
        text += f"and {more} more in {visible(diagnostics[0].path)}: `vsc check --format concise` lists all of them\n\n"
    return text


def summary(diagnostics: Iterable[Diagnostic]) -> str:
    """The number of findings, such as ``2 errors, 1 warning`` or ``no findings``."""
    counts = {"error": 0, "warning": 0}
    for diagnostic in diagnostics:
        counts[diagnostic.severity] += 1
    parts = [f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts.items() if count]
    return ", ".join(parts) or "no findings"


def visible(text: str) -> str:
    """`text` with unprintable characters, which could control a terminal, replaced by their code points."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else f"<U+{ord(c):04X}>" for c in text)


class _Paint:
    def __init__(self, color: bool) -> None:
        self.color = color

    def __call__(self, text: str, *styles: str) -> str:
        return f"\x1b[{';'.join(styles)}m{text}\x1b[0m" if self.color and text else text


def _one(diagnostic: Diagnostic, source: SourceFile | None, paint: _Paint) -> str:
    hue = _HUES[diagnostic.severity]
    lines = [_head(diagnostic.severity, diagnostic.code, visible(diagnostic.message), paint)]
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
    for r in diagnostic.related:
        if r.path != diagnostic.path:
            lines.append(f"{margin} {paint('=', _BLUE)} {visible(r.path)}:{r.line}:{r.column}: {visible(r.message)}")
    if diagnostic.help is not None:
        if marks:
            lines.append(f"{margin} {bar}")
        lines.append(f"{margin} {_help(diagnostic.help, paint)}")
    return "\n".join(lines) + "\n"


def _head(severity: Severity, code: str | None, message: str, paint: _Paint) -> str:
    label = severity if code is None else f"{severity}[{code}]"
    return paint(label, _BOLD, _HUES[severity]) + paint(f": {message}", _BOLD)


def _help(help: str, paint: _Paint) -> str:
    return f"{paint('=', _BLUE)} {paint('help', _BOLD, _CYAN)}: {visible(help)}"


def _marks(diagnostic: Diagnostic, source: SourceFile) -> dict[int, list[_Mark]]:
    """The marks for each line. A place that spans several lines is marked on its first."""
    marks: dict[int, list[_Mark]] = {}
    places = [(diagnostic.line, diagnostic.column, diagnostic.end_line, diagnostic.end_column, "^", "")]
    here = [r for r in diagnostic.related if r.path == diagnostic.path]
    places += [(r.line, r.column, r.end_line, r.end_column, "-", r.message) for r in here]
    for line, column, end_line, end_column, sign, message in places:
        end = end_column if end_line == line else len(source.line(line)) + 1
        marks.setdefault(line, []).append(_Mark(column, max(end, column + 1), sign, message))
    return marks


def _marked_line(text: str, number: int, marks: list[_Mark], width: int, hue: str, paint: _Paint) -> list[str]:
    if len(text) > _WIDE and len(marks) > 1:  # show each mark with its own part of the line
        return [line for mark in marks for line in _marked_line(text, number, [mark], width, hue, paint)]
    if len(text) > _WIDE:
        text, marks = _cut(text, marks[0])
    shown, columns = _layout(text)
    lines = [f"{paint(f'{number:>{width}} |', _BLUE)} {shown}".rstrip()]
    for mark in marks:
        start = _column(columns, mark.start)
        length = max(_column(columns, mark.end) - start, 1)
        sign = paint(mark.sign * length + (" " + visible(mark.message) if mark.message else ""),
                     hue if mark.sign == "^" else _BLUE)  # fmt: skip
        lines.append(f"{' ' * width} {paint('|', _BLUE)} {' ' * start}{sign}")
    return lines


def _cut(text: str, mark: _Mark) -> tuple[str, list[_Mark]]:
    """The part of a long line around a mark, and the mark moved to fit it."""
    start = max(0, min(mark.start - 1 - _BEFORE, len(text) - _WIDE))
    end = min(start + _WIDE, len(text))
    head, tail = "..." * (start > 0), "..." * (end < len(text))
    shift = len(head) - start
    moved = mark._replace(start=mark.start + shift, end=min(mark.end, end + 1) + shift)
    return head + text[start:end] + tail, [moved]


def _layout(text: str) -> tuple[str, list[int]]:
    """The line as shown, and the screen column at which each character begins, plus the column of the end."""
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
    """How many screen columns a printable character takes."""
    if character.isascii():
        return 1
    import unicodedata  # rarely needed

    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _column(columns: list[int], column: int) -> int:
    """The screen column of a 1-based source column, which may be one past the end of the line."""
    index = column - 1
    return columns[index] if index < len(columns) else columns[-1] + index - (len(columns) - 1)
