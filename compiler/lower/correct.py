"""A join whose results are corrected: its changes, keyed as its results, which the join itself reads as a table."""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.lower.travel import added_name, travelling
from vsc.compiler.passes.check import CheckedTopology
from vsc.compiler.passes.shapes import Shape
from vsc.plan import ROW_CHANGE, Correct, Grace, Item, Node, RowChanges, Schema

__all__ = ["correct", "forgotten", "grace_of", "max_age", "row_changes"]


def correct(
    checked: CheckedTopology, name: str, join: syntax.Join, shape: Shape, left: Schema, inputs: tuple[str, ...]
) -> tuple[Node, ...]:
    """The node ``NAME#correct``, behind ``NAME#grace`` if records wait; the join itself is a `ToTable` that reads it.

    `left` is the schema of the first of the `inputs`.
    """
    assert join.correct is not None
    line = checked.source.line_of(checked.topology.nodes[name].span)
    grace, waiting = grace_of(join), tuple[Node, ...]()
    if grace is not None:
        added = added_name(checked, name, "grace")
        waiting = (Node(added, "stream", left, Grace(join.mode == "left", grace), inputs[:1], line, part_of=name),)
        inputs = (added, inputs[1])
    operation = Correct(
        join.mode == "left", join.correct.within.milliseconds, shape.by, shape.items, max_age(join),
        join.strictly_before is not None, join.drop_older is not None, checked.kinds[join.left.name.text] == "table",
    )  # fmt: skip
    added = added_name(checked, name, "correct")
    return (*waiting, Node(added, "stream", shape.schema, operation, inputs, line, part_of=name))


def row_changes(
    checked: CheckedTopology, name: str, key: tuple[Schema, tuple[Item, ...]], read: str, used: frozenset[str]
) -> Node:
    """The node ``NAME#changes``: the changes of the table `read`, under the key by which rows are looked up."""
    schema, items = key
    declaration = checked.topology.nodes[name]
    assert isinstance(declaration, syntax.DerivedDecl) and isinstance(declaration.operation, syntax.Join)
    left, versioned = declaration.operation.mode == "left", checked.statuses[read].versioned
    value = (*ROW_CHANGE, *travelling(checked, schema.value, used))
    line, added = checked.source.line_of(declaration.span), added_name(checked, name, "changes")
    operation = RowChanges(left, items, versioned)
    return Node(added, "stream", Schema(schema.key, value), operation, (read,), line, part_of=name)


def forgotten(checked: CheckedTopology, name: str) -> int | None:
    """How far behind the clock, in ms, nobody needs the rows of the corrected join `name` any more; None: never.

    The next join of a chain needs them for as long as it corrects; whatever else needs the row before a change may get
    another row of its key, however late.
    """
    sunk = {sink.name.text for sink in checked.topology.sinks}
    longest, waiting = 0, [name]
    while waiting:
        for reader in checked.topology.consumers(waiting.pop()):
            declaration = checked.topology.nodes[reader]
            assert isinstance(declaration, syntax.DerivedDecl)
            match declaration.operation:
                case syntax.Filter(materialize=None) | syntax.Map(materialize=None) if reader not in sunk:
                    waiting.append(reader)
                case syntax.Join(correct=syntax.Correct(within=within)):
                    longest = max(longest, within.milliseconds + 1)
                case _:
                    return None
    return longest or None


def grace_of(join: syntax.Join) -> int | None:
    """How long the records of a stream wait, in ms."""
    if join.grace is None:
        return None
    assert isinstance(join.grace.duration, syntax.Duration)
    return join.grace.duration.milliseconds


def max_age(join: syntax.Join) -> int | None:
    """How old a row may be that the join finds, in ms."""
    return None if join.max_age is None else join.max_age.duration.milliseconds
