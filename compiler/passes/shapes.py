"""What the passes find out about the columns of a node."""

from __future__ import annotations

from collections.abc import Mapping

from vsc.compiler.diagnostics.model import Finding
from vsc.plan import AggregateCall, Column, Item, Schema
from vsc.plan.record import record

__all__ = ["Shape", "ShapeResult", "Shapes"]


@record
class Shape:
    """What a node's records look like and how they come about.

    `items` are the value columns of a `map`, `join` or `aggregate`, the key columns of a `rekey`, or the one column of
    an `explode`; `condition` is the `where` or `delete when`. `columns` are a source's, as declared. `rekeyed` is there
    for a stream that gets a new key in front of its join: that stream's schema then, which is what `items` see as input
    0, and the expressions of its key. `on` is the key of a foreign table or a global one, `group` that of an aggregate,
    both as the expressions that compute it; `calls` are the aggregate's, whose results `items` see as columns.
    """

    schema: Schema
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
