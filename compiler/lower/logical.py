"""What is computed: a plan node for every statement, and a re-key in front of every join that needs one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal as Choice

from vsc.compiler import syntax
from vsc.compiler.passes.check import CheckedTopology
from vsc.compiler.passes.schemas import Shape
from vsc.plan import (
    Column,
    Filter,
    Item,
    Map,
    Materialize,
    Node,
    Operation,
    Rekey,
    Schema,
    Sink,
    Source,
    StreamTableJoin,
    ToTable,
)
from vsc.plan.expressions import Call, Cast, Expr, Literal
from vsc.plan.expressions import Column as ColumnExpr

__all__ = ["nodes", "sinks"]


def nodes(checked: CheckedTopology) -> tuple[Node, ...]:
    """The nodes of the plan, inputs first, else in the order of the file."""
    ranks = _ranks(checked)
    return tuple(node for name in checked.order for node in _lowered(checked, name, ranks))


def sinks(checked: CheckedTopology) -> tuple[Sink, ...]:
    """The sinks of the plan, in the order of the file."""
    return tuple(
        Sink(f"sink-{index}", sink.name.text, checked.connectors.sinks[index], _line(checked, sink))
        for index, sink in enumerate(checked.topology.sinks)
    )


def _ranks(checked: CheckedTopology) -> dict[str, int]:
    """The places of the sources in the order of arrival: tables before streams, then as in the file."""
    sources = [d for d in checked.topology.nodes.values() if isinstance(d, syntax.SourceDecl)]
    ordered = sorted(sources, key=lambda source: source.kind == "stream")
    return {source.name.text: rank for rank, source in enumerate(ordered)}


def _lowered(checked: CheckedTopology, name: str, ranks: dict[str, int]) -> Iterator[Node]:
    declaration, shape = checked.topology.nodes[name], checked.shapes[name]
    line = _line(checked, declaration)
    if isinstance(declaration, syntax.SourceDecl):
        yield _node(checked, name, shape, _source(checked, declaration, shape, ranks[name]), (), line)
        return
    inputs = tuple(read.name.text for read in checked.topology.inputs(name))
    operation: Operation
    match declaration.operation:
        case syntax.Filter():
            assert shape.condition is not None
            operation = Filter(shape.condition)
        case syntax.Map():
            operation = Map(shape.items)
        case syntax.ToTable():
            operation = ToTable(shape.condition)
        case syntax.Materialize():
            operation = Materialize()
        case syntax.Join() as join:
            if shape.rekeyed is not None:
                rekey = _rekey(checked, name, shape, shape.rekeyed, inputs[0], line)
                yield rekey
                inputs = (rekey.name, inputs[1])
            operation = _join(checked, join, shape)
        case other:
            raise AssertionError(f"{type(other).__name__} was not refused")
    yield _node(checked, name, shape, operation, inputs, line)


def _node(
    checked: CheckedTopology, name: str, shape: Shape, operation: Operation, inputs: tuple[str, ...], line: int
) -> Node:
    kind: Choice["stream", "table"] = "stream" if checked.kinds[name] == "stream" else "table"
    return Node(name, kind, shape.schema, operation, inputs, line, checked.stores.of(name), checked.statuses.get(name))


def _source(checked: CheckedTopology, declaration: syntax.SourceDecl, shape: Shape, rank: int) -> Source:
    connector = checked.connectors.sources[declaration.name.text]
    return Source(connector, shape.columns, shape.timestamp, shape.condition, rank, declaration.kind == "global table")


def _join(checked: CheckedTopology, join: syntax.Join, shape: Shape) -> StreamTableJoin:
    grace = None
    if join.grace is not None:
        assert isinstance(join.grace.duration, syntax.Duration)
        grace = join.grace.duration.milliseconds
    as_of = checked.statuses[join.right.name.text].versioned
    return StreamTableJoin(join.mode == "left", as_of, grace, shape.items)


def _rekey(
    checked: CheckedTopology, join: str, shape: Shape, rekeyed: tuple[Schema, tuple[Item, ...]], read: str, line: int
) -> Node:
    """The stream under its new key, with the columns that the join reads: others need not travel."""
    name = f"{join}#rekey"
    while name in checked.topology.nodes:
        name += "#"
    schema, items = rekeyed
    used = {column for item in shape.items for column in _left_columns(item.expr)}
    value: tuple[Column, ...] = tuple(column for column in schema.value if column.name in used)
    return Node(name, "stream", Schema(schema.key, value), Rekey(items), (read,), line)


def _left_columns(expr: Expr) -> Iterator[str]:
    match expr:
        case ColumnExpr(input=0, name=name):
            yield name
        case Cast(arg=arg):
            yield from _left_columns(arg)
        case Call(args=args):
            for arg in args:
                yield from _left_columns(arg)
        case ColumnExpr() | Literal():
            return


def _line(checked: CheckedTopology, statement: syntax.Statement) -> int:
    return checked.source.position(statement.span.start).line
