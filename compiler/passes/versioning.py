"""Whether each table is versioned, why, and which node decided it.

A table is versioned if its own store is; or if it has no store, is stateless, and comes from a versioned table. What
depends on this is refused or warned about here: VSC301 to 303, 306, 307, 311, 312.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.kinds import Kinds, join_form
from vsc.compiler.passes.stores import Stores
from vsc.compiler.passes.windows import Windows
from vsc.compiler.topology import Topology
from vsc.plan import Status

__all__ = ["Statuses", "check_versioning", "mixed_join", "results_of", "way_labels"]

Statuses = Mapping[str, Status]


def check_versioning(
    topology: Topology, order: tuple[str, ...], kinds: Kinds, stores: Stores, windows: Windows
) -> tuple[Statuses, tuple[Finding, ...]]:
    """The status of every table of `order` for which it is certain; streams have none."""
    statuses: dict[str, Status] = {}
    windowed = windows.begun.keys()
    findings: list[Finding] = []
    for name in order:
        if kinds.get(name) in ("table", "global table"):
            status = _status(topology, name, stores, statuses, windowed)
            if status is not None:
                statuses[name] = status
        findings.extend(_refused(topology, name, kinds, stores, statuses, windowed))
        findings.extend(_doubtful(topology, name, kinds, stores, statuses, windowed))
    return statuses, tuple(findings)


def _decided_label(topology: Topology, stores: Stores, statuses: Statuses, status: Status) -> Label:
    """A label on what decided a status: the clause, or the name of a node without one."""
    node = status.decided_by
    clause = stores.clauses.get(node)
    what = "versioned" if status.versioned else "unversioned"
    place = topology.nodes[node].name.span if clause is None else clause.span
    return Label(place, f"`{node}` is {what}: {statuses[node].reason}")


def way_labels(topology: Topology, table: str, status: Status) -> tuple[Label, ...]:
    """A label on every node from `table` back to, but without, the node that decided its status."""
    labels = []
    while table != status.decided_by:
        (read,) = topology.inputs(table)
        labels.append(Label(topology.nodes[table].name.span, f"`{table}` has the status of `{read.name.text}`"))
        table = read.name.text
    return tuple(labels)


# ---------------------------------------------------------------------------------------------------------- status


def _status(
    topology: Topology, name: str, stores: Stores, statuses: Statuses, windowed: Collection[str]
) -> Status | None:
    declaration = topology.nodes[name]
    if isinstance(declaration, syntax.SourceDecl):
        if declaration.kind == "global table":
            return Status(False, "it is a global table, which is never versioned", name)
        return _by_clause(name, stores, "it is a source table without a `materialize` clause")
    match declaration.operation:
        case syntax.Suppress():
            return Status(False, "it is the result of `suppress`, which is never versioned", name)
        case _ if name in windowed and name in stores.clauses:
            return Status(False, "it is a windowed table, which is never versioned", name)
        case operation if operation.row_by_row and name not in stores.clauses:
            read = operation.inputs[0].name.text
            return _inherited(statuses.get(read), read)
        case syntax.Aggregate() if name in windowed:
            return Status(False, "it is a windowed table, which is never versioned", name)
        case syntax.ToTable():
            return _by_clause(name, stores, "it is made by `to_table` without a `materialize` clause")
        case syntax.Join():
            return _by_clause(name, stores, "it is the result of a join without `materialize versioned`")
        case syntax.Aggregate():
            return _by_clause(name, stores, "it is the result of an aggregate without `materialize versioned`")
        case syntax.Explode():
            return _by_clause(name, stores, "it is the result of `explode` without `materialize versioned`")
        case _:
            return _by_clause(name, stores, "it has no `materialize` clause")


def _by_clause(name: str, stores: Stores, otherwise: str) -> Status:
    clause = stores.clauses.get(name)
    if clause is None:
        return Status(False, otherwise, name)
    if clause.versioned:
        return Status(True, "it is materialized versioned", name)
    word = "unversioned" if clause.written.kind == "unversioned" else "without the word `versioned`"
    return Status(False, f"it is materialized {word}", name)


def _inherited(status: Status | None, read: str) -> Status | None:
    if status is None:
        return None
    if status.decided_by == read:
        return Status(status.versioned, f"it has the status of `{read}`: {status.reason}", read)
    return status


# ---------------------------------------------------------------------------------------------------------- refused


def _refused(
    topology: Topology, name: str, kinds: Kinds, stores: Stores, statuses: Statuses, windowed: Collection[str]
) -> Iterator[Finding]:
    declaration = topology.nodes[name]
    clause = stores.clauses.get(name)
    if clause is not None and clause.versioned:
        if kinds.get(name) == "global table":
            yield Finding(
                "VSC302", clause.span, f"the global table `{name}` cannot be versioned",
                (Label(declaration.kind_span, "a global table keeps the newest row of a key"),),
                "remove `versioned (...)`, or declare it as `table`",
            )  # fmt: skip
        elif name in windowed:
            yield Finding(
                "VSC306", clause.span, f"the windowed table `{name}` cannot be versioned",
                _window_labels(topology, name), "remove `versioned (...)`",
            )  # fmt: skip
    if isinstance(declaration, syntax.SourceDecl):
        return
    match declaration.operation:
        case syntax.Suppress(input=read):
            status = statuses.get(read.name.text)
            if status is not None and status.versioned:
                yield _suppressed(topology, read, stores, statuses, status)
        case syntax.Join(right=right) as join if join_form(kinds, join) == "stream-table":
            status = statuses.get(right.name.text)
            if status is not None and not status.versioned:
                yield from _of_history(topology, join, stores, statuses, status)
        case _:
            return


def _suppressed(topology: Topology, read: syntax.Input, stores: Stores, statuses: Statuses, status: Status) -> Finding:
    name = read.name.text
    labels = (_decided_label(topology, stores, statuses, status), *way_labels(topology, name, status))
    copy = named(f"{name}_newest")
    return Finding(
        "VSC301", read.span, f"`suppress` cannot hold back the versioned table `{name}`", labels,
        f"suppress an unversioned copy: {code(f'table {copy} = materialize {named(name)} unversioned;')}",
    )  # fmt: skip


def _of_history(
    topology: Topology, join: syntax.Join, stores: Stores, statuses: Statuses, status: Status
) -> Iterator[Finding]:
    """The first clause of a join with an unversioned table that needs a history."""
    table, decider = join.right.name.text, code(named(status.decided_by))
    labels = (_decided_label(topology, stores, statuses, status), *way_labels(topology, table, status))
    if join.grace is not None:
        yield Finding(
            "VSC303", join.grace.span, f"`grace` needs a versioned table, but `{table}` is unversioned", labels,
            f"materialize {decider} versioned, with a `retention` of at least this grace, or remove `grace`",
        )  # fmt: skip
        return
    for word, span in (("strictly before", join.strictly_before), ("drop older_than_retention", join.drop_older)):
        if span is not None:
            yield Finding(
                "VSC307", span, f"{code(word)} needs a versioned table, but `{table}` is unversioned", labels,
                f"materialize {decider} versioned, as in `materialize versioned (retention = 7 days)`, or remove it",
            )  # fmt: skip
            return


def _window_labels(topology: Topology, name: str) -> tuple[Label, ...]:
    """Where the windows of a table come from, and the way to it."""
    way: list[Label] = []
    while True:
        declaration = topology.nodes[name]
        assert isinstance(declaration, syntax.DerivedDecl)
        operation = declaration.operation
        if isinstance(operation, syntax.Aggregate) and operation.window is not None:
            return (Label(operation.window.span, f"`{name}` is windowed here"), *way)
        read = topology.inputs(name)[0].name.text
        way.append(Label(declaration.name.span, f"`{name}` has the windows of `{read}`"))
        name = read


# --------------------------------------------------------------------------------------------------------- doubtful


def _doubtful(
    topology: Topology, name: str, kinds: Kinds, stores: Stores, statuses: Statuses, windowed: Collection[str]
) -> Iterator[Finding]:
    declaration = topology.nodes[name]
    if isinstance(declaration, syntax.SourceDecl) or name in windowed:
        return
    clause = stores.clauses.get(name)
    versioned = clause is not None and clause.versioned and not clause.complete
    if clause is None or not versioned:
        return
    mixed = mixed_join(topology, name, kinds, stores, statuses)
    if mixed is not None:
        left, right = topology.inputs(mixed)
        yield Finding(
            "VSC312", clause.span,
            f"`{mixed}` joins a versioned and an unversioned table, so the history of `{name}` is not consistent",
            tuple(label for read in (left, right) for label in _status_labels(topology, read, stores, statuses)),
            "make both tables of the join versioned, or neither",
        )  # fmt: skip


def results_of(topology: Topology, name: str, kinds: Kinds, stores: Stores) -> tuple[str, str] | None:
    """The join of tables, aggregate or `explode` whose results, or rows computed from them, a table holds; and what it
    is called. None if they are a complete history."""
    while isinstance(declaration := topology.nodes.get(name), syntax.DerivedDecl):
        if name in stores.clauses and stores.clauses[name].complete:
            return None
        match declaration.operation:
            case syntax.Join() as join:
                return (name, "a join") if join_form(kinds, join) == "table-table" else None
            case syntax.Aggregate():
                return name, "an aggregate"
            case syntax.Explode():
                return name, "`explode`"
            case operation if kinds.get(name) == "table" and (
                operation.row_by_row or isinstance(operation, syntax.Materialize)
            ):
                name = topology.inputs(name)[0].name.text
            case _:
                return None
    return None


def mixed_join(topology: Topology, name: str, kinds: Kinds, stores: Stores, statuses: Statuses) -> str | None:
    """The join of a versioned and an unversioned table that feeds `name` with no store between."""
    while True:
        declaration = topology.nodes.get(name)
        if declaration is None or isinstance(declaration, syntax.SourceDecl):
            return None
        match declaration.operation:
            case syntax.Join(left=left, right=right) as join if join_form(kinds, join) == "table-table":
                found = {s.versioned for i in (left, right) if (s := statuses.get(i.name.text)) is not None}
                return name if found == {True, False} else None
            case operation if operation.row_by_row or isinstance(operation, syntax.Materialize):
                name = topology.inputs(name)[0].name.text
                if name in stores.clauses and stores.clauses[name].versioned:
                    return None
            case _:
                return None


def _status_labels(topology: Topology, read: syntax.Input, stores: Stores, statuses: Statuses) -> tuple[Label, ...]:
    """What an input of a join is, and the way from the node that decided it."""
    name, status = read.name.text, statuses[read.name.text]
    own = Label(read.span, f"`{name}` is {'versioned' if status.versioned else 'unversioned'}")
    return own, _decided_label(topology, stores, statuses, status), *way_labels(topology, name, status)
