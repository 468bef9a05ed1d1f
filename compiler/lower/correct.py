"""A join whose results are corrected: its changes, keyed as its results, which the join itself reads as a table."""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.lower.travel import added_name
from vsc.compiler.passes.check import CheckedTopology
from vsc.compiler.passes.shapes import Shape
from vsc.plan import Correct, Node

__all__ = ["correct", "max_age"]


def correct(checked: CheckedTopology, name: str, join: syntax.Join, shape: Shape, inputs: tuple[str, ...]) -> Node:
    """The node ``NAME#correct``; the join itself is a `ToTable` that reads it."""
    assert join.correct is not None
    operation = Correct(
        join.mode == "left", join.correct.within.milliseconds, shape.by, shape.items, max_age(join),
        join.strictly_before is not None, join.drop_older is not None,
    )  # fmt: skip
    line = checked.source.line_of(checked.topology.nodes[name].span)
    added = added_name(checked, name, "correct")
    return Node(added, "stream", shape.schema, operation, inputs, line, part_of=name)


def max_age(join: syntax.Join) -> int | None:
    """How old a row may be that the join finds, in ms."""
    return None if join.max_age is None else join.max_age.duration.milliseconds
