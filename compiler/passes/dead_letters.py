"""Sinks of lost records: the node that they name must be able to lose some (VSC132)."""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.kinds import Kinds, join_form
from vsc.compiler.passes.stores import Stores
from vsc.compiler.topology import Topology

__all__ = ["check_dead_letters"]


def check_dead_letters(topology: Topology, kinds: Kinds, stores: Stores) -> tuple[Finding, ...]:
    """An error for every ``sink dropped|missed of NODE`` whose node never drops or misses anything."""
    findings = []
    for sink in topology.sinks:
        if sink.of is None or sink.of.text not in kinds:
            continue
        lost = topology.lost(sink)
        loses = _drops if lost == "dropped" else _misses
        if not loses(topology, kinds, stores, sink.of.text):
            findings.append(_never(topology, kinds, stores, sink, sink.of))
    return tuple(findings)


def _never(topology: Topology, kinds: Kinds, stores: Stores, sink: syntax.SinkDecl, of: syntax.Name) -> Finding:
    label = Label(topology.nodes[of.text].name.span, f"`{of.text}` is declared here")
    if sink.name.text == "dropped":
        message = f"`{of.text}` never drops a record"
        help = "name the node in front of it that does, or write `sink dropped to` for those of all nodes"
    else:
        message = f"`{of.text}` never misses a record: only the join of a stream looks for what may not be there"
        drops = _drops(topology, kinds, stores, of.text)
        help = (
            f"write {code(f'sink dropped of {named(of.text)}')}, or name such a join" if drops else "name such a join"
        )
    return Finding("VSC132", of.span, message, (label,), help)


def _misses(topology: Topology, kinds: Kinds, stores: Stores, name: str) -> bool:
    declaration = topology.nodes[name]
    if not isinstance(declaration, syntax.DerivedDecl) or not isinstance(declaration.operation, syntax.Join):
        return False
    return join_form(kinds, declaration.operation) in ("stream-stream", "stream-table", "stream-global")


def _drops(topology: Topology, kinds: Kinds, stores: Stores, name: str) -> bool:
    declaration = topology.nodes[name]
    if not isinstance(declaration, syntax.DerivedDecl):
        return True
    clause = stores.clauses.get(name)
    refuses = clause is not None and (clause.versioned or clause.expire_span is not None)
    match declaration.operation:
        case syntax.Merge() | syntax.ToStream() | syntax.Suppress():
            return False
        case syntax.Materialize():
            return refuses
        case _:
            return True
