"""Sinks that write where another sink writes, or where their own rows come from (VSC342, VSC343).

What a place is, its connector says. What is dropped and what is missed may share one: their rows are alike.
"""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.connectors import Connectors
from vsc.compiler.source import Span
from vsc.compiler.topology import Topology
from vsc.plan import Connector
from vsc.plan.connectors import facts_of
from vsc.plan.connectors.place import Place
from vsc.plan.record import record

__all__ = ["check_places"]


@record
class _Location:
    """A place, and what writes it."""

    place: Place
    span: Span


def check_places(topology: Topology, connectors: Connectors) -> tuple[Finding, ...]:
    """What is doubtful about the places of the sinks."""
    findings: list[Finding] = []
    sources = {
        name: location
        for name, node in topology.nodes.items()
        if isinstance(node, syntax.SourceDecl) and (location := _location(node.connector, connectors.sources.get(name)))
    }
    before: list[tuple[syntax.SinkDecl, _Location]] = []
    for index, sink in enumerate(topology.sinks):
        location = _location(sink.connector, connectors.sinks.get(index))
        if location is None:
            continue
        findings.extend(_onto_source(topology, sink, location, sources))
        lost = topology.lost(sink) is not None
        other = next(
            (s for s, earlier in before
             if earlier.place.meets(location.place) and not (lost and topology.lost(s) is not None)),
            None,
        )  # fmt: skip
        if other is not None:
            findings.append(_twice(location, other))
        before.append((sink, location))
    return tuple(findings)


def _twice(location: _Location, other: syntax.SinkDecl) -> Finding:
    label = Label(other.connector.span, "this sink writes there, too")
    help = "name another place, or `merge` the streams and write them once"
    return Finding("VSC342", location.span, "two sinks write to one place: whoever reads it sees both", (label,), help)


def _onto_source(
    topology: Topology, sink: syntax.SinkDecl, location: _Location, sources: dict[str, _Location]
) -> Iterator[Finding]:
    written = sink.name if topology.lost(sink) is None else sink.of
    above = frozenset(sources) if written is None else topology.above(written.text)
    for name, source in sources.items():
        if name in above and source.place.holds(location.place):
            label = Label(source.span, f"{code(named(name))} reads it here")
            message = f"this sink writes where its own source {code(named(name))} reads: its rows would come in again"
            yield Finding("VSC343", location.span, message, (label,), "name another place")


def _location(clause: syntax.ConnectorClause, connector: Connector | None) -> _Location | None:
    """The place of a connector; None if it has none, or is wrong."""
    if connector is None:
        return None
    options = {name: str(value) for name, value in (*connector.options, *connector.spark_options)}
    place = facts_of(connector.kind).place(options)
    if place is None:
        return None
    return _Location(place, next(o.value.span for o in clause.options if o.name.text == place.option and not o.quoted))
