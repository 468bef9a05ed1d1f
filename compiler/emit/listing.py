"""The topology as a listing, to read and to diff with an earlier one: one block per node, in the plan's order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import fields

from vsc.compiler.emit.clauses import clauses
from vsc.plan import (
    Aggregate,
    Answer,
    Column,
    Connector,
    Correct,
    DeadLetters,
    Explode,
    ExplodeChanges,
    Filter,
    Grace,
    GroupChanges,
    Item,
    Map,
    Materialize,
    Merge,
    Node,
    Operation,
    Plan,
    Rekey,
    RowChanges,
    Sink,
    Source,
    Store,
    StreamGlobalJoin,
    StreamStreamJoin,
    StreamTableJoin,
    Subscribe,
    Suppress,
    TableTableJoin,
    ToStream,
    ToTable,
    WithinAggregate,
)
from vsc.plan.clocks import NodeClock, held_back_by, node_clocks
from vsc.plan.keyless import nullable_keys
from vsc.plan.types import quoted_name
from vsc.plan.words import duration, exploded, window, within

__all__ = ["emit_topology"]


def emit_topology(plan: Plan) -> str:
    """The nodes with kind, key, columns, types, versioned status and its reason, store and stage; then the sinks."""
    nullable, clocks = nullable_keys(plan), node_clocks(plan)
    options = ["clock = 'input'"] if plan.clock == "input" else []
    options += [] if plan.quiet is None else [f"quiet = {duration(plan.quiet)}"]
    blocks = [f"topology {quoted_name(plan.name)}" + (f" ({', '.join(options)})" if options else "")]
    for node in plan.nodes:
        if node in plan.dead_letters:
            continue
        stages = [stage.id for stage in plan.stages if node.name in stage.nodes]
        lines = [
            f"{node.kind} {quoted_name(node.name)}",
            *(f"  {key:<9} {text}" for key, text in _facts(node, stages, nullable[node.name])),
            *(f"  clock     {text}" for text in _clock(plan, node, clocks)),
        ]
        blocks.append("\n".join(lines))
    blocks.extend(f"sink {_written(plan, sink)} to {_connector(sink.connector)}" for sink in plan.sinks)
    if plan.variables:
        blocks.append(f"variables {', '.join(plan.variables)}")
    return "\n\n".join(blocks) + "\n"


def _clock(plan: Plan, node: Node, clocks: Mapping[str, NodeClock]) -> Iterator[str]:
    """How far the node's clock is behind that of its sources, and the nodes that hold its records back."""
    found = []
    for branch in clocks[node.name].branches:
        by = [f"{quoted_name(n)} {duration(clocks[n].holds)}" for n in held_back_by(plan, node.name, branch, clocks)]
        sources = ", ".join(quoted_name(one.name) for one in plan.sources if one.name in branch.sources)
        found.append(f"{duration(branch.hold)} behind {sources}" + (f" (held back by {', '.join(by)})" if by else ""))
    if plan.clock == "input" and clocks[node.name].hold:
        yield ("the lowest: " if len(found) > 1 else "") + "; ".join(found)


def _written(plan: Plan, sink: Sink) -> str:
    """What a sink writes, a node or lost records, in the language's words."""
    match plan.node(sink.node).operation:
        case DeadLetters(lost=lost, of=of):
            return lost if of is None else f"{lost} of {quoted_name(of)}"
        case _:
            return quoted_name(sink.owner)


def _facts(node: Node, stages: list[int], nullable: Set[str]) -> Iterator[tuple[str, str]]:
    yield from _operation(node)
    yield "key", _columns(node.schema.key, nullable)
    yield "columns", _columns(node.schema.value)
    if node.status is not None:
        word = "versioned" if node.status.versioned else "unversioned"
        yield "status", f"{word}: {node.status.reason} (decided by {quoted_name(node.status.decided_by)})"
    if node.store is not None:
        yield "store", _store(node.store)
    yield ("stage" if len(stages) == 1 else "stages"), ", ".join(map(str, stages))


def _operation(node: Node) -> Iterator[tuple[str, str]]:
    inputs = [quoted_name(name) for name in node.inputs]
    match node.operation:
        case Source(connector=connector, timestamp=timestamp, delete_when=delete_when):
            yield "from", _connector(connector)
            if timestamp is not None:
                yield "timestamp", _one_line(timestamp.text)
            if delete_when is not None:
                yield "delete", f"when {_one_line(delete_when.text)}"
        case Filter(predicate=predicate):
            yield "filter", f"{inputs[0]} where {_one_line(predicate.text)}"
        case Map(items=items, timestamp=timestamp):
            time = "" if timestamp is None else f" timestamp {_one_line(timestamp.text)}"
            yield "map", f"{inputs[0]} select {_items(items)}{time}"
        case Rekey(items=items):
            yield "rekey", f"{inputs[0]} by {_items(items)}"
        case Explode(item=Item(text=text)) as operation:
            yield "explode", f"{inputs[0]} by {_one_line(text)} as {exploded(operation)}"
        case Merge():
            yield "merge", ", ".join(inputs)
        case ToStream():
            yield "changes", f"of {inputs[0]}"
        case ToTable(delete_when=delete_when):
            yield "to_table", inputs[0] + (f" delete when {_one_line(delete_when.text)}" if delete_when else "")
        case Materialize():
            yield "copy of", inputs[0]
        case Suppress(until=until):
            yield "suppress", f"{inputs[0]} until {until.replace('_', ' ')}, {_held_back(node.operation)}"
        case Aggregate() as aggregate:
            yield from _aggregate(aggregate, inputs[0])
        case _:
            yield from _join(node, inputs)


def _calls(join: WithinAggregate) -> Iterator[str]:
    for call, over in zip(join.calls, join.overs, strict=True):
        yield call.text if over == join.before or " over " in call.text else f"{call.text} over {duration(over)}"


def _join(node: Node, inputs: list[str]) -> Iterator[tuple[str, str]]:
    """The lines of joins, and of the steps that the lowering adds for foreign-key joins and aggregates of tables."""
    match node.operation:
        case StreamTableJoin(left=left, as_of=as_of, items=items) as join:
            how = "as of the record's time" if as_of else "as it is"
            yield "left join" if left else "join", ", ".join((f"{inputs[0]} with {inputs[1]} {how}", *clauses(join)))
            yield "select", _items(items)
        case Grace() as held:
            yield "hold back", f"{inputs[0]}, {', '.join(clauses(held))}"
        case Correct(left=left, by=named, items=items) as join:
            yield "left join" if left else "join", f"{inputs[0]} with {inputs[1]} as of the record's time"
            yield "correct", ", ".join((f"by {_items(named)}", *clauses(join)))
            yield "select", _items(items)
        case StreamStreamJoin(mode=mode, grace=grace, items=items) as join:
            waits = f", grace {duration(grace)}" if grace else ""
            yield "join" if mode == "inner" else f"{mode} join", f"{inputs[0]} with {inputs[1]} {within(join)}{waits}"
            yield "select", _items(items)
        case WithinAggregate(left=left, grace=grace, items=items) as join:
            waits = f", grace {duration(grace)}" if grace else ""
            strictly = ", strictly before" if join.strictly_before else ""
            how = f"{inputs[0]} with all of {inputs[1]} {within(join)}{waits}{strictly}"
            yield "left join" if left else "join", how
            yield "aggregate", "; ".join(_calls(join))
            yield "select", _items(items)
        case StreamGlobalJoin(left=left, on=on, items=items) as join:
            by = f"{inputs[0]} with {inputs[1]} on {_items(on)}"
            yield "left join" if left else "join", ", ".join((by, *clauses(join)))
            yield "select", _items(items)
        case TableTableJoin(mode=mode, items=items):
            yield "join" if mode == "inner" else f"{mode} join", f"{inputs[0]} with {inputs[1]} by their key"
            yield "select", _items(items)
        case Subscribe(foreign_key=key, left=left):
            yield "subscribe", f"for the rows of {inputs[0]} on {_items(key)}{', left' if left else ''}"
        case Answer(items=items):
            yield "answer", f"{inputs[0]} with {inputs[1]}"
            yield "select", _items(items)
        case GroupChanges(group=by) | RowChanges(items=by):
            yield "changes", f"of {inputs[0]} by {_items(by)}"
        case ExplodeChanges(item=Item(text=text)) as operation:
            yield "changes", f"of {inputs[0]} by {_one_line(text)} as {exploded(operation)}"
        case other:
            yield other.op, f"{', '.join(inputs)} {', '.join(_members(other))}"


def _members(operation: Operation) -> Iterator[str]:
    """The members of an operation without wording of its own; numbers are durations."""
    for field in fields(operation)[:-1]:
        value = getattr(operation, field.name)
        if value is not False:
            yield field.name if value is True else f"{field.name} {duration(value)}"


def _aggregate(aggregate: Aggregate, read: str) -> Iterator[tuple[str, str]]:
    yield "aggregate", read
    if aggregate.window is not None:
        yield "window", window(aggregate.window) + (", emit final" if aggregate.final else "")
    yield "select", _items(aggregate.items)


def _held_back(suppress: Suppress) -> str:
    bounds = []
    if suppress.max_records is not None:
        bounds.append(f"{suppress.max_records} records")
    if suppress.max_bytes is not None:
        bounds.append(f"{suppress.max_bytes} bytes")
    text = f"wait {duration(suppress.wait)}"
    return f"{text}, at most {' and '.join(bounds)}, then {suppress.when_full}" if bounds else text


def _items(items: tuple[Item, ...]) -> str:
    shown = (
        _one_line(i.text) + ("" if i.text.split(".")[-1] == i.name else f" as {quoted_name(i.name)}") for i in items
    )
    return ", ".join(shown) or "nothing but the key"


def _columns(columns: tuple[Column, ...], nullable: Set[str] = frozenset()) -> str:
    """Columns and their types; of a key, also which may be null."""
    shown = (f"{quoted_name(c.name)} {c.type}{' or null' if c.name in nullable else ''}" for c in columns)
    return ", ".join(shown) or "none"


def _store(store: Store) -> str:
    text = f"{quoted_name(store.name)} {store.kind}"
    if store.retention is not None and store.segment is not None and store.grace is not None:
        text += (
            f" (retention = {duration(store.retention)}, segment = {duration(store.segment)}, "
            f"grace = {duration(store.grace)}{_history(store)})"
        )
    if store.expire is not None:
        text += f" (expire = {duration(store.expire)})"
    if store.forget is not None:
        text += f" (forgets after {duration(store.forget)})"
    return text + (", implied" if store.implied else "")


def _history(store: Store) -> str:
    return ", history = 'complete'" if store.history == "complete" else ""


def _connector(connector: Connector) -> str:
    own = [f"{name} = {_literal(value)}" for name, value in connector.options]
    spark = [f"{_literal(name)} = {_literal(value)}" for name, value in connector.spark_options]
    return f"{connector.kind} ({', '.join([*own, *spark])})"


def _literal(value: str | int | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def _one_line(text: str) -> str:
    return " ".join(text.split())
