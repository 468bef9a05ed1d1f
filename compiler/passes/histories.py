"""Slowly changing dimensions (`history = 'scd2'`): only a versioned table can be read from one or written to one.

Each row is a version, with the times between which it is valid in two columns that the options name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.connectors import Connectors
from vsc.compiler.passes.shapes import Shapes
from vsc.compiler.passes.stores import Stores
from vsc.compiler.passes.versioning import Statuses
from vsc.compiler.topology import Topology
from vsc.plan import Connector, Schema
from vsc.plan.parts import VALID_FROM, VALID_TO

__all__ = ["check_histories"]

_TIMES = {"valid_from": VALID_FROM, "valid_to": VALID_TO}


def check_histories(
    topology: Topology, shapes: Shapes, stores: Stores, statuses: Statuses, connectors: Connectors
) -> tuple[Finding, ...]:
    """What does not go with `history` (VSC517 to 519)."""
    findings: list[Finding] = []
    for name, declaration in topology.nodes.items():
        connector = connectors.sources.get(name)
        if isinstance(declaration, syntax.SourceDecl) and connector is not None:
            findings.extend(_names(declaration.connector, connector))
            if connector.keeps_history:
                findings.extend(_source(declaration, stores))
    for index, sink in enumerate(topology.sinks):
        connector, shape = connectors.sinks.get(index), shapes.get(sink.name.text)
        if connector is None:
            continue
        findings.extend(_names(sink.connector, connector))
        if connector.keeps_history:
            findings.extend(_sink(topology, sink, stores, statuses))
            if shape is not None:
                findings.extend(_clashes(topology, sink, connector, shape.schema))
    return tuple(findings)


def _options(clause: syntax.ConnectorClause) -> Mapping[str, syntax.Option]:
    return {option.name.text: option for option in clause.options if not option.quoted}


def _names(clause: syntax.ConnectorClause, connector: Connector) -> Iterator[Finding]:
    """What is wrong with the options themselves."""
    given = _options(clause)
    if not connector.keeps_history:
        for name in _TIMES.keys() & given.keys():
            yield Finding(
                "VSC518", given[name].span, f"`{name}` names a column of a history, and there is no `history`", (),
                "add `history = 'scd2'`",
            )  # fmt: skip
    elif connector.valid_from.lower() == connector.valid_to.lower():
        option = given.get("valid_to") or given["valid_from"]
        yield Finding(
            "VSC518", option.span, f"`valid_from` and `valid_to` are both the column `{connector.valid_to}`", (),
            "name two columns",
        )  # fmt: skip


def _source(source: syntax.SourceDecl, stores: Stores) -> Iterator[Finding]:
    history, clause = _options(source.connector)["history"], stores.clauses.get(source.name.text)
    name = source.name.text
    if source.kind == "global table" or clause is None or not clause.versioned:
        place = () if clause is None else (Label(clause.span, "which this does not ask for"),)
        yield Finding(
            "VSC517", history.span, f"a history has versions, and `{name}` is not a versioned table", place,
            "add `materialize versioned (retention = ...)`, or remove `history`",
        )  # fmt: skip
    if source.timestamp is not None:
        yield Finding(
            "VSC519", source.timestamp.span, "the rows of a history have the time from which they are valid",
            (Label(history.span, "`history` says so"),), "remove `timestamp`",
        )  # fmt: skip


def _sink(topology: Topology, sink: syntax.SinkDecl, stores: Stores, statuses: Statuses) -> Iterator[Finding]:
    status, name = statuses.get(sink.name.text), sink.name.text
    if status is None or status.versioned:
        return
    clause = stores.clauses.get(status.decided_by)
    place = topology.nodes[status.decided_by].name.span if clause is None else clause.span
    yield Finding(
        "VSC517", _options(sink.connector)["history"].span,
        f"a history has versions, and `{name}` is not a versioned table",
        (Label(place, f"`{status.decided_by}` is unversioned: {status.reason}"),),
        f"materialize {code(named(status.decided_by))} versioned, or remove `history`",
    )  # fmt: skip


def _clashes(topology: Topology, sink: syntax.SinkDecl, connector: Connector, schema: Schema) -> Iterator[Finding]:
    for option, column in (("valid_from", connector.valid_from), ("valid_to", connector.valid_to)):
        clash = next((c for c in (*schema.key, *schema.value) if c.name.lower() == column.lower()), None)
        if clash is not None:
            given = _options(sink.connector)
            yield Finding(
                "VSC518", given.get(option, given["history"]).span,
                f"the sink adds the column `{column}`, and `{sink.name.text}` has one of that name",
                (Label(topology.nodes[sink.name.text].name.span, f"it has the column `{clash.name}`"),),
                f"name another column: `{option} = '...'`",
            )  # fmt: skip
