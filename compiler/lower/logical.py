"""What is computed: a plan node for every statement, preceded by the nodes that joins and aggregates need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal as Choice

from vsc.compiler import syntax
from vsc.compiler.lower.correct import correct, forgotten, grace_of, max_age, row_changes
from vsc.compiler.lower.exploded import exploded
from vsc.compiler.lower.foreign import foreign_key_join
from vsc.compiler.lower.groups import aggregate
from vsc.compiler.lower.travel import added_name, columns_read, rekeyed
from vsc.compiler.passes.check import CheckedTopology
from vsc.compiler.passes.kinds import join_form
from vsc.compiler.passes.shapes import Shape
from vsc.compiler.passes.windowed_keys import with_window
from vsc.plan import (
    DEAD_LETTER,
    Call,
    Column,
    DeadLetters,
    Node,
    Operation,
    OwnFunction,
    Reorder,
    Sink,
    Source,
    StreamGlobalJoin,
    StreamTableJoin,
    Suppress,
    TableTableJoin,
    ToTable,
)
from vsc.plan.expressions import parts

__all__ = ["dead_letters", "functions", "nodes", "sinks"]


def nodes(checked: CheckedTopology) -> tuple[Node, ...]:
    """The nodes of the plan: inputs first, otherwise in the order of the file."""
    ranks, behind = _ranks(checked), _reordered(checked)
    found = (node for name in checked.order for node in _lowered(checked, name, ranks))
    return tuple(one for node in found for one in _read_in_order(checked, node, behind))


def sinks(checked: CheckedTopology) -> tuple[Sink, ...]:
    """The sinks of the plan, in the order of the file."""
    behind = _reordered(checked)
    names = [_written(checked, sink) for sink in checked.topology.sinks]
    return tuple(
        Sink(
            f"sink-{index}", behind.get(name, name),
            with_window(checked.connectors.sinks[index], checked.windows.tables.get(sink.name.text)),
            _line(checked, sink), name if name in behind else None,
        )
        for index, (name, sink) in enumerate(zip(names, checked.topology.sinks, strict=True))
    )  # fmt: skip


def dead_letters(checked: CheckedTopology) -> tuple[Node, ...]:
    """The nodes of lost records that sinks write, each once, in the order of the file."""
    found: dict[str, Node] = {}
    for sink in checked.topology.sinks:
        lost = checked.topology.lost(sink)
        if lost is not None:
            name, of = _written(checked, sink), None if sink.of is None else sink.of.text
            operation = DeadLetters("dropped" if lost == "dropped" else "missed", of)
            found.setdefault(name, Node(name, "stream", DEAD_LETTER, operation, (), _line(checked, sink)))
    return tuple(found.values())


def functions(checked: CheckedTopology, nodes: Sequence[Node]) -> tuple[OwnFunction, ...]:
    """The functions of the user's that nodes call, in the order of the file."""
    declared = checked.topology.functions.values()
    calls = _calls(nodes) if declared else ()
    return tuple(
        OwnFunction(
            function.name.text,
            tuple(Column(one.name.text, one.type.type) for one in function.parameters),
            function.returns.type,
            function.reference,
            function.vectorized,
        )
        for function in declared
        if function.reference in calls
    )


def _calls(nodes: Sequence[Node]) -> set[str]:
    """What the expressions of nodes call."""
    schemas = {node.name: node.schema for node in nodes}
    placed = (
        one for node in nodes
        for one in node.operation.expressions(tuple(schemas[name] for name in node.inputs), node.schema)
    )  # fmt: skip
    return {part.function for _, expr, _ in placed for part in parts(expr) if isinstance(part, Call)}


def _written(checked: CheckedTopology, sink: syntax.SinkDecl) -> str:
    """The node that a sink writes."""
    if checked.topology.lost(sink) is None or sink.of is None:
        return sink.name.text
    name = f"{sink.name.text} of {sink.of.text}"
    while name in checked.topology.nodes:
        name += "#"
    return name


def _ranks(checked: CheckedTopology) -> dict[str, int]:
    """The rank of each source when records are equal in time: tables before streams, then as in the file."""
    sources = [d for d in checked.topology.nodes.values() if isinstance(d, syntax.SourceDecl)]
    ordered = sorted(sources, key=lambda source: source.kind == "stream")
    return {source.name.text: rank for rank, source in enumerate(ordered)}


def _reordered(checked: CheckedTopology) -> dict[str, str]:
    """By source with `reorder within`: the node behind it that all of its readers read."""
    sources = (one for one in checked.topology.nodes.values() if isinstance(one, syntax.SourceDecl))
    names = [source.name.text for source in sources if source.reordered is not None]
    return {name: added_name(checked, name, "reorder") for name in names}


def _read_in_order(checked: CheckedTopology, node: Node, behind: dict[str, str]) -> Iterator[Node]:
    """The node, which reads its sources in order; and what puts its own records in order, if it is such a source."""
    yield replace(node, inputs=tuple(behind.get(name, name) for name in node.inputs))
    if node.name in behind:
        declaration = checked.topology.nodes[node.name]
        assert isinstance(declaration, syntax.SourceDecl) and declaration.reordered is not None
        line = checked.source.line_of(declaration.reordered.span)
        operation = Reorder(declaration.reordered.within.milliseconds)
        yield Node(behind[node.name], "stream", node.schema, operation, (node.name,), line, part_of=node.name)


def _lowered(checked: CheckedTopology, name: str, ranks: dict[str, int]) -> Iterator[Node]:
    declaration, shape = checked.topology.nodes[name], checked.shapes[name]
    line = _line(checked, declaration)
    if isinstance(declaration, syntax.SourceDecl):
        yield _node(checked, name, shape, _source(checked, declaration, shape, ranks[name]), (), line)
        return
    inputs = tuple(read.name.text for read in checked.topology.inputs(name))
    operation: Operation
    match declaration.operation:
        case syntax.Join() as join:
            added, operation, inputs = _join(checked, name, join, shape, inputs)
            yield from added
        case syntax.Aggregate() as written:
            added, operation, read = aggregate(checked, name, written)
            yield from added
            inputs = (read,)
        case syntax.Suppress():
            operation = checked.suppressed[name]
        case syntax.Explode(input=read) if checked.kinds[read.name.text] == "table":
            changes = exploded(checked, name, read.name.text)
            yield changes
            operation, inputs = ToTable(None), (changes.name,)
        case _:
            assert shape.operation is not None
            operation = shape.operation
            if shape.rekeyed is not None:
                moved = rekeyed(checked, name, shape.rekeyed, inputs[0])
                yield moved
                inputs = (moved.name,)
    yield _node(checked, name, shape, operation, inputs, line)


def _node(
    checked: CheckedTopology, name: str, shape: Shape, operation: Operation, inputs: tuple[str, ...], line: int
) -> Node:
    kind: Choice["stream", "table"] = "stream" if checked.kinds[name] == "stream" else "table"
    declaration = checked.topology.nodes[name]
    aggregates = isinstance(declaration, syntax.DerivedDecl) and isinstance(declaration.operation, syntax.Aggregate)
    held = aggregates and isinstance(operation, Suppress)  # final windows of a table: the node in front has the store
    store = None if held else checked.stores.of(name)
    if store is not None and store.implied and _corrected(declaration):
        store = replace(store, forget=forgotten(checked, name))
    return Node(name, kind, shape.schema, operation, inputs, line, store, checked.statuses.get(name))


def _corrected(declaration: syntax.SourceDecl | syntax.DerivedDecl) -> bool:
    """Whether a table is the result of a corrected join."""
    if not isinstance(declaration, syntax.DerivedDecl) or not isinstance(declaration.operation, syntax.Join):
        return False
    return declaration.operation.correct is not None


def _source(checked: CheckedTopology, declaration: syntax.SourceDecl, shape: Shape, rank: int) -> Source:
    name, is_global = declaration.name.text, declaration.kind == "global table"
    connector, ahead = checked.connectors.sources[name], checked.connectors.ahead[name]
    return Source(connector, shape.columns, shape.timestamp, shape.condition, rank, is_global, ahead)


def _join(
    checked: CheckedTopology, name: str, join: syntax.Join, shape: Shape, inputs: tuple[str, ...]
) -> tuple[tuple[Node, ...], Operation, tuple[str, ...]]:
    """The nodes added before a join, its operation, and what it reads."""
    form = join_form(checked.kinds, join)
    if form == "stream-stream":
        assert shape.operation is not None
        return (), shape.operation, inputs
    if form == "table-table" and join.on:
        added = foreign_key_join(checked, name, join)
        return added, ToTable(None), (added[-1].name,)
    if form == "table-table":
        complete = checked.stores.complete(name)
        left, right = (checked.statuses[table].versioned and not complete for table in inputs)
        return (), TableTableJoin(join.mode, left, right, shape.items), inputs
    if form == "stream-global":
        return (), StreamGlobalJoin(join.mode == "left", shape.on, shape.items, max_age(join)), inputs
    moved, stream = tuple[Node, ...](), checked.shapes[inputs[0]].schema
    if shape.rekeyed is not None:
        used = columns_read(item.expr for item in (*shape.items, *shape.by))
        of_table = checked.kinds[inputs[0]] == "table"
        moved = ((row_changes if of_table else rekeyed)(checked, name, shape.rekeyed, inputs[0], used),)
        inputs, stream = (moved[0].name, inputs[1]), moved[0].schema
    if join.correct is not None:
        corrected = correct(checked, name, join, shape, stream, inputs)
        return (*moved, *corrected), ToTable(None), (corrected[-1].name,)
    return moved, _stream_table_join(checked, join, shape), inputs


def _stream_table_join(checked: CheckedTopology, join: syntax.Join, shape: Shape) -> StreamTableJoin:
    as_of = checked.statuses[join.right.name.text].versioned
    return StreamTableJoin(
        join.mode == "left", as_of, grace_of(join), shape.items, max_age(join), join.strictly_before is not None,
        join.drop_older is not None,
    )  # fmt: skip


def _line(checked: CheckedTopology, statement: syntax.Statement) -> int:
    return checked.source.line_of(statement.span)
