"""Draws the topology as the user wrote it: one box per statement, with the user's names.

Nodes that the lowering added are part of the box of the node for which they were added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vsc.compiler.emit.clauses import clauses
from vsc.compiler.emit.drawing import Arrow, Box, Drawing, lost_by, sink_lines, where
from vsc.plan import (
    Aggregate,
    Correct,
    DeadLetters,
    Distinct,
    Explode,
    ExplodeChanges,
    Filter,
    Grace,
    Item,
    Node,
    Operation,
    Plan,
    Rekey,
    Reorder,
    RowChanges,
    Source,
    Status,
    Store,
    StreamGlobalJoin,
    StreamStreamJoin,
    StreamTableJoin,
    Subscribe,
    Suppress,
    TableTableJoin,
    ToTable,
    WithinAggregate,
)
from vsc.plan.words import duration, exploded, window, within

__all__ = ["logical"]


def logical(plan: Plan) -> Drawing:
    """Draws the nodes and sinks, with an arrow from each to what reads it."""
    parts: dict[str, list[Node]] = {}
    for node in plan.nodes:
        parts.setdefault(node.owner, []).append(node)
    ids = {name: f"n{number}" for number, name in enumerate(parts)}
    owners = {node.name: node.owner for node in plan.nodes}
    boxes = [_box(ids[name], plan.node(name), found) for name, found in parts.items()]
    arrows = [
        Arrow(ids[owners[read]], ids[name], "plain" if read in node.driving else "lookup")
        for name, found in parts.items()
        for node in found
        for read in dict.fromkeys(node.inputs)
        if owners[read] != name
    ]
    arrows += (Arrow(ids[of], ids[node.name], "lost") for node in plan.dead_letters if (of := lost_by(node)))
    boxes += (Box(f"s{number}", "sink", sink_lines(sink.connector)) for number, sink in enumerate(plan.sinks))
    arrows += (Arrow(ids[sink.owner], f"s{number}") for number, sink in enumerate(plan.sinks))
    return Drawing(plan.name, tuple(boxes), tuple(arrows))


def _box(id_: str, node: Node, parts: Sequence[Node]) -> Box:
    is_global = isinstance(node.operation, Source) and node.operation.global_
    kind = "global table" if is_global else node.kind
    return Box(id_, kind, tuple(_lines(node, kind, parts)))


def _lines(node: Node, kind: str, parts: Sequence[Node]) -> Iterator[str]:
    yield node.name
    yield from _operation(node, kind, parts)
    if key := ", ".join(column.name for column in node.schema.key):
        yield f"key {key}"
    yield from _times(node.operation)
    if node.status is not None:
        yield _status(node.status)
    if node.store is not None:
        yield from _store(node.store)


def _operation(node: Node, kind: str, parts: Sequence[Node]) -> Iterator[str]:
    """The statement's operation in the language's words, with its arguments."""
    added = [part.operation for part in parts if part is not node]
    match [*added, node.operation]:
        case [*_, Source(connector=connector)]:
            yield kind
            yield f"from {connector.kind} {where(connector) or ''}"
            yield from (f"reorder within {duration(one.within)}" for one in added if isinstance(one, Reorder))
        case [Subscribe(foreign_key=key, left=left), *_]:
            yield f"{'left' if left else 'inner'} join ({kind})"
            yield _with(parts[1].inputs[1], key)
        case [*_, StreamTableJoin(left=left, as_of=as_of)]:
            yield f"{'left' if left else 'inner'} join ({kind})"
            yield _with(node.inputs[1], _moved(added))
            yield "as of the record's time" if as_of else "as the row is now"
        case [*_, Correct(left=left, by=by) as join, ToTable()]:
            yield f"{'left' if left else 'inner'} join ({kind})"
            yield _with(parts[-2].inputs[1], _moved(added))
            yield "as of the record's time"
            yield from (text for one in added if isinstance(one, Grace) for text in clauses(one))
            yield f"correct by {_texts(by)}"
            yield from clauses(join)
        case [StreamGlobalJoin(left=left, on=on)]:
            yield f"{'left' if left else 'inner'} join ({kind})"
            yield _with(node.inputs[1], on)
        case [StreamStreamJoin(mode=mode) as join]:
            yield f"{mode} join ({kind})"
            yield _with(node.inputs[1], ())
            yield within(join)
        case [WithinAggregate(left=left) as join]:
            yield f"{'left' if left else 'inner'} join ({kind})"
            yield _with(node.inputs[1], ())
            yield f"all {within(join)}"
        case [TableTableJoin(mode=mode)]:
            yield f"{mode} join ({kind})"
            yield _with(node.inputs[1], ())
        case [ExplodeChanges() as operation, ToTable()]:
            yield f"explode ({kind})"
            yield f"by {operation.item.text} as {exploded(operation)}"
        case [DeadLetters()]:
            yield "dead letters"
        case [*_, operation]:
            yield f"{operation.op} ({kind})"
            yield from _given(operation, added)


def _given(operation: Operation, added: Sequence[Operation]) -> Iterator[str]:
    match operation:
        case Filter(predicate=predicate):
            yield f"where {predicate.text}"
        case Explode(item=item) as operation:
            yield f"by {item.text} as {exploded(operation)}"
        case Reorder(within=late):
            yield f"within {duration(late)}"
        case Distinct(within=apart):
            if moved := _moved(added):
                yield f"by {_texts(moved)}"
            yield f"within {duration(apart)}"
        case Suppress(until="window_closes"):
            yield "until window closes"
        case Suppress(wait=wait):
            yield f"until time limit {duration(wait)}"
        case _:
            return


def _moved(added: Sequence[Operation]) -> tuple[Item, ...]:
    """What an ``on`` or ``by`` computes: the key under which the lowering sends records elsewhere."""
    return next((operation.items for operation in added if isinstance(operation, Rekey | RowChanges)), ())


def _with(table: str, on: tuple[Item, ...]) -> str:
    return f"with {table} on {_texts(on)}" if on else f"with {table}"


def _texts(items: tuple[Item, ...]) -> str:
    return ", ".join(item.text for item in items)


def _times(operation: Operation) -> Iterator[str]:
    match operation:
        case Aggregate(window=found, final=final) if found is not None:
            yield window(found) + (", emit final" if final else "")
        case StreamTableJoin() | StreamGlobalJoin() as join:
            yield from clauses(join)
        case Distinct(grace=grace) | StreamStreamJoin(grace=grace) | WithinAggregate(grace=grace) if grace:
            yield f"grace {duration(grace)}"
        case _:
            return


def _status(status: Status) -> str:
    return f"{'versioned' if status.versioned else 'unversioned'}: {status.reason}"


def _store(store: Store) -> Iterator[str]:
    if store.retention is not None and store.grace is not None:
        yield f"retention {duration(store.retention)}"
        if store.grace != store.retention:
            yield f"store grace {duration(store.grace)}"
        if store.history == "complete":
            yield "complete history"
    if store.expire is not None:
        yield f"expire {duration(store.expire)}"
