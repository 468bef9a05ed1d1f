"""Nodes whose records go nowhere (VSC123)."""

from __future__ import annotations

from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.topology import Topology

__all__ = ["check_usage"]


def check_usage(topology: Topology) -> tuple[Finding, ...]:
    """A warning for every node that reaches no sink and that no other node reads: the end of a way to nowhere.

    Nodes that only feed such a node are not reported as well. Where a name or a statement is missing, nothing is.
    """
    if not topology.complete:
        return ()
    written = {sink.name.text for sink in topology.sinks}
    return tuple(
        Finding(
            "VSC123", topology.nodes[name].name.span, f"nothing reads `{name}`: it reaches no sink", (),
            f"write it: `sink {name} to console ();`, or remove it",
        )
        for name in topology.nodes
        if name not in written and not topology.consumers(name)
    )  # fmt: skip
