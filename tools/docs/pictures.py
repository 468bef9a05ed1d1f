"""Draws the first example of each operator's page as it runs: ``python -m tools.docs.pictures``.

A line of a picture is a row of input, in the order in which it comes; from left to right is event time. It shows where
the row lies, where the clock is then, and where what comes out lies. A test says when a picture is out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from tools.docs.operators import DOCS, EXAMPLE, counted, feed, shown
from vsc.plan import Plan
from vsc.plan.clocks import node_clocks
from vsc.plan.expressions import Column
from vsc.plan.nodes import Source
from vsc.testing import TopologyTestDriver

__all__ = ["FOLDER", "pages"]

FOLDER = DOCS / "operators" / "pictures"
_AXIS = 300
"""Pixels of the axis."""
_ROW, _TEXT = 20, 7.3
"""Pixels of a line, and of a character."""
_COLOURS = ("#d9480f", "#7048e8", "#2b8a3e")
"""Of the nodes that are shown."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """What comes of a row: text, with a place where it has one."""

    text: str
    time: int | None = None
    colour: str = ""
    removed: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    """A row of input. `clock`: the highest time of those rows so far that move it."""

    text: str
    time: int | None
    table: bool
    clock: int | None
    marks: tuple[_Mark, ...]


def pages() -> dict[Path, str]:
    """The pictures as they should be."""
    found = {
        path: EXAMPLE.search(path.read_text(encoding="utf-8")) for path in sorted((DOCS / "operators").glob("*.md"))
    }
    return {
        FOLDER / f"{path.stem}.svg": _picture(
            list(_lines(example["topology"], example["nodes"].split(", "), example["input"].splitlines()))
        )
        for path, example in found.items()
        if example is not None
    }


def _lines(topology: str, nodes: list[str], given: list[str]) -> Iterator[_Line]:
    with TopologyTestDriver(topology) as driver:
        clocked = node_clocks(driver.plan)[nodes[0]].sources
        clock: int | None = None
        before: dict[str, int] = {}
        for text in given:
            feed(driver, text)
            now = counted(driver)
            reasons = [reason for reason, n in now.items() for _ in range(n - before.get(reason, 0))]
            before = now
            source, time = text.partition(":")[0], _time(driver.plan, text)
            if time is not None and source in clocked and "null_key" not in reasons:
                clock = time if clock is None else max(clock, time)
            marks = [
                _Mark(
                    f"{node} {shown(record)}" if len(nodes) > 1 else shown(record),
                    record.timestamp,
                    colour,
                    record.value is None,
                )
                for node, colour in zip(nodes, _COLOURS, strict=False)
                for record in driver.read(node)
            ]
            marks += [_Mark(reason) for reason in reasons]
            table = time is not None and driver.plan.node(source).kind == "table"
            yield _Line(text, time, table, clock, tuple(marks))


def _time(plan: Plan, line: str) -> int | None:
    """The event time of a row of input; None for what is not a row."""
    source, colon, values = line.partition(": ")
    if not colon:
        return None
    if values.startswith("delete "):
        return int(values.rpartition(", ")[2])
    operation = plan.node(source).operation
    assert isinstance(operation, Source) and operation.timestamp is not None
    column = operation.timestamp.expr
    assert isinstance(column, Column), f"a time that is not a column: {line}"
    place = [each.name for each in operation.columns].index(column.name)
    return int(values.split(", ")[place])


def _picture(lines: list[_Line]) -> str:
    times = [time for line in lines for time in (line.time, *(mark.time for mark in line.marks)) if time is not None]
    step = _step(max(times) - min(times))
    first, last = min(times) // step * step, -(-max(times) // step) * step
    left = max(len(line.text) for line in lines) * _TEXT + 24
    right = max((len(mark.text) for line in lines for mark in line.marks), default=0) * _TEXT + 30
    top, width = 44, left + _AXIS + right

    def x(time: int) -> float:
        return round(left + _AXIS * (time - first) / (last - first), 1)

    rows = [max(1, len(line.marks)) for line in lines]
    bottom = top + sum(rows) * _ROW + 4
    drawn = [_text(14, 16, "event time in ms", "start", "#868e96")]
    for time in range(first, last + 1, step):
        drawn.append(f'<line x1="{x(time)}" y1="{top - 16}" x2="{x(time)}" y2="{bottom}" stroke="#dee2e6"/>')
        drawn.append(_text(x(time), 16, str(time), "middle", "#868e96"))
    y = top
    for line, height in zip(lines, rows, strict=True):
        drawn += _drawn(line, x, y, height, left)
        y += height * _ROW
    drawn += _legend(bottom + 20, lines)
    size = f'width="{width:.0f}" height="{bottom + 36}" viewBox="0 0 {width:.0f} {bottom + 36}"'
    style = 'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12"'
    card = f'<rect width="{width:.0f}" height="{bottom + 36}" rx="6" fill="#f8f9fa"/>'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', card, *drawn, "</svg>"]) + "\n"


def _drawn(line: _Line, x: Callable[[int], float], top: int, height: int, left: float) -> Iterator[str]:
    """A row of input, and below each other what comes of it."""
    middle, end = top + _ROW / 2, left + _AXIS + 16
    yield _text(left - 16, middle + 4, line.text, "end", "#212529")
    if line.clock is not None:
        at = x(line.clock)
        yield f'<line x1="{at}" y1="{top}" x2="{at}" y2="{top + height * _ROW}" stroke="#868e96" stroke-width="2"/>'
    for number, mark in enumerate(line.marks):
        y = middle + number * _ROW
        if mark.time is not None:
            lead = f'x1="{x(mark.time)}" y1="{y}" x2="{end - 6}" y2="{y}"'
            yield f'<line {lead} stroke="#adb5bd" stroke-dasharray="1 3"/>'
            yield _comes_out(x(mark.time), y, mark.colour, removed=mark.removed)
        elif line.time is not None:
            yield _counted(x(line.time), y)
        yield _text(end, y + 4, mark.text, "start", mark.colour or "#c92a2a")
    if line.time is not None:
        yield _comes_in(x(line.time), middle, table=line.table)


def _comes_in(x: float, y: float, *, table: bool) -> str:
    if table:
        return f'<rect x="{x - 4}" y="{y - 4}" width="8" height="8" fill="#1971c2"/>'
    return f'<circle cx="{x}" cy="{y}" r="4" fill="#1971c2"/>'


def _comes_out(x: float, y: float, colour: str, *, removed: bool) -> str:
    fill = "#f8f9fa" if removed else colour
    points = f"{x},{y - 9} {x + 9},{y} {x},{y + 9} {x - 9},{y}"
    return f'<polygon points="{points}" fill="{fill}" fill-opacity="0.35" stroke="{colour}" stroke-width="1.5"/>'


def _counted(x: float, y: float) -> str:
    cross = f"M{x - 6},{y - 6} l12,12 m-12,0 l12,-12"
    return f'<path d="{cross}" stroke="#c92a2a" stroke-width="2"/>'


def _legend(y: float, lines: list[_Line]) -> Iterator[str]:
    """What the signs are that the picture has."""
    marks = [mark for line in lines for mark in line.marks]
    rows = [line for line in lines if line.time is not None]
    at, colour = 0.0, next((mark.colour for mark in marks if mark.colour), _COLOURS[0])
    for there, sign, text in (
        (any(not line.table for line in rows), _comes_in(14, y, table=False), "a record comes"),
        (any(line.table for line in rows), _comes_in(14, y, table=True), "a table's row comes"),
        (True, _comes_out(14, y, colour, removed=False), "comes out"),
        (any(mark.removed for mark in marks), _comes_out(14, y, colour, removed=True), "removed"),
        (any(mark.time is None for mark in marks), _counted(14, y), "counted"),
        (True, f'<line x1="14" y1="{y - 8}" x2="14" y2="{y + 8}" stroke="#868e96" stroke-width="2"/>', "the clock"),
    ):
        if there:
            yield f'<g transform="translate({at:.1f} 0)">{sign}{_text(26, y + 4, text, "start", "#495057")}</g>'
            at += len(text) * _TEXT + 40


def _step(span: int) -> int:
    """How far the lines of the axis are apart: some four of them, at round times."""
    unit = 1
    while span / unit > 50:
        unit *= 10
    return next(unit * n for n in (1, 2, 5, 10, 20) if span / (unit * n) <= 5)


def _text(x: float, y: float, text: str, anchor: str, colour: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
