"""The expressions of a node as plain functions over rows, with failures that know their node and their text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vsc.plan.nodes import Item, Schema
from vsc.runtime.expressions import ExpressionFailure, compile_row

__all__ = ["Condition", "NodeFailure", "Row", "Values", "condition", "items"]

Row = tuple[Any, ...]
"""Key columns, then value columns, as internal values."""

Values = Callable[["Row | None", "Row | None", "int | None", "int | None"], Row]
"""Takes the rows of both inputs and their event times."""

Condition = Callable[["Row | None", "Row | None", "int | None", "int | None"], bool]


class NodeFailure(Exception):
    """An expression of a node failed on the record being processed; caught by the operator that asked for the value."""

    def __init__(self, node: str, text: str, reason: str) -> None:
        super().__init__(node, text, reason)
        self.node, self.text, self.reason = node, text, reason


def items(node: str, computed: Sequence[Item], schemas: Sequence[Schema]) -> Values:
    """A function that computes all of `computed` as a tuple. It raises NodeFailure at the first that fails."""
    functions = [(item.text, compile_row(item.expr, schemas)) for item in computed]

    def values(row0: Row | None, row1: Row | None, time0: int | None, time1: int | None) -> Row:
        found = []
        for text, function in functions:
            try:
                found.append(function(row0, row1, time0, time1))
            except ExpressionFailure as failure:
                raise NodeFailure(node, text, failure.reason) from failure
        return tuple(found)

    return values


def condition(node: str, item: Item, schemas: Sequence[Schema]) -> Condition:
    """A function that tells whether `item` is true (null is not); raises NodeFailure where it fails."""
    values = items(node, [item], schemas)
    return lambda row0, row1, time0, time1: values(row0, row1, time0, time1)[0] is True
