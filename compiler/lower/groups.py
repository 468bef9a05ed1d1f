"""An aggregate: a stream's rows under the key of their group, or a table's changes, and what is computed from them."""

from __future__ import annotations

from dataclasses import replace

from vsc.compiler import syntax
from vsc.compiler.lower.travel import added_name, columns_read, rekeyed, travelling
from vsc.compiler.passes.check import CheckedTopology
from vsc.compiler.passes.keys import is_key, under_key
from vsc.compiler.passes.shapes import Shape
from vsc.plan import (
    VALIDITY,
    Aggregate,
    AggregateCall,
    Call,
    Column,
    GroupChanges,
    Node,
    Schema,
    Store,
    Suppress,
    Window,
)
from vsc.plan.expressions import Literal
from vsc.plan.types import BOOLEAN, INT, TIMESTAMP

__all__ = ["aggregate"]

_TIME = Call("event_time", (Literal(0, INT),), TIMESTAMP)
_NEWEST = AggregateCall("max", (_TIME,), False, TIMESTAMP, "max(event_time())")


def aggregate(
    checked: CheckedTopology, name: str, operation: syntax.Aggregate
) -> tuple[tuple[Node, ...], Aggregate | Suppress, str]:
    """The nodes in front of the aggregate `name`, its operation, and the name of the node that it reads.

    Final windows of a table are those of an aggregate that a `Suppress` holds back until they close.
    """
    read, shape = operation.input.name.text, checked.shapes[name]
    used = columns_read(arg for call in shape.calls for arg in call.args)
    window = checked.windows.tables.get(name)
    final = operation.window is not None and operation.window.emit == "final"
    if checked.kinds[read] == "table":
        changes, row = _changes(checked, name, read, shape, used, window)
        moving = window if window is not None and window.moving else None
        of_table = Aggregate("table", row, shape.calls, shape.items, moving, False)
        if window is None or not final:
            return (changes,), of_table, changes.name
        if moving is None:
            of_table = replace(of_table, calls=(*shape.calls, _NEWEST), timed=True)  # as if no other row had ever come
        added = added_name(checked, name, "windows")
        store, status = Store(added, "unversioned", implied=True), checked.statuses[name]
        windows = Node(
            added, "table", shape.schema, of_table, (changes.name,), changes.line, store, status, part_of=name
        )  # fmt: skip
        return (changes, windows), Suppress("window_closes", window.lingers, None, None, None), added
    schema = checked.shapes[read].schema
    if is_key(shape.group, schema):
        return (), Aggregate("stream", schema, shape.calls, shape.items, window, final), read
    moved = rekeyed(checked, name, under_key(schema, shape.group), read, used)
    return (moved,), Aggregate("stream", moved.schema, shape.calls, shape.items, window, final), moved.name


def _changes(
    checked: CheckedTopology, name: str, read: str, shape: Shape, used: frozenset[str], window: Window | None
) -> tuple[Node, Schema]:
    """The table's changes under the keys of their groups, and the rows that they hold, each with its key."""
    schema = checked.shapes[read].schema
    columns = (*schema.key, *travelling(checked, schema.value, used))
    complete = checked.stores.complete(name)
    value = (
        Column("#old", BOOLEAN),
        Column("#new", BOOLEAN),
        *(Column(f"old#{column.name}", column.type) for column in columns),
        *(Column(f"new#{column.name}", column.type) for column in columns),
        *(VALIDITY if complete else ()),
    )
    steady = window is not None and window.moving
    window = None if steady else window
    key = shape.schema.key[: len(shape.group)] if steady else shape.schema.key  # the group, and the window's bounds
    versioned = checked.statuses[read].versioned and not complete
    operation = GroupChanges(shape.group, tuple(c.name for c in columns), versioned, complete, window, steady)
    line = checked.source.line_of(checked.topology.nodes[name].span)
    added = added_name(checked, name, "changes")
    changes = Node(added, "stream", Schema(key, value), operation, (read,), line, part_of=name)
    return changes, Schema((), columns)
