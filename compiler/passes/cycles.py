"""A node must not read itself, directly or through others."""

from __future__ import annotations

from itertools import pairwise

from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.topology import Topology

__all__ = ["check_cycles"]


def check_cycles(topology: Topology) -> tuple[Finding, ...]:
    """One finding for each group of nodes that read each other, at an input that closes a cycle."""
    return tuple(_finding(topology, way) for way in topology.cycles())


def _finding(topology: Topology, way: tuple[str, ...]) -> Finding:
    first, last = way[0], way[-1]
    closing = next(i for i in topology.inputs(first) if i.name.text == last)
    path = " -> ".join(f"`{name}`" for name in (*way, first))
    others = tuple(
        Label(next(i.span for i in topology.inputs(reader) if i.name.text == read), f"`{reader}` reads `{read}`")
        for read, reader in pairwise(way)
    )
    message = f"`{first}` reads itself" if len(way) == 1 else f"these nodes read one another: {path}"
    return Finding(
        "VSC105", closing.span, message, others, f"make {code(named(first))} read something that does not come from it"
    )
