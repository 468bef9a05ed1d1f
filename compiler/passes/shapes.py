"""What the passes find out about the columns of a node."""

from __future__ import annotations

from collections.abc import Mapping

from vsc.compiler.diagnostics.model import Finding
from vsc.plan import AggregateCall, Column, Item, Operation, Schema
from vsc.plan.record import record

__all__ = ["Shape", "ShapeResult", "Shapes"]


@record
class Shape:
    """What a node's records look like and how they come about.

    `operation` is what the plan does, where a statement is one node. `items` are the value columns of a `join` or
    `aggregate`; `condition` is the `delete when` of a source, `columns` are those that it declares. `rekeyed` is there
    for a stream that gets a new key in front: that stream's schema then, which is what the operation sees as input 0,
    and the expressions of its key. `on` is the key of a foreign table or a global one, `group` that of an aggregate,
    both as the expressions that compute it; `calls` are the aggregate's, whose results `items` see as columns.
    """

    schema: Schema
    operation: Operation | None = None
    items: tuple[Item, ...] = ()
    condition: Item | None = None
    timestamp: Item | None = None
    columns: tuple[Column, ...] = ()
    rekeyed: tuple[Schema, tuple[Item, ...]] | None = None
    on: tuple[Item, ...] = ()
    group: tuple[Item, ...] = ()
    calls: tuple[AggregateCall, ...] = ()


Shapes = Mapping[str, Shape]
ShapeResult = tuple[Shape | None, list[Finding]]
