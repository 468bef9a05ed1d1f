"""What the passes find out about the columns of a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.expressions.scope import Functions
from vsc.compiler.passes.kinds import Kinds
from vsc.compiler.passes.windows import Windows
from vsc.compiler.source import SourceFile
from vsc.plan import AggregateCall, Column, Item, Operation, Schema
from vsc.plan.record import record

WINDOW_BOUNDS = ("window_start", "window_end")
"""The last key columns of a windowed table, both of type ``timestamp``."""

__all__ = ["WINDOW_BOUNDS", "Known", "Shape", "ShapeResult", "Shapes"]


@record
class Shape:
    """What a node's records look like and how they are computed.

    `operation` is the operation of the plan, if the statement is one node of it. `items` are the value columns of a
    `join` or `aggregate`; `condition` is the `delete when` of a source, `columns` are those that it declares. `rekeyed`
    is set if a stream first gets a new key: its schema under that key, which the operation sees as input 0, and the
    expressions of the key. `on` is the key in a foreign table or a global one, `group` that of an aggregate, both as
    expressions; `calls` are the aggregate's, whose results `items` see as columns. `by` is the key of the results
    that a join corrects.
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
    by: tuple[Item, ...] = ()


Shapes = Mapping[str, Shape]
ShapeResult = tuple[Shape | None, list[Finding]]


@record
class Known:
    """What is known of the nodes in front of a statement, whose shape is found next."""

    source: SourceFile
    kinds: Kinds
    windows: Windows
    shapes: dict[str, Shape]
    doubt: Callable[[Finding], None]
    functions: Functions

    def is_stream(self, read: syntax.Input) -> bool:
        """Whether an input is known to be a stream."""
        return self.kinds.get(read.name.text) == "stream"

    def bounds(self, read: syntax.Input) -> frozenset[str]:
        """The key columns of an input that are the bounds of its window."""
        return frozenset(WINDOW_BOUNDS) if read.name.text in self.windows.tables else frozenset()
