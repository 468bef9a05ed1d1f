"""Builds the operators of stream nodes."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle.records import (
    answer,
    distinct,
    explode,
    filter,
    grace,
    group_changes,
    map,
    merge,
    rekey,
    stream_global_join,
    stream_table_join,
    subscribe,
    to_stream,
)
from tests.oracle.records.building import Built, Parts
from tests.oracle.records.conditions import condition
from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.graph_getters import getter
from tests.oracle.records.places import element_place, kept_columns, value_order
from tests.oracle.records.tables import RecordBuffer, RecordSubscriptions
from vsc.plan.nodes import (
    Answer,
    Explode,
    Filter,
    GroupChanges,
    Map,
    Merge,
    Node,
    Rekey,
    Schema,
    StreamGlobalJoin,
    StreamTableJoin,
    Subscribe,
    ToStream,
)
from vsc.plan.operations import Distinct
from vsc.runtime.operators import evaluate
from vsc.runtime.operators.aggregate.travelled import travelling as changes_travelling
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.operators.foreign_key_join import travelling as subscriptions_travelling
from vsc.runtime.operators.layout import store_prefix
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.passed import PassedTimes

__all__ = ["stream_operator"]


def stream_operator(parts: Parts, node: Node, forward: RecordConsumer) -> Built:
    """The operator of a stream node; ValueError for one that cannot run in a stage with state."""
    match node.operation:
        case Filter(predicate):
            before = parts.schema(node)
            holds = condition(node.owner, predicate, [before])
            return filter.StreamFilter(holds, len(before.value), parts.context, forward).process
        case Map(items):
            values = evaluate.items(node.owner, items, [parts.schema(node)])
            return map.StreamMap(values, parts.context, forward).process
        case Rekey(items):
            before = parts.schema(node)
            key = evaluate.items(node.owner, items, [before])
            kept = kept_columns(before, node.schema)
            reader = parts.nodes[node.owner].operation
            keyless = isinstance(reader, StreamTableJoin) and reader.left
            return rekey.Rekey(node.owner, key, kept, keyless, parts.context, forward).process
        case StreamTableJoin() as join:
            return _stream_table_join(parts, node, join, forward)
        case StreamGlobalJoin() as join:
            return _stream_global_join(parts, node, join, forward)
        case Merge():
            inputs = [parts.nodes[name].schema for name in node.inputs]
            orders = [value_order(before, node.schema) for before in inputs]
            return tuple(merge.Merge(order, forward).process for order in orders)
        case Distinct() as operation:
            store = PassedTimes(parts.kv, store_prefix(parts.stage, node.name))
            back = _own_columns(parts.schema(node), node.schema)
            return distinct.Distinct(node.owner, operation, store, back, parts.context, forward).process
        case Explode(item):
            before = parts.schema(node)
            array = evaluate.items(node.owner, [item], [before])
            place = element_place(before, item.name)
            return explode.Explode(node.owner, array, place, parts.context, forward).process
        case ToStream():
            return to_stream.ToStream(forward).process
        case GroupChanges(group, versioned=versioned):
            table = parts.schema(node)
            mapped = evaluate.items(node.owner, group, [table])
            columns = changes_travelling(table, node.schema)
            keys = KeyCodec([c.type for c in node.schema.key])
            return group_changes.GroupChanges(
                node.owner, mapped, keys, columns, versioned, parts.context, forward
            ).process
        case Subscribe() as step:
            return _subscribe(parts, node, step, forward)
        case Answer() as step:
            return _answer(parts, node, step, forward)
        case other:
            raise ValueError(f"node '{node.name}': {other.op} of a stream cannot run in a stage with state")


def _stream_table_join(parts: Parts, node: Node, operation: StreamTableJoin, forward: RecordConsumer) -> RecordConsumer:
    stream, table = (parts.nodes[name] for name in node.inputs)
    values = evaluate.items(node.owner, operation.items, [stream.schema, table.schema])
    join = stream_table_join.StreamTableJoin(
        node.owner, operation.left, operation.as_of, getter(parts, table.name), parts.behind(table.name),
        values, parts.context, forward,
    )  # fmt: skip
    if operation.grace is None:
        return join.process
    buffer = RecordBuffer(parts.kv, store_prefix(parts.stage, node.name))
    waiting = grace.GraceBuffer(node.owner, operation.grace, stream.schema, buffer, join, parts.context)
    parts.waiting[node.name] = waiting
    return waiting.process


def _stream_global_join(
    parts: Parts, node: Node, operation: StreamGlobalJoin, forward: RecordConsumer
) -> RecordConsumer:
    stream, table = (parts.nodes[name].schema for name in node.inputs)
    return stream_global_join.StreamGlobalJoin(
        node.owner, operation.left, evaluate.items(node.owner, operation.on, [stream]),
        KeyCodec([c.type for c in table.key]), getter(parts, node.inputs[1]),
        evaluate.items(node.owner, operation.items, [stream, table]), parts.context, forward,
    ).process  # fmt: skip


def _subscribe(parts: Parts, node: Node, operation: Subscribe, forward: RecordConsumer) -> Built:
    table = parts.schema(node)
    return subscribe.Subscribe(
        node.owner, evaluate.items(node.owner, operation.foreign_key, [table]),
        KeyCodec([c.type for c in node.schema.key]), operation.left, operation.versioned,
        subscriptions_travelling(parts.plan, node), parts.context, forward,
    ).process  # fmt: skip


def _answer(parts: Parts, node: Node, operation: Answer, forward: RecordConsumer) -> Built:
    right = parts.nodes[node.inputs[1]]
    step = answer.Answer(
        node.owner, operation.left, operation.versioned, operation.left_schema,
        evaluate.items(node.owner, operation.items, [operation.left_schema, right.schema]),
        getter(parts, right.name), RecordSubscriptions(parts.kv, store_prefix(parts.stage, node.name)),
        parts.context, forward,
    )  # fmt: skip
    parts.finishers.append(step.finish)
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
