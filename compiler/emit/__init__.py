"""Other forms of a compiled topology: listings for people, graphs for tools, pictures. All use only the plan."""

from __future__ import annotations

from collections.abc import Callable

from vsc.compiler.emit.dot import dot
from vsc.compiler.emit.drawing import Drawing
from vsc.compiler.emit.graph import emit_graph
from vsc.compiler.emit.listing import emit_topology
from vsc.compiler.emit.logical import logical
from vsc.compiler.emit.mermaid import mermaid
from vsc.compiler.emit.physical import physical
from vsc.compiler.emit.svg import svg
from vsc.plan import Plan, dump

__all__ = ["PICTURES", "TEXTS", "emit"]

TEXTS: dict[str, Callable[[Plan], str]] = {"plan": dump, "topology": emit_topology, "graph": emit_graph}
PICTURES: dict[str, Callable[[Drawing], str]] = {"mermaid": mermaid, "dot": dot, "svg": svg}


def emit(plan: Plan, form: str, as_it_runs: bool = False) -> str:
    """The text that ``vsc compile --emit`` writes. Equal plans give equal text. The text ends with a line feed.

    A picture shows what the user wrote or, with `as_it_runs`, the plan: stages, repartitions and the nodes that vsc
    added.
    """
    if form in TEXTS:
        return TEXTS[form](plan)
    return PICTURES[form](physical(plan) if as_it_runs else logical(plan))
