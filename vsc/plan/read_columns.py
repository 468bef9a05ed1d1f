"""Which columns of a source anything reads: the others need not be read from files.

A pure function over the plan. A table keeps all its columns, because views of its store show them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vsc.plan.expressions import Column, parts
from vsc.plan.nodes import Node, Plan, Schema
from vsc.plan.operations import Source

__all__ = ["columns_named", "columns_read", "read_columns", "unread_columns"]


def read_columns(plan: Plan, source: str) -> frozenset[str]:
    """The declared columns of source node `source` that its clauses, a downstream node or a sink reads."""
    node = plan.node(source)
    if plan.dead_letters:  # dead letters show whole records
        return frozenset(c.name for c in node.source.columns)
    declared = Schema((), node.source.columns)
    return columns_read(plan)[source] | columns_named(node, (declared,), declared)


def columns_read(plan: Plan) -> Mapping[str, frozenset[str]]:
    """By node, those of its columns that a sink or a node behind it reads; all of a table's."""
    sinks = {sink.node for sink in plan.sinks}
    consumers: dict[str, list[Node]] = {}
    for node in plan.nodes:
        for name in dict.fromkeys(node.inputs):
            consumers.setdefault(name, []).append(node)
    found: dict[str, frozenset[str]] = {}
    for node in reversed(plan.nodes):  # inputs come before their readers
        columns = frozenset(c.name for c in (*node.schema.key, *node.schema.value))
        if node.kind == "table" or node.name in sinks:
            found[node.name] = columns
            continue
        read = {c.name for c in node.schema.key}
        for consumer in consumers.get(node.name, ()):
            all_of_it = consumer.operation.reads_all
            read |= columns if all_of_it else columns_named(consumer, _seen(plan, consumer), node.schema)
            if consumer.operation.hands_columns_on:
                read |= found[consumer.name]
        found[node.name] = columns & read
    return found


def unread_columns(plan: Plan) -> Mapping[str, frozenset[str]]:
    """By stream node, its columns that come straight from a column of a source that is not read: they may be null."""
    found: dict[str, frozenset[str]] = {}
    for node in plan.nodes:
        if node.kind == "table":
            found[node.name] = frozenset[str]()
        elif isinstance(node.operation, Source):
            found[node.name] = frozenset(c.name for c in node.operation.columns) - read_columns(plan, node.name)
        elif node.operation.hands_columns_on:
            above = frozenset().union(*(found[name] for name in node.inputs))
            found[node.name] = above.intersection(c.name for c in node.schema.value)
        else:
            found[node.name] = frozenset()
    return found


def _seen(plan: Plan, node: Node) -> tuple[Schema, ...]:
    return tuple(plan.node(name).schema for name in node.inputs)


def columns_named(node: Node, inputs: Sequence[Schema], of: Schema) -> frozenset[str]:
    """The columns that the node's own expressions read of inputs with the schema `of`, first or second."""
    found = node.operation.expressions(tuple(inputs), node.schema)
    columns = ((one, seen) for _, expr, seen in found for one in parts(expr) if isinstance(one, Column))
    return frozenset(
        column.name for column, seen in columns if any(_is(one, of) for one in seen[column.input : column.input + 1])
    )


def _is(seen: Schema, of: Schema) -> bool:
    """Whether what an expression sees are records of this schema, perhaps with more that the operation knows of them
    (`with_revision`)."""
    return seen.key == of.key and seen.value[: len(of.value)] == of.value
