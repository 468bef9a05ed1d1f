"""Builds the operators of stream nodes."""

from __future__ import annotations

from vsc.plan.nodes import Filter, Map, Node, Rekey, StreamTableJoin
from vsc.runtime.operators import evaluate, filter, grace, map, rekey, stream_table_join
from vsc.runtime.operators.building import Built, Parts
from vsc.runtime.operators.graph_getters import getter
from vsc.runtime.operators.put import RecordConsumer
from vsc.runtime.operators.stores import open_buffer

__all__ = ["stream_operator"]


def stream_operator(parts: Parts, node: Node, forward: RecordConsumer) -> Built:
    """The operator of a stream node; ValueError for one that cannot run in a stage with state."""
    match node.operation:
        case Filter(predicate):
            before = parts.schema(node)
            holds = evaluate.condition(node.name, predicate, [before])
            return filter.StreamFilter(holds, len(before.value), parts.context, forward).process
        case Map(items):
            values = evaluate.items(node.name, items, [parts.schema(node)])
            return map.StreamMap(values, parts.context, forward).process
        case Rekey(items):
            before = parts.schema(node)
            key = evaluate.items(node.name, items, [before])
            kept = rekey.kept_columns(before, node.schema)
            return rekey.Rekey(node.name, key, kept, parts.context, forward).process
        case StreamTableJoin() as join:
            return _stream_table_join(parts, node, join, forward)
        case other:
            raise ValueError(f"node '{node.name}': {other.op} of a stream cannot run in a stage with state")


def _stream_table_join(parts: Parts, node: Node, operation: StreamTableJoin, forward: RecordConsumer) -> RecordConsumer:
    stream, table = (parts.nodes[name] for name in node.inputs)
    values = evaluate.items(node.name, operation.items, [stream.schema, table.schema])
    join = stream_table_join.StreamTableJoin(
        node.name, operation.left, operation.as_of, getter(parts, table.name), parts.behind(table.name),
        values, parts.context, forward,
    )  # fmt: skip
    if operation.grace is None:
        return join.process
    buffer = open_buffer(parts.kv, parts.stage, node.name)
    waiting = grace.GraceBuffer(node.name, operation.grace, stream.schema, buffer, join, parts.context)
    parts.waiting[node.name] = waiting
    return waiting.process
