"""Builds the operators of stream nodes."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle.records import (
    answer,
    complete,
    correct,
    distinct,
    explode,
    explode_changes,
    expressions,
    filter,
    grace,
    group_changes,
    map,
    merge,
    rekey,
    reorder,
    row_changes,
    stream_global_join,
    stream_stream_join,
    stream_table_join,
    subscribe,
    to_stream,
    within_aggregate,
)
from tests.oracle.records.building import Built, Parts
from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.expressions import Row, condition
from tests.oracle.records.foreign_keys import travelling
from tests.oracle.records.getters import Getter
from tests.oracle.records.graph_getters import asked
from tests.oracle.records.places import kept_columns, places_of, value_order
from tests.oracle.records.tables import TableStore
from vsc.plan.nodes import (
    Answer,
    Correct,
    Explode,
    ExplodeChanges,
    Filter,
    Grace,
    GroupChanges,
    Map,
    Merge,
    Node,
    Rekey,
    Reorder,
    RowChanges,
    Schema,
    StreamGlobalJoin,
    StreamStreamJoin,
    StreamTableJoin,
    Subscribe,
    ToStream,
    WithinAggregate,
    with_revision,
)
from vsc.plan.operations import Distinct

__all__ = ["stream_operator"]


def stream_operator(parts: Parts, node: Node, forward: RecordConsumer) -> Built:
    """The operator of a stream node; ValueError for one that cannot run in a stage with state."""
    match node.operation:
        case Filter(predicate):
            before = parts.schema(node)
            holds = condition(node.owner, predicate, [before])
            return filter.StreamFilter(holds, len(before.value), parts.context, forward).process
        case Map(items, time):
            values = expressions.items(node.owner, [*items, *([] if time is None else [time])], [parts.schema(node)])
            timed = None if time is None else 1000 if str(time.expr.type) == "timestamp" else 1
            return map.StreamMap(node.owner, values, timed, parts.context, forward).process
        case Rekey(items):
            before = parts.schema(node)
            key = expressions.items(node.owner, items, [before])
            kept = kept_columns(before, node.schema)
            readers = [one.operation for one in parts.nodes.values() if node.name in one.inputs]
            keyless = node.part_of is None or any(
                isinstance(one, StreamTableJoin | Correct | Grace) and one.left for one in readers
            )
            return rekey.Rekey(node.owner, key, kept, keyless, parts.context, forward).process
        case StreamTableJoin() as join:
            return _stream_table_join(parts, node, join, forward)
        case Correct() as join:
            return _correct(parts, node, join, forward)
        case StreamStreamJoin() as join:
            return _stream_stream_join(parts, node, join, forward)
        case WithinAggregate() as join:
            return _within_aggregate(parts, node, join, forward)
        case StreamGlobalJoin() as join:
            return _stream_global_join(parts, node, join, forward)
        case Merge():
            inputs = [parts.nodes[name].schema for name in node.inputs]
            orders = [value_order(before, node.schema) for before in inputs]
            return tuple(merge.Merge(order, forward).process for order in orders)
        case Distinct() as operation:
            before = parts.schema(node)
            types, back = [c.type for c in before.key], _own_columns(before, node.schema)
            unique = distinct.Distinct(node, operation, types, back, parts.context, forward)
            parts.beside[node.name] = unique.content
            return unique.process
        case Grace(left=left, grace=length):
            on = grace.GoingOn(node.owner, left, parts.context, forward)
            buffer = grace.GraceBuffer(node.name, length, parts.schema(node), on, parts.context)
            parts.waiting[node.name], parts.beside[node.name] = buffer, buffer.content
            return buffer.process
        case Reorder() as operation:
            waiting = reorder.Reordering(node, operation, parts.context, forward)
            parts.waiting[node.name], parts.beside[node.name] = waiting, waiting.content
            return waiting.process
        case Explode(item, position):
            before = parts.schema(node)
            array = expressions.items(node.owner, [item], [before])
            places = places_of([c.name for c in before.value], [*([position] if position else []), item.name])
            return explode.Explode(node.owner, array, places, parts.context, forward).process
        case ExplodeChanges() as step:
            return _explode_changes(parts, node, step, forward)
        case ToStream():
            return to_stream.ToStream(forward).process
        case GroupChanges(group, versioned=versioned, window=window, steady=steady) as step:
            table = parts.schema(node)
            mapped = expressions.items(node.owner, group, [table])
            columns = group_changes.travelling(table, node.schema)
            grouped = group_changes.GroupChanges(
                node, mapped, columns, versioned, window, steady, parts.context, forward,
                parts.behind(node.inputs[0]) if step.complete else None,
            )  # fmt: skip
            return grouped.process
        case RowChanges(items=items) as step:
            table = parts.schema(node)
            names = [c.name for c in (*table.key, *table.value)]
            found_by = expressions.items(node.owner, items, [table])
            places = places_of(names, [c.name for c in node.schema.value[2:]])
            return row_changes.RowChanges(node.owner, step, found_by, places, parts.context, forward).process
        case Subscribe() as step:
            return _subscribe(parts, node, step, forward)
        case Answer() as step:
            return _answer(parts, node, step, forward)
        case other:
            raise ValueError(f"node '{node.name}': {other.op} of a stream cannot run in a stage with state")


def _explode_changes(parts: Parts, node: Node, operation: ExplodeChanges, forward: RecordConsumer) -> Built:
    table, item = parts.schema(node), operation.item
    names, before = [c.name for c in node.schema.value], [c.name for c in table.value]
    return explode_changes.ExplodeChanges(
        node.owner, expressions.items(node.owner, [item], [table]),
        (names.index(item.name), [c.name for c in node.schema.key].index(operation.position)),
        [before.index(name) for name in names if name != item.name],
        operation.versioned, parts.context, forward,
    ).process  # fmt: skip


def _stream_table_join(parts: Parts, node: Node, operation: StreamTableJoin, forward: RecordConsumer) -> RecordConsumer:
    stream, table = (parts.nodes[name] for name in node.inputs)
    values = expressions.items(node.owner, operation.items, [stream.schema, table.schema])
    join = stream_table_join.StreamTableJoin(
        node, operation, asked(parts, node, table.name), parts.behind(table.name), values, parts.context, forward,
    )  # fmt: skip
    if operation.grace is None:
        return join.process
    waiting = grace.GraceBuffer(node.name, operation.grace, stream.schema, join, parts.context)
    parts.waiting[node.name], parts.beside[node.name] = waiting, waiting.content
    return waiting.process


def _correct(parts: Parts, node: Node, operation: Correct, forward: RecordConsumer) -> Built:
    left, table = (parts.nodes[name] for name in node.inputs)
    store = parts.behind(table.name)
    assert store is not None
    seen = [with_revision(left.schema), table.schema]
    join = correct.Correct(
        node, operation, left.schema, asked(parts, node, table.name), store,
        expressions.items(node.owner, operation.by, [left.schema]),
        expressions.items(node.owner, operation.items, seen),
        parts.context, forward,
    )  # fmt: skip
    parts.beside[node.name] = join.content
    return join.record, join.change


def _stream_stream_join(parts: Parts, node: Node, operation: StreamStreamJoin, forward: RecordConsumer) -> Built:
    schemas = [parts.nodes[name].schema for name in node.inputs]
    values = expressions.items(node.owner, operation.items, schemas)
    join = stream_stream_join.StreamStreamJoin(node, operation, schemas, values, parts.context, forward)
    parts.beside[node.name] = join.content
    if operation.waits:
        parts.waiting[node.name] = join
    return join.left, join.right


def _within_aggregate(parts: Parts, node: Node, operation: WithinAggregate, forward: RecordConsumer) -> Built:
    schemas = [parts.nodes[name].schema for name in node.inputs]
    within = within_aggregate.Within(node, operation, schemas, parts.context, forward)
    parts.beside[node.name] = within.content
    if operation.waits:
        parts.waiting[node.name] = within
    return within.left, within.right


def _stream_global_join(
    parts: Parts, node: Node, operation: StreamGlobalJoin, forward: RecordConsumer
) -> RecordConsumer:
    stream, table = (parts.nodes[name].schema for name in node.inputs)
    return stream_global_join.StreamGlobalJoin(
        node.owner, operation.left, expressions.items(node.owner, operation.on, [stream]), operation.max_age,
        asked(parts, node, node.inputs[1]), expressions.items(node.owner, operation.items, [stream, table]),
        parts.context, forward,
    ).process  # fmt: skip


def _subscribe(parts: Parts, node: Node, operation: Subscribe, forward: RecordConsumer) -> Built:
    table = parts.schema(node)
    return subscribe.Subscribe(
        node.owner, expressions.items(node.owner, operation.foreign_key, [table]),
        tuple(c.type for c in node.schema.key), operation.left, operation.versioned,
        travelling(parts.plan, node), parts.context, forward, *_history(parts, node, operation.complete),
    ).process  # fmt: skip


def _history(parts: Parts, node: Node, complete: bool) -> tuple[TableStore | None, Getter | None]:
    """The store behind the first input of a node, and the look-up into it, if a complete history is computed there."""
    name = node.inputs[0]
    return (parts.behind(name), asked(parts, node, name)) if complete else (None, None)


def _answer(parts: Parts, node: Node, operation: Answer, forward: RecordConsumer) -> Built:
    right = parts.nodes[node.inputs[1]]
    if operation.complete:
        return _complete_answer(parts, node, operation, right, forward)
    step = answer.Answer(
        node.owner, operation.left, operation.versioned, operation.left_schema, right.schema,
        expressions.items(node.owner, operation.items, [operation.left_schema, right.schema]),
        asked(parts, node, right.name), parts.context, forward,
    )  # fmt: skip
    parts.beside[node.name] = step.content
    parts.finishers.append(step.finish)
    return step.subscription, step.change


def _complete_answer(parts: Parts, node: Node, operation: Answer, right: Node, forward: RecordConsumer) -> Built:
    store, kept = parts.behind(right.name), parts.plan.node(node.owner).store
    assert store is not None and kept is not None and kept.retention is not None
    values = expressions.items(node.owner, operation.items, [operation.left_schema, right.schema])
    get = asked(parts, node, right.name)
    step = complete.CompleteAnswer(node, operation, kept.retention, store, values, get, parts.context, forward)
    return step.subscription, step.change


def _own_columns(before: Schema, after: Schema) -> Callable[[Row, Row | None], tuple[Row, Row | None]]:
    """Takes the columns of the second schema out of a record of the first."""
    if before == after:
        return lambda key, value: (key, value)
    names = [c.name for c in (*before.key, *before.value)]
    keys, values = ([names.index(c.name) for c in part] for part in (after.key, after.value))

    def taken(key: Row, value: Row | None) -> tuple[Row, Row | None]:
        assert value is not None  # a `rekey` lets none through
        row = key + value
        return tuple(row[i] for i in keys), tuple(row[i] for i in values)

    return taken
