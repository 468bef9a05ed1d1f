"""Renders a drawing as a Mermaid flowchart: bands as subgraphs, tooltips on hover."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vsc.compiler.emit.drawing import Box, Drawing

__all__ = ["mermaid"]

_SHAPES = {"stream": ("([", "])"), "table": ("[(", ")]"), "global table": ("[(", ")]"), "sink": ("[/", "/]")}
_WAYS = {
    "plain": "-->",
    "repartition": "== repartition ==>",
    "broadcast": "== broadcast ==>",
    "lookup": "-.->",
    "lost": "-. lost .->",
}


def mermaid(drawing: Drawing) -> str:
    """The text of a flowchart. Names are escaped, so that they can only be labels."""
    lines = ["flowchart TD"]
    for number, title in enumerate(drawing.bands):
        lines.extend(_band(number, title, drawing))
    lines.extend(f"  {arrow.start} {_WAYS[arrow.look]} {arrow.end}" for arrow in drawing.arrows)
    lines.extend(f'  click {box.id} href "#" "{_escaped(box.tooltip)}"' for box in drawing.boxes if box.tooltip)
    return "\n".join(lines) + "\n"


def _band(number: int, title: str, drawing: Drawing) -> Iterator[str]:
    boxes = (box for box in drawing.boxes if box.band == number)
    if not title:
        yield from (f"  {_box(box)}" for box in boxes)
        return
    yield f'  subgraph band{number} ["{_escaped(title)}"]'
    yield from (f"    {_box(box)}" for box in boxes)
    yield "  end"


def _box(box: Box) -> str:
    opening, closing = _SHAPES[box.kind]
    return f'{box.id}{opening}"{_label(box.lines)}"{closing}'


def _label(lines: Sequence[str]) -> str:
    return "<br/>".join(map(_escaped, lines))


def _escaped(text: str) -> str:
    """`text` with characters written by number, as Mermaid does; letters, digits and harmless characters stay."""
    return "".join(c if c.isalnum() or c in " _-.,:()/=" else f"#{ord(c)};" for c in text)
