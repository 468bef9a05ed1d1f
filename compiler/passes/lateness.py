"""Results that depend on the number of partitions, and records that are lost by it (VSC404, VSC405).

With `clock = 'records'` each partition has its own stream time. What holds records back until stream time has moved on
(a join's grace, final windows, `suppress`) holds them longer in a partition with few records. Under another key, or in
one stream with others that were not held back, they meet records of the time that it is by now, and are late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.holds import held_by, takes
from vsc.compiler.passes.keys import is_key
from vsc.compiler.passes.kinds import Kinds, join_form
from vsc.compiler.passes.shapes import Shapes
from vsc.compiler.passes.stores import Stores
from vsc.compiler.passes.survey import Survey
from vsc.compiler.passes.windows import Windows
from vsc.compiler.source import Span
from vsc.compiler.topology import Topology
from vsc.plan import Suppress
from vsc.plan.record import record
from vsc.plan.words import duration

__all__ = ["check_lateness"]


@record
class _Held:
    """How far records of a node can be behind its sources (`total`, in ms), how far behind other records that its
    readers take (`late`), and what has held them back: its place and how long."""

    total: int = 0
    late: int = 0
    by: tuple[tuple[Span, int], ...] = ()


@record
class _Takes:
    """For how long, in ms, an operation or a store takes late records, and the text that says so."""

    at_most: int
    span: Span


def check_lateness(survey: Survey) -> tuple[Finding, ...]:
    """With the clock of records: what drops records that are held back above it. With the input's: bounds of buffers
    that each partition has for itself."""
    if survey.settled_clock == "input":
        return tuple(_bounds(survey.topology, survey.suppressed))
    pass_ = _Lateness(
        survey.topology, survey.kinds, survey.shapes, survey.stores, survey.windows, survey.suppressed, {}, {}
    )
    for name in (name for name in survey.order if name in survey.shapes):
        pass_.node(name)
    return tuple(pass_.findings.values())


def _bounds(topology: Topology, suppressed: Mapping[str, Suppress]) -> Iterator[Finding]:
    for name in (name for name, operation in suppressed.items() if operation.when_full == "emit"):
        declaration = topology.nodes[name]
        assert isinstance(declaration, syntax.DerivedDecl) and isinstance(declaration.operation, syntax.Suppress)
        for option in declaration.operation.options:
            if option.name.text in ("max_records", "max_bytes"):
                message = f"what `{name}` sends depends on the number of partitions: each one has a buffer of its own"
                help = "remove the bound, or shorten the time limit, to get the same results on any number"
                yield Finding("VSC405", option.span, message, (), help)


@record
class _Lateness:
    """What has been found so far; `node` adds the next."""

    topology: Topology
    kinds: Kinds
    shapes: Shapes
    stores: Stores
    windows: Windows
    suppressed: Mapping[str, Suppress]
    held: dict[str, _Held]
    findings: dict[str, Finding]

    def node(self, name: str) -> None:
        """Examines one node; its inputs come before it."""
        declaration = self.topology.nodes[name]
        if isinstance(declaration, syntax.SourceDecl):
            self.held[name] = _Held()
            return
        operation = declaration.operation
        reads = takes(declaration, self.kinds)
        form = join_form(self.kinds, operation) if isinstance(operation, syntax.Join) else None
        if any(read not in self.held for read in reads):
            return
        here = self._arriving(reads, self._moves_before(name, operation))
        self._check(name, operation, here)
        total, by = here.total, here.by
        for span, own in held_by(name, declaration, self.shapes, self.windows, self.suppressed):
            total, by = total + own, (*by, (span, own))
        late = here.late
        if form == "stream-stream":  # its pairs do not wait: what did is late behind them, if not by the last ms
            late += max(0, total - here.total - 1)
        moves = isinstance(operation, syntax.Rekey) or (
            isinstance(operation, (syntax.Distinct, syntax.Join)) and self._moves_before(name, operation)
        )
        self.held[name] = _Held(total, total if moves else late, by)

    def _arriving(self, reads: list[str], moved: bool) -> _Held:
        """What comes from the inputs: late behind others after it was moved, or behind what was not held back."""
        above = [self.held[read] for read in reads]
        most = max(above, key=lambda one: one.total)
        late = max(one.total if moved else one.late for one in above)
        return _Held(most.total, max(late, most.total - min(one.total for one in above)), most.by)

    def _moves_before(self, name: str, operation: syntax.Operation) -> bool:
        """Whether its input comes from other partitions."""
        shape = self.shapes[name]
        if isinstance(operation, syntax.Aggregate):
            read = operation.input.name.text
            return self.kinds[read] == "table" or not is_key(shape.group, self.shapes[read].schema)
        if isinstance(operation, syntax.Explode):
            return self.kinds[operation.input.name.text] == "table"
        is_foreign = isinstance(operation, syntax.Join) and join_form(self.kinds, operation) == "table-table"
        return shape.rekeyed is not None or (is_foreign and bool(shape.on))

    def _check(self, name: str, operation: syntax.Operation, here: _Held) -> None:
        for late in self._takes(name, operation):
            if late.at_most < here.late:
                self.findings[name] = _finding(self.topology.name, name, late, here)
                return

    def _takes(self, name: str, operation: syntax.Operation) -> Iterator[_Takes]:
        """What drops late records in a node."""
        window = self.windows.tables.get(name)
        match operation:
            case syntax.Aggregate(window=syntax.Window() as written) if window is not None:
                grace = next((one.value.span for one in written.options if one.name.text == "grace"), written.span)
                yield _Takes(window.grace, grace)
            case syntax.Suppress(limit=None) if window is not None and self.windows.begun[name] not in self.findings:
                yield _Takes(window.grace, operation.input.span)
            case syntax.Distinct(within=within, grace=grace):
                waits = grace.duration if grace is not None else None
                more = waits.milliseconds if isinstance(waits, syntax.Duration) else 0
                yield _Takes(within.milliseconds + more, within.span if grace is None else grace.span)
        clause = self.stores.clauses.get(name)
        if clause is not None and clause.store is not None and clause.store.grace is not None:
            yield _Takes(clause.store.grace, clause.grace_span or clause.retention_span or clause.span)


def _finding(topology: str, name: str, takes: _Takes, here: _Held) -> Finding:
    labels = tuple(Label(span, f"records are held back here for {duration(own)}") for span, own in here.by)
    return Finding(
        "VSC404", takes.span,
        f"`{name}` gets records up to {duration(here.late)} late, and drops those that are more than "
        f"{duration(takes.at_most)} late",
        labels,
        f"raise the grace to {duration(here.late)} or more, or use the clock of the input: "
        + code(f"topology {named(topology)} (clock = 'input');"),
    )  # fmt: skip
