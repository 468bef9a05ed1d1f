"""Nodes whose records reach no sink (VSC123)."""

from __future__ import annotations

from vsc.compiler.diagnostics.model import Finding, Fix, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.source import Span
from vsc.compiler.topology import Topology

__all__ = ["check_usage"]


def check_usage(topology: Topology, order: tuple[str, ...], of_retention: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """A warning for every node of `order` that reaches no sink, in the order of the file.

    Labels name the node's readers, which reach none either. If a name or a statement is missing, nothing is reported,
    nor is it of a table whose history nothing reads (VSC313 in `of_retention`): that says it, too.
    """
    if not topology.complete:
        return ()
    lost = set(order) - topology.written - {finding.node for finding in of_retention if finding.code == "VSC313"}
    end = max((node.span.end for node in (*topology.nodes.values(), *topology.sinks)), default=0)
    return tuple(_lost(topology, name, end) for name in topology.nodes if name in lost)


def _lost(topology: Topology, name: str, end: int) -> Finding:
    """The warning for a node; `end` is where the last statement ends."""
    place, readers = topology.nodes[name].name.span, topology.consumers(name)
    if not readers:
        sink = f"sink {named(name)} to console ();"
        help = f"write it: {code(sink)}, or remove it"
        fix = Fix(Span(end, end), f"\n{sink}")
        return Finding("VSC123", place, f"nothing reads `{name}`: it reaches no sink", (), help, fix)
    labels = tuple(Label(topology.nodes[reader].name.span, f"read by `{reader}`, which reaches no sink")
                   for reader in readers)  # fmt: skip
    help = "write this node, or one that reads it, to a sink, or remove them all"
    return Finding("VSC123", place, f"`{name}` reaches no sink", labels, help)
