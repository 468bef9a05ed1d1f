"""`reorder`: how long it waits, where it cannot be, and the tables that it makes late for those who look into them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.expressions import Scope
from vsc.compiler.passes.holds import Hold, holds
from vsc.compiler.passes.kinds import Kinds, join_form
from vsc.compiler.passes.options import too_long
from vsc.compiler.passes.shapes import Known, Shape, ShapeResult, Shapes
from vsc.compiler.passes.survey import Survey
from vsc.compiler.passes.versioning import Statuses
from vsc.compiler.source import Span
from vsc.compiler.topology import Topology
from vsc.plan import Reorder, Schema, WithinAggregate
from vsc.plan.words import duration

__all__ = ["check_reorder", "reorder_shape"]


def reorder_shape(known: Known, operation: syntax.Reorder, schema: Schema, scope: Scope) -> ShapeResult:
    """The stream's own columns and key."""
    return Shape(schema, Reorder(operation.within.milliseconds)), []


def check_reorder(survey: Survey) -> Iterator[Finding]:
    """Lengths that cannot be (VSC125), the clock of records (VSC407), and tables that are behind the streams that look
    into them (VSC408)."""
    topology, clock = survey.topology, survey.settled_clock
    written = list(_written(topology))
    for within, span in written:
        if (wrong := too_long(within, "VSC125")) is not None:
            yield wrong
        if clock == "records":
            yield Finding(
                "VSC407", span, "`reorder` needs the clock of the input: each partition has a clock of its own here, "
                "and would put its own records in order", (),
                f"remove the `reorder`, or use the clock of the input: "
                f"{code(f'topology {named(topology.name)};')}",
            )  # fmt: skip
    for join in _waiting_joins(topology, survey.shapes) if clock == "records" else ():
        assert join.within is not None
        yield Finding(
            "VSC407", join.within.span, "records of this join wait: that needs the clock of the input, which is the "
            "same in all partitions", (),
            "look back only, without `grace` and `after`, or use that clock: "
            f"{code(f'topology {named(topology.name)};')}",
        )  # fmt: skip
    if written and clock == "input":
        held = holds(topology, survey.order, survey.kinds, survey.shapes, survey.windows, survey.suppressed)
        yield from _behind(topology, survey.kinds, survey.statuses, held)


def _waiting_joins(topology: Topology, shapes: Shapes) -> Iterator[syntax.Join]:
    """The joins that aggregate a stream, and wait."""
    for name, declaration in topology.nodes.items():
        found = shapes[name].operation if name in shapes else None
        if isinstance(found, WithinAggregate) and found.waits and isinstance(declaration, syntax.DerivedDecl):
            assert isinstance(declaration.operation, syntax.Join)
            yield declaration.operation


def _written(topology: Topology) -> Iterator[tuple[syntax.Duration, Span]]:
    """Each `reorder`: how long, and where."""
    for declaration in topology.nodes.values():
        if isinstance(declaration, syntax.SourceDecl):
            if declaration.reordered is not None and declaration.kind == "stream":
                yield declaration.reordered.within, declaration.reordered.span
        elif isinstance(declaration.operation, syntax.Reorder):
            yield declaration.operation.within, declaration.operation.span


def _behind(topology: Topology, kinds: Kinds, statuses: Statuses, found: Mapping[str, Hold]) -> Iterator[Finding]:
    """Joins of a stream with a table of reordered records, whose rows come too late for it."""
    for name, declaration in topology.nodes.items():
        if not isinstance(declaration, syntax.DerivedDecl) or not isinstance(declaration.operation, syntax.Join):
            continue
        join = declaration.operation
        stream, table = (found.get(read.name.text) for read in (join.left, join.right))
        if join_form(kinds, join) != "stream-table" or stream is None or table is None or not table.reordered:
            continue
        grace = join.grace.duration if join.grace is not None else None
        waits = grace.milliseconds if isinstance(grace, syntax.Duration) else 0
        if table.total > stream.total + waits:
            late = duration(table.total - stream.total)
            left, right = join.left.name.text, join.right.name.text
            versioned = right in statuses and statuses[right].versioned
            help = f"give the join {code(f'grace {late}')}, or " if versioned else ""
            yield Finding(
                "VSC408", join.right.span,
                f"`{right}` is {late} behind `{left}`: `{name}` looks for rows that have not gone on yet",
                (Label(topology.nodes[right].name.span, "its rows were put in order, and held back for that"),),
                f"{help}reorder {code(named(left))} as well",
            )  # fmt: skip
