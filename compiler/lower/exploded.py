"""An `explode` of a table: the changes of its elements, and the table that they make."""

from __future__ import annotations

from vsc.compiler.lower.travel import added_name
from vsc.compiler.passes.check import CheckedTopology
from vsc.plan import Explode, ExplodeChanges, Node

__all__ = ["exploded"]


def exploded(checked: CheckedTopology, name: str, read: str) -> Node:
    """The node ``NAME#changes``; the `explode` itself is a `ToTable` that reads it."""
    shape = checked.shapes[name]
    assert isinstance(shape.operation, Explode) and shape.operation.position is not None
    operation = ExplodeChanges(shape.operation.item, shape.operation.position, checked.statuses[read].versioned)
    line = checked.source.line_of(checked.topology.nodes[name].span)
    return Node(added_name(checked, name, "changes"), "stream", shape.schema, operation, (read,), line, part_of=name)
