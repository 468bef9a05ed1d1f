"""How long the statements of a topology hold records back, and where they say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vsc.compiler import syntax
from vsc.compiler.passes.kinds import Kinds, join_form
from vsc.compiler.passes.shapes import Shapes
from vsc.compiler.passes.windows import Windows
from vsc.compiler.source import Span
from vsc.compiler.topology import Declaration, Topology
from vsc.plan import Suppress
from vsc.plan.record import record

__all__ = ["Hold", "held_by", "holds", "takes"]


@record
class Hold:
    """How far, in ms, the clock of a node is behind the input's (`clock`), and for how long it `holds` its own records
    back. `reordered`: whether its records have been put in order above it, or by itself."""

    clock: int
    holds: int
    reordered: bool

    @property
    def total(self) -> int:
        """How long after a row has come the node gives what follows from it, at most."""
        return self.clock + self.holds


def holds(
    topology: Topology,
    order: tuple[str, ...],
    kinds: Kinds,
    shapes: Shapes,
    windows: Windows,
    suppressed: Mapping[str, Suppress],
) -> Mapping[str, Hold]:
    """The holds of all nodes that have a shape, as have those above them."""
    found: dict[str, Hold] = {}
    for name in (name for name in order if name in shapes):
        declaration = topology.nodes[name]
        above = [found.get(read) for read in takes(declaration, kinds)]
        if None not in above:
            known = [one for one in above if one is not None]
            own = held_by(name, declaration, shapes, windows, suppressed)
            here = isinstance(declaration, syntax.DerivedDecl) and isinstance(declaration.operation, syntax.Reorder)
            here |= isinstance(declaration, syntax.SourceDecl) and declaration.reordered is not None
            clock = max((one.total for one in known), default=0)
            found[name] = Hold(clock, sum(ms for _, ms in own), here or any(one.reordered for one in known))
    return found


def takes(declaration: Declaration, kinds: Kinds) -> list[str]:
    """The inputs whose records a statement takes: of a join of a stream with a table the stream's alone."""
    if isinstance(declaration, syntax.SourceDecl):
        return []
    operation = declaration.operation
    reads = [read.name.text for read in operation.inputs]
    form = join_form(kinds, operation) if isinstance(operation, syntax.Join) else None
    return reads[:1] if form in ("stream-table", "stream-global") else reads


def held_by(
    name: str, declaration: Declaration, shapes: Shapes, windows: Windows, suppressed: Mapping[str, Suppress]
) -> Iterator[tuple[Span, int]]:
    """How long a statement holds records back, and the text that says so."""
    match declaration if isinstance(declaration, syntax.SourceDecl) else declaration.operation:
        case syntax.SourceDecl(reordered=syntax.Reordered(within=within, span=span)):
            yield span, within.milliseconds
        case syntax.Reorder(within=within):
            yield within.span, within.milliseconds
        case syntax.Join(within=syntax.Within(span=span)):
            joined = shapes[name].operation
            if joined is not None and joined.waits:
                yield span, int(joined.holds)
        case syntax.Join(correct=syntax.Correct(within=within)):
            yield within.span, within.milliseconds
        case syntax.Join(grace=syntax.Grace(duration=syntax.Duration() as grace, span=span)):
            yield span, grace.milliseconds
        case syntax.Aggregate(window=syntax.Window(emit="final", span=span)) if name in windows.tables:
            yield span, windows.tables[name].held
        case syntax.Suppress(limit=limit, span=span) if name in suppressed:
            window = windows.tables.get(name) if limit is None else None
            yield span, suppressed[name].wait + (0 if window is None else window.span)
