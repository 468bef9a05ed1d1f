"""The topology as a Mermaid flowchart: stages as boxes, repartitions as thick arrows, reasons on hover."""

from __future__ import annotations

from collections.abc import Sequence

from vsc.compiler.emit.layout import Place, arrows, description, places, sink_description, sink_places
from vsc.plan import Plan

__all__ = ["emit_mermaid"]

_SHAPES = {"stream": ("([", "])"), "table": ("[(", ")]")}


def emit_mermaid(plan: Plan) -> str:
    """The text of a flowchart; whatever a name holds, it stays a label."""
    lines = ["flowchart LR"]
    for stage in plan.stages:
        lines.append(f'  subgraph stage{stage.id} ["stage {stage.id}"]')
        lines.extend(f"    {_box(place)}" for place in places(plan) if place.stage == stage.id)
        lines.append("  end")
    for id_, sink in sink_places(plan):
        lines.append(f'  {id_}[/"{_label(sink_description(sink))}"/]')
    for arrow in arrows(plan):
        way = f"== {arrow.label} ==>" if arrow.label else "-->"
        lines.append(f"  {arrow.start} {way} {arrow.end}")
    for place in places(plan):
        if place.node.status is not None:
            lines.append(f'  click {place.id} href "#" "{_escaped(place.node.status.reason)}"')
    return "\n".join(lines) + "\n"


def _box(place: Place) -> str:
    opening, closing = _SHAPES[place.node.kind]
    return f'{place.id}{opening}"{_label(description(place.node))}"{closing}'


def _label(lines: Sequence[str]) -> str:
    return "<br/>".join(map(_escaped, lines))


def _escaped(text: str) -> str:
    """Mermaid's way of writing a character by its number; letters, digits, spaces and what is harmless stay."""
    return "".join(c if c.isalnum() or c in " _-.,:()/=" else f"#{ord(c)};" for c in text)
