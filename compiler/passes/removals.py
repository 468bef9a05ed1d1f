"""The changes of a table as a stream, on their way to what does not see that rows go (VSC346).

The removal of a row is a record without a value: `explode` and `rekey` drop it, and what they make of the row's former
values stays. A sink with `mode = 'upsert'` deletes its row, unless something in front of it has dropped the record; of
a versioned table it takes late rows for the newest ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.connectors import Connectors
from vsc.compiler.passes.kinds import Kinds, join_form
from vsc.compiler.passes.survey import Survey
from vsc.compiler.passes.versioning import Statuses
from vsc.compiler.source import Span
from vsc.compiler.topology import Topology
from vsc.plan.connectors import facts_of
from vsc.plan.record import record

__all__ = ["check_removals"]


@record
class _Changes:
    """The changes of `table` in a stream, from the `to_stream` at `place` on; `dropped`: where its removals end."""

    table: str
    place: Span
    dropped: Span | None = None


def check_removals(survey: Survey) -> tuple[Finding, ...]:
    """A warning for each `explode`, `rekey` and upsert sink that loses the removals of a table's rows."""
    topology = survey.topology
    removing = _removing(survey)
    changes: dict[str, _Changes] = {}
    findings: list[Finding] = []
    for name in survey.order:
        declaration = topology.nodes[name]
        if isinstance(declaration, syntax.SourceDecl) or survey.kinds.get(name) != "stream":
            continue
        operation = declaration.operation
        above = next((changes[read.name.text] for read in operation.inputs if read.name.text in changes), None)
        match operation:
            case syntax.ToStream(input=read, span=span) if removing.get(read.name.text):
                changes[name] = _Changes(read.name.text, span)
            case syntax.Map() | syntax.Merge() | syntax.Reorder() if above is not None:
                changes[name] = above
            case syntax.Filter(span=span) | syntax.Distinct(span=span) | syntax.Join(span=span) if above is not None:
                changes[name] = _Changes(above.table, above.place, above.dropped or span)
            case syntax.Explode() | syntax.Rekey() if above is not None and above.dropped is None:
                findings.append(_dropping(operation, above))
    return (*findings, *_upserts(topology, changes, survey.statuses))


def _dropping(operation: syntax.Explode | syntax.Rekey, above: _Changes) -> Finding:
    table = named(above.table)
    if isinstance(operation, syntax.Explode):
        instead = code(f"explode {table} by ... as (position, {named(operation.alias.text)})")
        help = f"read the table, which takes back what is gone: {instead}"
    else:
        instead = code(f"aggregate {table} group by ...")
        help = (
            f"{instead} keeps a table under another key; if the removals are not needed, leave them out in front of "
            f"this: {code('filter ... where COLUMN is not null')}"
        )
    return Finding(
        "VSC346", operation.input.span,
        f"`{operation.word}` drops the removals of rows of `{above.table}`: what it made of them stays",
        (Label(above.place, "the removal of a row is a record without a value"),), help,
    )  # fmt: skip


def _upserts(topology: Topology, changes: Mapping[str, _Changes], statuses: Statuses) -> Iterator[Finding]:
    for sink in topology.sinks:
        above = changes.get(sink.name.text)
        mode = next((option for option in sink.connector.options if option.name.text == "mode"), None)
        if above is None or mode is None or getattr(mode.value, "value", None) != "upsert":
            continue
        status = statuses.get(above.table)
        if above.dropped is not None:
            message = f"the rows that go from `{above.table}` stay in this sink: what removes them does not come here"
            label = Label(above.dropped, "records without a value end here")
        elif status is not None and status.versioned:
            message = f"a late row of the versioned table `{above.table}` replaces a newer one in this sink"
            label = Label(above.place, "these are all changes, in order of arrival")
        else:
            continue
        help = f"write the table {code(named(above.table))}, or a `filter` or `map` of it: its sink keeps what is there"
        yield Finding("VSC346", mode.span, message, (label,), help)


def _removing(survey: Survey) -> Mapping[str, bool]:
    """Whether rows can go from each table, and whether a stream can have records without a value."""
    found: dict[str, bool] = {}
    for name in survey.order:
        declaration = survey.topology.nodes[name]
        store = survey.stores.of(name)
        if store is not None and store.expire is not None:
            found[name] = True
        elif isinstance(declaration, syntax.SourceDecl):
            found[name] = declaration.delete_when is not None or _brings(survey.connectors, name)
        else:
            above = [found.get(read.name.text, False) for read in declaration.operation.inputs]
            found[name] = _may_remove(declaration.operation, survey.kinds, above)
    return found


def _brings(connectors: Connectors, name: str) -> bool:
    connector = connectors.sources.get(name)
    if connector is None:
        return False
    facts = facts_of(connector.kind)
    return facts.removes or connector.keeps_history or dict(connector.options).get("format") in facts.of_tables


def _may_remove(operation: syntax.Operation, kinds: Kinds, above: list[bool]) -> bool:
    match operation:
        case syntax.Aggregate(input=read, window=window):
            of_table = kinds.get(read.name.text) == "table"
            return of_table or (window is not None and window.kind.text == "session" and window.emit != "final")
        case syntax.Filter(input=read):
            return kinds.get(read.name.text) == "table" or any(above)
        case syntax.Explode(input=read):
            return kinds.get(read.name.text) == "table"
        case syntax.ToTable(delete_when=condition):
            return condition is not None or any(above)
        case syntax.Join(mode=mode, on=on) if join_form(kinds, operation) == "table-table":
            return above[0] or (mode == "inner" and (bool(on) or above[1])) or (mode == "outer" and any(above))
        case syntax.Join(mode=mode, left=left, correct=syntax.Correct()):
            return (kinds.get(left.name.text) == "table" and above[0]) or (mode == "inner" and above[1])
        case syntax.Rekey() | syntax.Join():
            return False
        case syntax.Suppress(limit=None):
            return False
        case _:
            return any(above)
