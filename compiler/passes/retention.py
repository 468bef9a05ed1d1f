"""Checks how long history is kept against what reads it (VSC304, 313, 314)."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.kinds import Kinds, join_form
from vsc.compiler.passes.options import too_long
from vsc.compiler.passes.stores import Stores
from vsc.compiler.passes.survey import Survey
from vsc.compiler.passes.versioning import Statuses, mixed_join, results_of, way_labels
from vsc.compiler.topology import Topology
from vsc.plan.words import duration

__all__ = ["check_retention"]


def check_retention(survey: Survey) -> tuple[Finding, ...]:
    """Joins whose `grace` is longer than the history that they read, or than the grace of its store; history that
    nothing reads.
    """
    topology, order, kinds = survey.topology, survey.order, survey.kinds
    stores, statuses = survey.stores, survey.statuses
    findings: list[Finding] = []
    read: set[str] = set()  # the nodes whose history is read, or whose readers are wrong (VSC301)
    for name in order:
        declaration = topology.nodes[name]
        if isinstance(declaration, syntax.SourceDecl):
            continue
        if isinstance(declaration.operation, syntax.Suppress):
            suppressed = statuses.get(declaration.operation.input.name.text)
            read.update([suppressed.decided_by] if suppressed is not None else [])
        if stores.complete(name):
            inputs = (statuses.get(one.name.text) for one in topology.inputs(name))
            read.update(status.decided_by for status in inputs if status is not None)
            read.add(name)  # what goes out of it is another than without a history
        if not isinstance(declaration.operation, syntax.Join):
            continue
        join = declaration.operation
        status = statuses.get(join.right.name.text)
        if status is not None and join_form(kinds, join) == "stream-table":
            read.add(status.decided_by)
            findings.extend(_grace(topology, join, stores, statuses))
    for index, sink in enumerate(topology.sinks):
        connector, status = survey.connectors.sinks.get(index), statuses.get(sink.name.text)
        if status is not None and (connector is None or connector.keeps_history):
            read.add(status.decided_by)
    if topology.complete and all(name in kinds for name in topology.nodes):
        findings.extend(_unread(topology, order, stores, statuses, read | _ordered(survey)))
    findings.extend(_results(topology, order, kinds, stores, statuses, read))
    findings.extend(_streamed_results(topology, order, kinds, stores, read))
    return tuple(findings)


def _grace(topology: Topology, join: syntax.Join, stores: Stores, statuses: Statuses) -> Iterator[Finding]:
    if join.grace is None or not isinstance(join.grace.duration, syntax.Duration):
        return
    if (wrong := too_long(join.grace.duration, "VSC125")) is not None:
        yield wrong
        return
    grace, table = join.grace.duration.milliseconds, join.right.name.text
    status = statuses[table]
    clause = stores.clauses.get(status.decided_by)
    if clause is None or clause.store is None or clause.store.retention is None or clause.store.grace is None:
        return
    if grace > clause.store.retention:
        assert clause.retention_span is not None
        cause = Label(clause.retention_span, f"`{status.decided_by}` keeps its history for no longer than this")
        yield Finding(
            "VSC304", join.grace.span,
            f"a `grace` of {duration(grace)} is longer than the history that `{table}` keeps, "
            f"{duration(clause.store.retention)}",
            (cause, *way_labels(topology, table, status)),
            f"lower the grace to {duration(clause.store.retention)} or less, "
            f"or raise the retention of {code(named(status.decided_by))} to {duration(grace)} or more",
        )  # fmt: skip
    if clause.grace_span is not None and clause.store.grace < grace:
        yield Finding(
            "VSC314", clause.grace_span,
            f"`{status.decided_by}` refuses rows that are more than {duration(clause.store.grace)} late, "
            f"while a join waits {duration(grace)} for them",
            (Label(join.grace.span, "this join waits longer"), *way_labels(topology, table, status)),
            f"raise the grace of the store to {duration(grace)} or more",
        )  # fmt: skip


def _ordered(survey: Survey) -> set[str]:
    """The nodes with versioned rows of which something needs the newest by time, which would be the last to arrive if
    they were unversioned. Results are their keys' newest whenever they come."""
    topology, statuses = survey.topology, survey.statuses
    needing = [
        read.name.text
        for name in survey.order
        if isinstance(declaration := topology.nodes[name], syntax.DerivedDecl) and not _takes_all(declaration.operation)
        for read in topology.inputs(name)
    ]
    for index, sink in enumerate(topology.sinks):
        if (connector := survey.connectors.sinks.get(index)) is not None and connector.newest_only:
            needing.append(sink.name.text)
    found = {statuses[name].decided_by for name in needing if name in statuses}
    return {name for name in found if results_of(topology, name, survey.kinds, survey.stores) is None}


def _takes_all(operation: syntax.Operation) -> bool:
    """Whether an operation on a table takes each of its changes for itself, the newest or not."""
    return isinstance(operation, syntax.Map | syntax.Materialize | syntax.ToStream)


def _results(
    topology: Topology, order: tuple[str, ...], kinds: Kinds, stores: Stores, statuses: Statuses, read: set[str]
) -> Iterator[Finding]:
    """Tables that are `read` as of a time, whose versions are results as they came."""
    for name in order:
        clause, made = stores.clauses.get(name), results_of(topology, name, kinds, stores)
        if clause is None or not clause.versioned or clause.complete or made is None or name not in read:
            continue
        if mixed_join(topology, name, kinds, stores, statuses) not in (None, name):
            continue  # what is wrong with that join says more
        node, what = made
        if _in_order(topology, node):
            continue
        yield Finding(
            "VSC311", clause.span,
            f"the versions of `{name}` are results of {what}, not history: older ones can be wrong",
            () if node == name else (Label(topology.nodes[node].name.span, f"`{node}` is {what}"),),
            _made_right(topology, kinds, name, node),
        )  # fmt: skip


def _in_order(topology: Topology, name: str) -> bool:
    """Whether a node is an aggregate of a stream whose records come by time: no late one makes older results wrong."""
    declaration = topology.nodes[name]
    if not isinstance(declaration, syntax.DerivedDecl) or not isinstance(declaration.operation, syntax.Aggregate):
        return False
    while True:
        declaration = topology.nodes[topology.inputs(declaration.name.text)[0].name.text]
        match declaration:
            case syntax.SourceDecl():
                return declaration.reordered is not None
            case syntax.DerivedDecl(operation=syntax.Reorder()):
                return True
            case syntax.DerivedDecl(operation=syntax.Filter() | syntax.Map() | syntax.Explode() | syntax.Rekey()):
                continue
            case _:
                return False


def _streamed_results(
    topology: Topology, order: tuple[str, ...], kinds: Kinds, stores: Stores, read: set[str]
) -> Iterator[Finding]:
    """Tables made of the changes of tables of results, which are `read` as of a time: of a stream, the latest record by
    time is the newest, and a result may be earlier than the one that it replaces."""
    for name in order:
        declaration, clause = topology.nodes[name], stores.clauses.get(name)
        if name not in read or clause is None or not clause.versioned or isinstance(declaration, syntax.SourceDecl):
            continue
        table = _changed_table(topology, name) if isinstance(declaration.operation, syntax.ToTable) else None
        made = None if table is None else results_of(topology, table, kinds, stores)
        if table is None or made is None:
            continue
        node, what = made
        if any(kinds.get(read_by.name.text) != "table" for read_by in topology.inputs(node)):
            continue  # results of a stream have the times of its latest records
        yield Finding(
            "VSC311", clause.span,
            f"the newest version of `{name}` can be an older result of {what}: a result may have an earlier time than "
            "the one that it replaces", (Label(topology.nodes[node].name.span, f"`{node}` is {what}"),),
            f"read the table, whose newest row is its newest result: {code(f'materialize {named(table)} versioned')}",
        )  # fmt: skip


def _changed_table(topology: Topology, name: str) -> str | None:
    """The table whose changes the stream is made of that `name` reads; None for another stream."""
    while isinstance(declaration := topology.nodes.get(topology.inputs(name)[0].name.text), syntax.DerivedDecl):
        match declaration.operation:
            case syntax.ToStream(input=read):
                return read.name.text
            case syntax.Map() | syntax.Filter() | syntax.Reorder():
                name = declaration.name.text
            case _:
                return None
    return None


def _made_right(topology: Topology, kinds: Kinds, name: str, node: str) -> str:
    """What to do about versions of `name` that are results of `node`."""
    declaration, newest = topology.nodes[node], "materialize it unversioned, if only the newest result is read"
    operation = declaration.operation if isinstance(declaration, syntax.DerivedDecl) else None
    of_tables = operation is not None and all(kinds.get(read.name.text) == "table" for read in operation.inputs)
    if isinstance(operation, syntax.Aggregate) and not of_tables:
        return f"put its records in order, with `reorder within` in their source, which makes them right; or {newest}"
    if not of_tables or not isinstance(operation, syntax.Join | syntax.Aggregate):
        return newest
    if node == name:
        return f"add `history = 'complete'`, which makes them right; or {newest}"
    where = "in its clause" if operation.materialize is not None else "in a clause of its own"
    return f"give {code(named(node))} a complete history, with `history = 'complete'` {where}; or {newest}"


def _unread(
    topology: Topology, order: tuple[str, ...], stores: Stores, statuses: Statuses, read: set[str]
) -> Iterator[Finding]:
    for name in order:
        clause, status = stores.clauses.get(name), statuses.get(name)
        if clause is None or clause.store is None or status is None or not status.versioned or name in read:
            continue
        lost = "" if name in topology.written else ", and it reaches no sink"
        yield Finding(
            "VSC313", clause.span, f"nothing reads `{name}` as of a time{lost}: its history is not used",
            (Label(topology.nodes[name].name.span,
                   "no stream join, complete history or sink with `history` reads it, or what is derived from it"),),
            "materialize it unversioned, or join a stream with it", node=name,
        )  # fmt: skip
