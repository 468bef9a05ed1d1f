"""A foreign-key join: the left table's subscriptions, the answers from the right table's partition, and the result."""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.lower.travel import added_name, columns_read, travelling
from vsc.compiler.passes.check import CheckedTopology
from vsc.plan import PIECE, SPAN, Answer, Column, Node, Schema, Subscribe
from vsc.plan.types import INT

__all__ = ["foreign_key_join"]


def foreign_key_join(checked: CheckedTopology, name: str, join: syntax.Join) -> tuple[Node, Node]:
    """The nodes ``NAME#subscribe`` and ``NAME#answer``; the join itself is a `ToTable` that reads the second."""
    shape = checked.shapes[name]
    left, right = join.left.name.text, join.right.name.text
    left_schema = checked.shapes[left].schema
    read = columns_read(item.expr for item in shape.items)
    moving = Schema(left_schema.key, travelling(checked, left_schema.value, read))
    line = checked.source.line_of(checked.topology.nodes[name].span)
    key = tuple(Column(f"on#{index}", column.type) for index, column in enumerate(checked.shapes[right].schema.key))
    value = (*moving.key, *moving.value, Column("#instruction", INT))
    keeps, complete = join.mode == "left", checked.stores.complete(name)
    if complete:
        value = (*value[:-1], *SPAN, value[-1])
    subscribe = Node(
        added_name(checked, name, "subscribe"), "stream", Schema(key, value),
        Subscribe(shape.on, keeps, checked.statuses[left].versioned and not complete, complete), (left,), line,
        part_of=name,
    )  # fmt: skip
    answer = Node(
        added_name(checked, name, "answer"), "stream",
        Schema(shape.schema.key, (*shape.schema.value, *PIECE)) if complete else shape.schema,
        Answer(keeps, checked.statuses[right].versioned and not complete, moving, shape.items, complete),
        (subscribe.name, right), line, part_of=name,
    )  # fmt: skip
    return subscribe, answer
