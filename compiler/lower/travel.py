"""What all nodes added by the lowering need: their names, and the columns that travel through them."""

from __future__ import annotations

from collections.abc import Iterable

from vsc.compiler.passes.check import CheckedTopology
from vsc.plan import Column, Item, Node, Rekey, Schema
from vsc.plan.expressions import Column as ColumnExpr
from vsc.plan.expressions import Expr, parts

__all__ = ["added_name", "columns_read", "rekeyed", "travelling"]


def added_name(checked: CheckedTopology, node: str, suffix: str) -> str:
    """The name of a node added before `node`: ``NODE#suffix``, unless a node of the user's has that name."""
    name = f"{node}#{suffix}"
    while name in checked.topology.nodes:
        name += "#"
    return name


def columns_read(exprs: Iterable[Expr]) -> frozenset[str]:
    """The columns of input 0 that any of `exprs` reads."""
    found = (part for expr in exprs for part in parts(expr))
    return frozenset(part.name for part in found if isinstance(part, ColumnExpr) and part.input == 0)


def travelling(checked: CheckedTopology, columns: tuple[Column, ...], used: frozenset[str]) -> tuple[Column, ...]:
    """The `columns` that are `used`; all of them if a sink writes whole lost records."""
    if any(checked.topology.lost(sink) for sink in checked.topology.sinks):
        return columns
    return tuple(column for column in columns if column.name in used)


def rekeyed(
    checked: CheckedTopology,
    node: str,
    key: tuple[Schema, tuple[Item, ...]],
    read: str,
    used: frozenset[str] | None = None,
) -> Node:
    """The stream `read` under its new key, with the columns that `node` reads (None: all); the others do not travel."""
    schema, items = key
    line = checked.source.line_of(checked.topology.nodes[node].span)
    value = schema.value if used is None else travelling(checked, schema.value, used)
    name = added_name(checked, node, "rekey")
    return Node(name, "stream", Schema(schema.key, value), Rekey(items), (read,), line, part_of=node)
