"""Which records of a plan's streams may have no key (D26).

A `rekey`, and a left join of a stream with a table, keep a record whose key has a null. Its key columns stay as they
are, but the record has no key from there on: an operation that needs one drops it (`Facts.needs_key`). A sink that
replaces rows by key needs one, too: the `rekey` in front of it drops such records.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from vsc.plan.expressions import Call, Cast, Column, Expr, Literal
from vsc.plan.nodes import Node, Plan, Sink
from vsc.plan.operations import (
    Correct,
    Distinct,
    Explode,
    Filter,
    Map,
    Merge,
    Rekey,
    Reorder,
    RowChanges,
    StreamGlobalJoin,
    StreamTableJoin,
)

__all__ = ["keeps_keyless", "never_null", "nullable_keys"]


_KEEPING_KEYS = (Filter, Map, Explode, Merge, Distinct, Reorder, StreamGlobalJoin, StreamTableJoin)
"""The operations of streams that let a record have the key that it has."""


def keeps_keyless(plan: Plan, rekey: Node) -> bool:
    """Whether a `Rekey` keeps a record with a null in its new key.

    It does unless it is part of a join that needs a key, or in front of a sink that replaces rows by key.
    """
    if rekey.part_of is not None:
        return not any(node.operation.needs_key for node in plan.nodes if rekey.name in node.driving)
    return rekey.name not in _in_front_of_upserts(plan)


def _in_front_of_upserts(plan: Plan) -> set[str]:
    """The nodes whose records reach a sink that replaces rows by key under the key that they have there."""
    found: set[str] = set()
    waiting = [sink.node for sink in plan.sinks if _upserts(sink)]
    while waiting:
        node = plan.node(waiting.pop())
        if node.kind == "stream" and node.name not in found:
            found.add(node.name)
            if isinstance(node.operation, _KEEPING_KEYS):
                waiting += node.taken
    return found


def _upserts(sink: Sink) -> bool:
    return dict(sink.connector.options).get("mode", "append") != "append"


def nullable_keys(plan: Plan) -> Mapping[str, frozenset[str]]:
    """By node, the key columns that may be null."""
    nodes = {node.name: node for node in plan.nodes}
    found: dict[str, frozenset[str]] = {}
    for node in plan.nodes:
        key = node.schema.key if node.kind == "stream" else ()
        found[node.name] = frozenset(c.name for i, c in enumerate(key) if _may_be_null(plan, node, i, nodes, found))
    return found


def _may_be_null(
    plan: Plan, node: Node, place: int, nodes: Mapping[str, Node], found: Mapping[str, frozenset[str]]
) -> bool:
    operation = node.operation
    if isinstance(operation, Correct):
        return False
    if isinstance(operation, RowChanges):
        own = {column.name for column in nodes[node.inputs[0]].schema.key}
        return operation.left and not never_null(operation.items[place].expr, own)
    if isinstance(operation, Rekey):
        before = nodes[node.inputs[0]]
        there = {column.name for column in before.schema.key} - found[before.name]
        return keeps_keyless(plan, node) and not never_null(operation.items[place].expr, there)
    if isinstance(operation, Distinct) and operation.rekeyed:
        reads = [nodes[nodes[node.inputs[0]].inputs[0]]]  # the stream: its records get back their own key
    else:
        reads = [] if operation.needs_key else [nodes[name] for name in node.taken]
    return any(read.schema.key[place].name in found[read.name] for read in reads)


def never_null(expr: Expr, there: Set[str]) -> bool:
    """Whether an expression surely has a value where the columns `there` have one: a key is not null by it."""
    for part in expr.args if isinstance(expr, Call) and expr.function == "coalesce" else (expr,):
        while isinstance(part, Cast) and not part.safe:
            part = part.arg
        match part:
            case Literal(value) if value is not None:
                return True
            case Column(name=name) if name in there:
                return True
    return False
