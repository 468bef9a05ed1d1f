"""Sources whose `time_zone` changes nothing (VSC321)."""

from __future__ import annotations

from collections.abc import Container, Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named, string
from vsc.compiler.passes.shapes import Shape, Shapes
from vsc.compiler.topology import Topology
from vsc.plan.expressions import Call, Column, Literal, parts
from vsc.plan.types import STRING, TIMESTAMP, types_in

__all__ = ["check_zones"]

_BY_PATTERN = ("to_timestamp", "try_to_timestamp")


def check_zones(topology: Topology, shapes: Shapes, sources: Container[str]) -> Iterator[Finding]:
    """Sources with a `time_zone`, and without a column of times that it applies to; `sources` have valid options."""
    for name, declaration in topology.nodes.items():
        if not isinstance(declaration, syntax.SourceDecl) or name not in sources:
            continue
        zones = [o for o in declaration.connector.options if o.name.text == "time_zone" and not o.quoted]
        if zones and not any(TIMESTAMP in types_in(column.type.type) for column in declaration.columns):
            yield _unused(zones[0], declaration, shapes.get(name))


def _unused(zone: syntax.Option, declaration: syntax.SourceDecl, shape: Shape | None) -> Finding:
    message = f"this `time_zone` changes nothing: `{declaration.name.text}` has no `timestamp` column"
    read = [] if shape is None or shape.timestamp is None else list(parts(shape.timestamp.expr))
    names = {part.name for part in read if isinstance(part, Column)}
    text = next((c for c in declaration.columns if c.name.text in names and c.type.type == STRING), None)
    if text is None:
        return Finding("VSC321", zone.span, message, (), "declare the times as `timestamp`, or remove it")
    label = Label(text.span, "the times are in this text, and expressions take them for UTC")
    help = f"write {code(f'{named(text.name.text)} timestamp')}"
    patterns = [part.args[1] for part in read if isinstance(part, Call) and part.function in _BY_PATTERN]
    if patterns and isinstance(patterns[0], Literal):
        option = f"'timestampFormat' = {string(str(patterns[0].value))}"
        help += f", and {code(option)} among the options"
    return Finding("VSC321", zone.span, message, (label,), help)
