"""A compiled topology in other forms: listings for people, graphs for tools. All of them come from the plan alone."""

from __future__ import annotations

from collections.abc import Callable

from vsc.compiler.emit.dot import emit_dot
from vsc.compiler.emit.graph import emit_graph
from vsc.compiler.emit.listing import emit_topology
from vsc.compiler.emit.mermaid import emit_mermaid
from vsc.compiler.emit.svg import emit_svg
from vsc.plan import Plan, dump

__all__ = ["EMITTERS"]

EMITTERS: dict[str, Callable[[Plan], str]] = {
    "plan": dump,
    "topology": emit_topology,
    "graph": emit_graph,
    "mermaid": emit_mermaid,
    "dot": emit_dot,
    "svg": emit_svg,
}
"""What `vsc compile --emit` knows: equal plans give equal text, which ends with a line feed."""
