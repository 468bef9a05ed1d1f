"""Checks that a connector can hold the columns of its node, and that it knows the times of its rows."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Fix, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.kinds import Kinds
from vsc.compiler.passes.message_formats import check_messages
from vsc.compiler.passes.partition_folders import check_partition_folders
from vsc.compiler.passes.stores import Stores
from vsc.compiler.passes.survey import Survey
from vsc.compiler.passes.windowed_keys import check_windowed_key
from vsc.compiler.topology import Topology
from vsc.plan import DEAD_LETTER, Connector, Schema, Window
from vsc.plan.connectors import facts_of
from vsc.plan.connectors.facts import Role
from vsc.plan.types import ArrayType, MapType, StructType, other_key, types_in

__all__ = ["check_formats"]

_JSON = ("json", "debezium")


def check_formats(survey: Survey) -> tuple[Finding, ...]:
    """Columns and options that do not fit a connector (VSC507 to 514), histories whose rows have no time (VSC401), rows
    without any (VSC403)."""
    topology = survey.topology
    findings: list[Finding] = []
    for name, declaration in topology.nodes.items():
        shape, connector = survey.shapes.get(name), survey.connectors.sources.get(name)
        if not isinstance(declaration, syntax.SourceDecl) or connector is None:
            continue
        findings.extend(_untimed(declaration, connector, survey.stores))
        findings.extend(_without_time(declaration, connector))
        if shape is not None:
            findings.extend(_not_provided(declaration, connector))
            findings.extend(_of_table(declaration, connector))
            findings.extend(_format(connector, declaration.connector, declaration.name.text, shape.schema, "source"))
    for index, sink in enumerate(topology.sinks):
        shape, connector = survey.shapes.get(sink.name.text), survey.connectors.sinks.get(index)
        if connector is not None and (lost := topology.lost(sink)) is not None:
            findings.extend(_format(connector, sink.connector, lost, DEAD_LETTER, "sink"))
        elif shape is not None and connector is not None:
            name = sink.name.text
            window = survey.windows.tables.get(name)
            findings.extend(_format(connector, sink.connector, name, shape.schema, "sink", window))
            findings.extend(_added(topology, survey.kinds, sink, connector, shape.schema))
    return tuple(findings)


def _untimed(source: syntax.SourceDecl, connector: Connector, stores: Stores) -> Iterator[Finding]:
    clause, time = stores.clauses.get(source.name.text), facts_of(connector.kind).untimed(dict(connector.options))
    if not time or source.timestamp is not None:
        return
    if clause is None or not clause.versioned or source.kind == "global table":
        return
    yield Finding(
        "VSC401", clause.span,
        f"every row of `{source.name.text}` is valid from {time} on, so as-of look-ups of earlier times find nothing",
        (Label(source.connector.kind.span, f"`{connector.kind}` has no time for a row"),),
        "add `timestamp COLUMN`, the time from which a row is valid",
    )  # fmt: skip


def _without_time(source: syntax.SourceDecl, connector: Connector) -> Iterator[Finding]:
    """Rows that have no time of their own; those of a history have."""
    what = facts_of(connector.kind).timeless(dict(connector.spark_options))
    if what is not None and source.timestamp is None and not connector.keeps_history:
        yield Finding(
            "VSC403", source.connector.kind.span, f"the rows of {what} have no time of their own", (),
            "add `timestamp COLUMN`",
        )  # fmt: skip


def _not_provided(source: syntax.SourceDecl, connector: Connector) -> Iterator[Finding]:
    """Columns that a connector whose columns are known does not have."""
    kind, provided = connector.kind, facts_of(connector.kind).provides
    for column in source.columns if provided else ():
        name, type_ = column.name.text, column.type.type
        if provided.get(name) == type_:
            continue
        if name in provided:
            message, span = f"`{kind}` provides `{name}` as {provided[name]}", column.type.span
            action, fix = f"write `{name} {provided[name]}`", Fix(span, str(provided[name]))
        else:
            message, span = f"`{kind}` has no column `{name}`", column.name.span
            known = " and ".join(f"`{one} {type}`" for one, type in provided.items())
            action, fix = f"declare {known}, or one of them", None
        yield Finding("VSC507", span, message, (Label(source.connector.kind.span, "this connector"),), action, fix)


def _of_table(source: syntax.SourceDecl, connector: Connector) -> Iterator[Finding]:
    """A stream of what are changes of a table."""
    form, name = dict(connector.options).get("format"), code(named(source.name.text))
    if source.kind == "stream" and form in facts_of(connector.kind).of_tables:
        place = next(option.value.span for option in source.connector.options if option.name.text == "format")
        yield Finding(
            "VSC508", place, f"`{form}` brings the changes of a table, and {name} is a stream", (),
            f"declare {name} as a table; `to_stream` makes a stream of its changes",
        )  # fmt: skip


def _format(
    connector: Connector,
    clause: syntax.ConnectorClause,
    node: str,
    schema: Schema,
    role: Role,
    window: Window | None = None,
) -> Iterator[Finding]:
    options = dict(connector.options)
    places = {option.name.text: option.value.span for option in clause.options if not option.quoted}
    if (form := options.get("format")) in facts_of(connector.kind).flat:
        for column in (*schema.key, *schema.value):
            if any(isinstance(part, ArrayType | MapType | StructType) for part in types_in(column.type)):
                message = f"{form} cannot hold the column `{column.name}` of `{node}`, {column.type}"
                yield Finding("VSC509", places["format"], message, (), "use `format = 'json'` or `'parquet'`")
    is_json = form in _JSON or facts_of(connector.kind).json_values
    for column in (*schema.key, *schema.value) if role == "source" and is_json else ():
        if (key := other_key(column.type)) is not None:
            what, place = form or connector.kind, places.get("format", clause.kind.span)
            message = f"{what} cannot hold the column `{column.name}` of `{node}`: the keys of a JSON map are strings"
            yield Finding("VSC509", place, message, (), f"declare `map<string, ...>`, not `map<{key}, ...>`")
    if role == "sink":
        yield from check_partition_folders(clause, node, schema)
    yield from check_messages(options, places, node, schema, role)
    yield from check_windowed_key(options, places, node, schema, role, window)


def _added(
    topology: Topology, kinds: Kinds, sink: syntax.SinkDecl, connector: Connector, schema: Schema
) -> Iterator[Finding]:
    """Columns of a node with the name of a column that its sink adds; Spark ignores the case of names."""
    node = sink.name.text
    added: tuple[str, ...]
    of_stream = kinds.get(node) == "stream"
    options = {option.name.text: option.name.span for option in sink.connector.options if not option.quoted}
    if of_stream:
        added = ("_timestamp",) if dict(connector.options).get("with_timestamp") is True else ()
    else:
        added = facts_of(connector.kind).adds
    for column in (*schema.key, *schema.value):
        if column.name.lower() not in added:
            continue
        yield Finding(
            "VSC510", options["with_timestamp"] if of_stream else sink.name.span,
            f"the sink adds a column `{column.name.lower()}`, and `{node}` has one of that name",
            (Label(topology.nodes[node].name.span, f"`{node}` has the column `{column.name}`"),),
            f"{'remove `with_timestamp`, or give' if of_stream else 'give'} the column of {code(named(node))} "
            "another name",
        )  # fmt: skip
