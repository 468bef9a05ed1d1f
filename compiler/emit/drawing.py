"""A picture before it is drawn: boxes and arrows, independent of the output format.

`logical` and `physical` decide what it shows; `svg`, `dot` and `mermaid` decide how it looks.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal as Choice

from vsc.plan import Connector, DeadLetters, Node
from vsc.plan.record import record

__all__ = [
    "FILLS",
    "NOTES",
    "Arrow",
    "Box",
    "Drawing",
    "Look",
    "columns_of",
    "lost_by",
    "narrow",
    "sink_lines",
    "where",
]

_LONGEST = 40
_WRAP = 36
_INDENT = "\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}"

Look = Choice["plain", "repartition", "broadcast", "lookup", "lost"]
NOTES: dict[Look, str] = {
    "repartition": "repartitioned by key",
    "broadcast": "broadcast to every partition",
    "lookup": "looked up",
    "lost": "what it loses",
}
"""The labels of arrows that are not plain."""
FILLS = {"stream": "#e8f1fb", "table": "#fdf3e0", "global table": "#f3e8fb", "sink": "#eeeeee"}
"""The colours of boxes, by kind."""


@record
class Box:
    """A node or a sink. `id` has only letters, digits and `_`, so that no name can break a picture.

    `lines` is its text, the name first. `band` is an index into `Drawing.bands`.
    """

    id: str
    kind: Choice["stream", "table", "global table", "sink"]
    lines: tuple[str, ...]
    tooltip: str = ""
    band: int = 0


@record
class Arrow:
    """Records go from the box `start` to the box `end`."""

    start: str
    end: str
    look: Look = "plain"


@record
class Drawing:
    """A whole picture. In `boxes`, each box comes after all boxes that have arrows to it.

    `bands` has the titles of the groups of boxes, first to last; a group without a title has no frame. Arrows go from a
    band to the same or a later band.
    """

    name: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    bands: tuple[str, ...] = ("",)


def sink_lines(connector: Connector) -> tuple[str, ...]:
    """A short description of a sink: its connector, and where it writes."""
    place = where(connector)
    return (connector.kind, "sink") if place is None else (connector.kind, "sink", place)


def lost_by(node: Node) -> str | None:
    """The node whose lost records `node` holds; None if it holds those of all nodes, or no lost records."""
    return node.operation.of if isinstance(node.operation, DeadLetters) else None


def where(connector: Connector) -> str | None:
    """The path, topic or table of a connector; only the end of a long one."""
    options = dict(connector.options)
    found = next((str(options[name]) for name in ("path", "topic", "table") if name in options), None)
    return "..." + found[3 - _LONGEST :] if found is not None and len(found) > _LONGEST else found


def columns_of(text: str) -> int:
    """How many columns a text takes in a monospaced font."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def narrow(drawing: Drawing) -> Drawing:
    """The drawing with long lines of text wrapped, for formats that do not wrap text."""
    boxes = (replace(box, lines=tuple(part for line in box.lines for part in _wrapped(line))) for box in drawing.boxes)
    return replace(drawing, boxes=tuple(boxes))


def _wrapped(text: str) -> Iterator[str]:
    """Wraps the text into lines. All lines but the first are indented; words that are too long are cut."""
    lines = [""]
    for word in text.split():
        rest = word
        if lines[-1].strip():
            if columns_of(f"{lines[-1]} {rest}") <= _WRAP:
                lines[-1] += f" {rest}"
                continue
            lines.append(_INDENT)
        for character in rest:
            if columns_of(lines[-1] + character) > _WRAP:
                lines.append(_INDENT)
            lines[-1] += character
    yield from lines
