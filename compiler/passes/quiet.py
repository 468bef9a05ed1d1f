"""Sources from Kafka behind which something waits for a clock that only their next records move (VSC409)."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.holds import held_by, takes
from vsc.compiler.passes.survey import Survey
from vsc.compiler.source import Span
from vsc.compiler.topology import Declaration

__all__ = ["check_waiting"]


def check_waiting(survey: Survey) -> Iterator[Finding]:
    """The sources from Kafka whose last rows come out with the next ones, each with what is held first behind it."""
    topology = survey.topology
    if survey.quiet is not None or survey.settled_clock != "input":
        return
    driven: dict[str, frozenset[str]] = {}
    waiting: dict[str, tuple[str, Span]] = {}
    for name in (name for name in survey.order if name in survey.shapes):
        declaration = topology.nodes[name]
        own = frozenset((name,)) if isinstance(declaration, syntax.SourceDecl) else frozenset[str]()
        driven[name] = own.union(*(driven.get(read, frozenset()) for read in takes(declaration, survey.kinds)))
        if _is_corrected(declaration):
            continue  # its results come at once, and again when they are corrected
        for span, held in held_by(name, declaration, survey.shapes, survey.windows, survey.suppressed):
            for source in driven[name] if held else ():
                waiting.setdefault(source, (name, span))
    for source, (name, span) in waiting.items():
        declaration = topology.nodes[source]
        if isinstance(declaration, syntax.SourceDecl) and declaration.connector.kind.text == "kafka":
            yield Finding(
                "VSC409", declaration.name.span,
                f"when `{source}` brings nothing, what `{name}` holds of it comes out with its next record",
                (Label(span, "it waits here for time to go on"),),
                f"say after how long its clock goes on without a record: "
                f"{code(f'topology {named(topology.name)} (quiet = 5 minutes);')}",
            )  # fmt: skip


def _is_corrected(declaration: Declaration) -> bool:
    operation = declaration.operation if isinstance(declaration, syntax.DerivedDecl) else None
    return isinstance(operation, syntax.Join) and operation.correct is not None and operation.grace is None
