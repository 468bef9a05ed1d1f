"""The topology for Graphviz: stages as clusters, repartitions as bold edges, the reason of a status as tooltip."""

from __future__ import annotations

from vsc.compiler.emit.layout import Place, arrows, description, places, sink_description, sink_places
from vsc.plan import Plan

__all__ = ["emit_dot"]

_LINES = "\n"
_SHAPES = {"stream": "box", "table": "cylinder"}


def emit_dot(plan: Plan) -> str:
    """The text of a directed graph in the DOT language."""
    lines = [f"digraph {_quoted(plan.name)} {{", "  rankdir=LR;", "  node [style=rounded];"]
    for stage in plan.stages:
        lines.append(f"  subgraph cluster_{stage.id} {{")
        lines.append(f'    label="stage {stage.id}";')
        lines.extend(f"    {_box(place)}" for place in places(plan) if place.stage == stage.id)
        lines.append("  }")
    for id_, sink in sink_places(plan):
        lines.append(f"  {id_} [shape=note, label={_quoted(_LINES.join(sink_description(sink)))}];")
    for arrow in arrows(plan):
        look = f' [style=bold, label="{arrow.label}"]' if arrow.label else ""
        lines.append(f"  {arrow.start} -> {arrow.end}{look};")
    return "\n".join([*lines, "}"]) + "\n"


def _box(place: Place) -> str:
    label = _quoted(_LINES.join(description(place.node)))
    status = place.node.status
    tooltip = f", tooltip={_quoted(status.reason)}" if status is not None else ""
    return f"{place.id} [shape={_SHAPES[place.node.kind]}, label={label}{tooltip}];"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
