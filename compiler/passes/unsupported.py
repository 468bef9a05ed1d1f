"""Forms of the language that this version understands and checks, and does not run yet (VSC190)."""

from __future__ import annotations

from collections.abc import Iterable

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.passes.kinds import Kinds, join_form
from vsc.compiler.source import Span
from vsc.compiler.topology import Declaration, Topology

__all__ = ["check_supported"]

_FORMS: dict[type, str] = {
    syntax.Explode: "explode",
    syntax.Rekey: "rekey",
    syntax.Merge: "merge",
    syntax.ToStream: "to_stream",
    syntax.Aggregate: "aggregate",
    syntax.Suppress: "suppress",
}


def check_supported(topology: Topology, kinds: Kinds, wrong: Iterable[Span]) -> tuple[Finding, ...]:
    """One finding for each statement that uses such a form, unless one of `wrong`, the places of errors, is in it."""
    places = tuple(wrong)
    findings = []
    for declaration in topology.nodes.values():
        found = _form(declaration, kinds)
        if found is None or any(_holds(declaration.span, place) for place in places):
            continue
        form, span = found
        findings.append(
            Finding("VSC190", span, f"{form} is not there yet: this version can check it, but not run it", (),
                    "leave it out for now")
        )  # fmt: skip
    return tuple(findings)


def _form(declaration: Declaration, kinds: Kinds) -> tuple[str, Span] | None:
    if isinstance(declaration, syntax.SourceDecl):
        return ("a global table", declaration.kind_span) if declaration.kind == "global table" else None
    operation = declaration.operation
    if isinstance(operation, syntax.Join):
        if join_form(kinds, operation) == "table-table":
            return "a join of two tables", operation.mode_span
        return None
    word = _FORMS.get(type(operation))
    if word is None:
        return None
    start = operation.span.start  # an operation begins with its word
    return f"`{word}`", Span(start, start + len(word))


def _holds(statement: Span, place: Span) -> bool:
    return statement.start <= place.start and place.end <= statement.end
