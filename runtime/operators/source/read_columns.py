"""Which columns of a source anything reads: the others need not be read from files.

A pure function over the plan. A table keeps all its columns, because views of its store show them.
"""

from __future__ import annotations

from functools import cache

from vsc.plan.nodes import Node, Plan, Schema
from vsc.runtime.expressions import columns_of

__all__ = ["read_columns"]


def read_columns(plan: Plan, source: str) -> frozenset[str]:
    """The declared columns of source node `source` that its clauses, a downstream node or a sink reads."""
    sinks = {sink.node for sink in plan.sinks}
    consumers: dict[str, list[Node]] = {}
    for node in plan.nodes:
        for name in dict.fromkeys(node.inputs):
            consumers.setdefault(name, []).append(node)

    @cache
    def read(name: str) -> frozenset[str]:
        node = plan.node(name)
        columns = frozenset(c.name for c in (*node.schema.key, *node.schema.value))
        if node.kind == "table" or name in sinks:
            return columns
        found = {c.name for c in node.schema.key}
        for consumer in consumers.get(name, ()):
            found |= columns if consumer.operation.reads_all else _named(consumer, _seen(plan, consumer), node.schema)
            if consumer.operation.hands_columns_on:
                found |= read(consumer.name)
        return columns & found

    node = plan.node(source)
    if plan.dead_letters:  # dead letters show whole records
        return frozenset(c.name for c in node.source.columns)
    declared = Schema((), node.source.columns)
    return read(source) | _named(node, (declared,), declared)


def _seen(plan: Plan, node: Node) -> tuple[Schema, ...]:
    return tuple(plan.node(name).schema for name in node.inputs)


def _named(node: Node, inputs: tuple[Schema, ...], of: Schema) -> frozenset[str]:
    """The columns that the node's own expressions read of inputs with the schema `of`, first or second."""
    found = node.operation.expressions(inputs, node.schema)
    columns = ((column, seen) for _, expr, seen in found for column in columns_of(expr))
    return frozenset(
        column.name for column, seen in columns if any(_is(one, of) for one in seen[column.input : column.input + 1])
    )


def _is(seen: Schema, of: Schema) -> bool:
    """Whether what an expression sees are records of this schema, perhaps with more that the operation knows of them
    (`with_revision`)."""
    return seen.key == of.key and seen.value[: len(of.value)] == of.value
