"""Checks that a connector can hold the columns of its node, and that it knows the times of its rows."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Fix, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.columns import types_in
from vsc.compiler.passes.connectors import Connectors, Role
from vsc.compiler.passes.kafka_formats import check_kafka
from vsc.compiler.passes.kinds import Kinds
from vsc.compiler.passes.partition_folders import check_partition_folders
from vsc.compiler.passes.shapes import Shapes
from vsc.compiler.passes.stores import Stores
from vsc.compiler.topology import Topology
from vsc.plan import DEAD_LETTER, Connector, Schema
from vsc.plan.types import BIGINT, TIMESTAMP, ArrayType, DataType, MapType, StructType

__all__ = ["check_formats"]

_RATE: dict[str, DataType] = {"value": BIGINT, "at": TIMESTAMP}


def check_formats(
    topology: Topology, kinds: Kinds, shapes: Shapes, stores: Stores, connectors: Connectors
) -> tuple[Finding, ...]:
    """Columns and options that do not fit a connector (VSC507 to 514), histories whose rows have no time (VSC401), rows
    without any (VSC403)."""
    findings: list[Finding] = []
    for name, declaration in topology.nodes.items():
        shape, connector = shapes.get(name), connectors.sources.get(name)
        if not isinstance(declaration, syntax.SourceDecl) or connector is None:
            continue
        findings.extend(_untimed(declaration, connector, stores))
        findings.extend(_without_time(declaration, connector))
        if shape is not None:
            findings.extend(_rate(declaration, connector))
            findings.extend(_format(connector, declaration.connector, declaration.name.text, shape.schema, "source"))
    for index, sink in enumerate(topology.sinks):
        shape, connector = shapes.get(sink.name.text), connectors.sinks.get(index)
        if connector is not None and (lost := topology.lost(sink)) is not None:
            findings.extend(_format(connector, sink.connector, lost, DEAD_LETTER, "sink"))
        elif shape is not None and connector is not None:
            findings.extend(_format(connector, sink.connector, sink.name.text, shape.schema, "sink"))
            findings.extend(_added(topology, kinds, sink, connector, shape.schema))
    return tuple(findings)


def _untimed(source: syntax.SourceDecl, connector: Connector, stores: Stores) -> Iterator[Finding]:
    clause = stores.clauses.get(source.name.text)
    if connector.kind not in ("files", "jdbc") or source.timestamp is not None:
        return
    if clause is None or not clause.versioned or source.kind == "global table":
        return
    time = "the time its file was written" if connector.kind == "files" else "time zero"
    yield Finding(
        "VSC401", clause.span,
        f"every row of `{source.name.text}` is valid from {time} on, so as-of look-ups of earlier times find nothing",
        (Label(source.connector.kind.span, f"`{connector.kind}` has no time for a row"),),
        "add `timestamp COLUMN`, the time from which a row is valid",
    )  # fmt: skip


def _without_time(source: syntax.SourceDecl, connector: Connector) -> Iterator[Finding]:
    """The rows of a lake table have no time of their own, but for those of Delta's change feed and of a history."""
    if source.timestamp is not None or connector.kind not in ("delta", "iceberg") or connector.keeps_history:
        return
    feed = {name.lower(): str(value).lower() for name, value in connector.spark_options}.get("readchangefeed")
    if connector.kind == "iceberg" or feed == "false":
        what = "an Iceberg table" if connector.kind == "iceberg" else "a Delta table, without its change feed,"
        yield Finding(
            "VSC403", source.connector.kind.span, f"the rows of {what} have no time of their own", (),
            "add `timestamp COLUMN`",
        )  # fmt: skip


def _rate(source: syntax.SourceDecl, connector: Connector) -> Iterator[Finding]:
    if connector.kind != "rate":
        return
    for column in source.columns:
        name, type_ = column.name.text, column.type.type
        if _RATE.get(name) == type_:
            continue
        if name in _RATE:
            message, span = f"`rate` provides `{name}` as {_RATE[name]}", column.type.span
            action, fix = f"write `{name} {_RATE[name]}`", Fix(span, str(_RATE[name]))
        else:
            message, span = f"`rate` has no column `{name}`", column.name.span
            action, fix = "declare `value bigint` and `at timestamp`, or one of them", None
        yield Finding("VSC507", span, message, (Label(source.connector.kind.span, "this connector"),), action, fix)


def _format(
    connector: Connector, clause: syntax.ConnectorClause, node: str, schema: Schema, role: Role
) -> Iterator[Finding]:
    options = dict(connector.options)
    places = {option.name.text: option.value.span for option in clause.options if not option.quoted}
    if connector.kind == "files" and options.get("format") == "csv":
        for column in (*schema.key, *schema.value):
            if any(isinstance(part, ArrayType | MapType | StructType) for part in types_in(column.type)):
                message = f"csv cannot hold the column `{column.name}` of `{node}`, {column.type}"
                yield Finding("VSC509", places["format"], message, (), "use `format = 'json'` or `'parquet'`")
    if connector.kind == "files" and role == "sink":
        yield from check_partition_folders(clause, node, schema)
    if connector.kind == "kafka":
        yield from check_kafka(options, places, node, schema, role)


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
        added = ("_change", "_timestamp") if connector.kind == "files" else ()
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
