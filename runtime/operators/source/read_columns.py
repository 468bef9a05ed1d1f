"""Which columns of a source anything reads: the others need not be read from files.

A pure function over the plan. A table keeps all its columns, since a look into its store shows them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from vsc.plan.expressions import Expr
from vsc.plan.nodes import (
    Aggregate,
    Explode,
    Filter,
    Item,
    Map,
    Merge,
    Node,
    Plan,
    Rekey,
    Source,
    StreamGlobalJoin,
    StreamTableJoin,
)
from vsc.runtime.expressions import columns_of

__all__ = ["read_columns"]


def read_columns(plan: Plan, source: str) -> frozenset[str]:
    """The declared columns of source node `source` that its clauses, a node behind it or a sink reads."""
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
            own = _own(consumer)
            found |= columns if own is None else own
            if isinstance(consumer.operation, Filter | Rekey | Explode | Merge):  # they hand columns on as they are
                found |= read(consumer.name)
        return columns & found

    operation = plan.node(source).operation
    assert isinstance(operation, Source)
    clauses = [item for item in (operation.timestamp, operation.delete_when) if item is not None]
    return read(source) | _columns(item.expr for item in clauses)


def _own(node: Node) -> frozenset[str] | None:
    """The columns of its stream that the node's own expressions read; None: all of them."""
    match node.operation:
        case Filter(item) | Explode(item):
            return _items((item,))
        case Map(items) | Rekey(items) | StreamTableJoin(items=items):
            return _items(items)
        case StreamGlobalJoin(on=on, items=items):
            return _items((*on, *items))
        case Aggregate(over="stream", calls=calls):
            return _columns(arg for call in calls for arg in call.args)
        case Merge():
            return frozenset()
        case _:
            return None


def _items(items: Iterable[Item]) -> frozenset[str]:
    return _columns(item.expr for item in items)


def _columns(exprs: Iterable[Expr]) -> frozenset[str]:
    return frozenset(column.name for expr in exprs for column in columns_of(expr) if column.input == 0)
