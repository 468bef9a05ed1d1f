"""Complete histories (KIP-914, "Attempt 2"): where `history = 'complete'` can be kept, and from what (VSC309, VSC310).

As of every time within its retention, such a table is its operation over its inputs as of that time. So its inputs must
be right in their own history, as far back: rows as they came (source tables, `to_table`), what is computed row by row
from such tables, and complete tables.
"""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.kinds import Kinds, join_form
from vsc.compiler.passes.stores import Clause, Stores
from vsc.compiler.passes.survey import Survey
from vsc.compiler.source import Span
from vsc.compiler.topology import Declaration, Topology
from vsc.plan import Clock
from vsc.plan.record import record
from vsc.plan.words import duration

__all__ = ["check_complete"]


def check_complete(survey: Survey) -> Iterator[Finding]:
    """What keeps a complete history from being one."""
    kinds = survey.kinds
    for name in survey.order:
        clause = survey.stores.clauses.get(name)
        if clause is None or clause.history_span is None or kinds.get(name) != "table" or name in survey.windows.begun:
            continue  # of global and windowed tables it is `versioned` that is wrong
        declaration = survey.topology.nodes[name]
        if isinstance(declaration, syntax.SourceDecl) or not _computed(kinds, declaration.operation):
            yield _misplaced(name, declaration, clause.history_span)
        elif clause.complete:
            yield from _own(name, clause, survey.settled_clock)
            yield from _of_inputs(survey.topology, name, kinds, survey.stores, clause)


def _computed(kinds: Kinds, operation: syntax.Operation) -> bool:
    if isinstance(operation, syntax.Join):
        return join_form(kinds, operation) == "table-table"
    return isinstance(operation, syntax.Aggregate)


def _misplaced(name: str, declaration: Declaration, span: Span) -> Finding:
    label = Label(declaration.name.span, "its rows are kept as they come, each from its own time on")
    return Finding(
        "VSC309", span, f"`history` is for joins of tables and aggregates, and `{name}` is neither", (label,),
        "remove it: the history of this table is that of its rows",
    )  # fmt: skip


def _own(name: str, clause: Clause, clock: Clock) -> Iterator[Finding]:
    """What is wrong with the table itself."""
    assert clause.history_span is not None
    if clock == "records":
        yield Finding(
            "VSC309", clause.history_span,
            f"the history of `{name}` cannot be complete with `clock = 'records'`: the inputs' stores forget "
            "by clocks of their own",
            (), "remove `clock = 'records'`, or remove `history`",
        )  # fmt: skip
    store = clause.store
    if clause.grace_span is not None and store is not None and store.grace != store.retention:
        yield Finding(
            "VSC309", clause.grace_span, f"a complete history is corrected for as long as it is kept: `{name}` "
            "cannot have a `grace` of its own",
            (Label(clause.history_span, "it is complete"),), "remove `grace`; `retention` says how far back",
        )  # fmt: skip


@record
class _Wrong:
    """Why a table is not right in its own history: in words, where that is decided, what to do."""

    why: str
    label: Label
    help: str


def _of_inputs(topology: Topology, name: str, kinds: Kinds, stores: Stores, clause: Clause) -> Iterator[Finding]:
    """The inputs that are not right in their own history, or not as far back."""
    assert clause.history_span is not None
    for read in dict.fromkeys(topology.inputs(name)):
        wrong = _wrong(
            topology, read.name.text, kinds, stores, None if clause.store is None else clause.store.retention
        )
        if wrong is not None:
            yield Finding(
                "VSC310", read.span, f"the history of `{name}` cannot be complete: {wrong.why}",
                (Label(clause.history_span, "it is to be complete"), wrong.label), wrong.help,
            )  # fmt: skip


def _wrong(
    topology: Topology, name: str, kinds: Kinds, stores: Stores, retention: int | None, stored: bool = False
) -> _Wrong | None:
    """Why table `name` is not right in its own history as far back as `retention`; None: it is, or is not known.

    `stored`: a reader keeps its rows, so it is enough that they come for as long.
    """
    declaration, clause = topology.nodes.get(name), stores.clauses.get(name)
    if declaration is None or name not in kinds:
        return None
    label = Label(declaration.name.span if clause is None else clause.span, "here")
    if kinds[name] == "stream":
        return _Wrong(
            f"`{name}` is a stream", Label(declaration.name.span, "it has no rows that stay valid"),
            f"make a table of it: {_as_table(name)}",
        )  # fmt: skip
    if clause is not None and (clause.complete or not stored):
        wrong = _too_short(name, clause, retention, label)
        if wrong is not None:
            return wrong
    operation = None if isinstance(declaration, syntax.SourceDecl) else declaration.operation
    if operation is not None and operation.row_by_row and (clause is None or clause.versioned):
        return _wrong(topology, operation.inputs[0].name.text, kinds, stores, retention, stored or clause is not None)
    if clause is None or not clause.versioned:
        return _Wrong(
            f"`{name}` is unversioned", label,
            f"materialize {code(named(name))} versioned, as in `materialize versioned (retention = 7 days)`",
        )  # fmt: skip
    if isinstance(operation, syntax.Materialize):
        return _wrong(topology, operation.inputs[0].name.text, kinds, stores, retention, stored=True)
    if operation is None or isinstance(operation, syntax.ToTable) or clause.complete:
        return None
    can_be = _computed(kinds, operation)
    return _Wrong(
        f"the versions of `{name}` are results, not history", label,
        f"add `history = 'complete'` to the clause of {code(named(name))}" if can_be else "read the table before it",
    )  # fmt: skip


def _too_short(name: str, clause: Clause, retention: int | None, label: Label) -> _Wrong | None:
    kept = clause.store.retention if clause.store is not None else None
    if kept is None or retention is None or kept >= retention:
        return None
    return _Wrong(
        f"`{name}` keeps its own for {duration(kept)} only, not for {duration(retention)}", label,
        f"raise the retention of {code(named(name))} to {duration(retention)} or more, or lower that of this table",
    )  # fmt: skip


def _as_table(name: str) -> str:
    rows = named(f"{name}_rows")
    return code(f"table {rows} = to_table {named(name)} materialize versioned (retention = ...);")
