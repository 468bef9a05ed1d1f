"""Renders a drawing for Graphviz: bands as clusters, top to bottom."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler.emit.drawing import FILLS, NOTES, Arrow, Box, Drawing, narrow

__all__ = ["dot"]

_STYLES = {"repartition": "bold", "broadcast": "dotted", "lookup": "dashed", "lost": "dashed"}
_NODE = 'shape=box, style="rounded,filled", fontname=monospace, fontsize=12'
_WIDTH = "14.5,1000"
"""The maximum size, in inches of 96 pixels. Graphviz shrinks a wider picture."""


def dot(drawing: Drawing) -> str:
    """The text of a directed graph in the DOT language."""
    drawing = narrow(drawing)
    lines = [f"digraph {_quoted(drawing.name)} {{", f'  size="{_WIDTH}";', f"  node [{_NODE}];"]
    for number, title in enumerate(drawing.bands):
        lines.extend(_band(number, title, drawing))
    lines.extend(f"  {_arrow(arrow)}" for arrow in drawing.arrows)
    return "\n".join([*lines, "}"]) + "\n"


def _band(number: int, title: str, drawing: Drawing) -> Iterator[str]:
    boxes = (box for box in drawing.boxes if box.band == number)
    if not title:
        yield from (f"  {_box(box)}" for box in boxes)
        return
    yield f"  subgraph cluster_{number} {{"
    yield f"    label={_quoted(title)};"
    yield from (f"    {_box(box)}" for box in boxes)
    yield "  }"


def _box(box: Box) -> str:
    label = "".join(f"{_escaped(line)}\\l" for line in box.lines)  # \l: flush left
    tooltip = f", tooltip={_quoted(box.tooltip)}" if box.tooltip else ""
    return f'{box.id} [label="{label}", fillcolor="{FILLS[box.kind]}"{tooltip}];'


def _arrow(arrow: Arrow) -> str:
    look = "" if arrow.look == "plain" else f" [style={_STYLES[arrow.look]}, tooltip={_quoted(NOTES[arrow.look])}]"
    return f"{arrow.start} -> {arrow.end}{look};"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
