"""Expressions of a node as plain functions over rows, with failures that know their node and their text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vsc.plan.nodes import Item, Schema
from vsc.runtime.expressions import ExpressionFailure, compile_row
from vsc.runtime.operators.context import NodeFailure

__all__ = ["Row", "Values", "items"]

Row = tuple[Any, ...]
"""Key columns, then value columns, as internal values."""

Values = Callable[[Row | None, Row | None, int | None, int | None], Row]


def items(node: str, computed: Sequence[Item], schemas: Sequence[Schema]) -> Values:
    """A function that computes all of `computed` as a tuple. It raises NodeFailure if one fails."""
    functions = [compile_row(item.expr, schemas) for item in computed]
    if len(functions) == 1:
        return _single(node, computed[0], functions[0])

    def values(row0: Row | None, row1: Row | None, time0: int | None, time1: int | None) -> Row:
        found: list[Any] = []
        try:
            for function in functions:
                found.append(function(row0, row1, time0, time1))
        except ExpressionFailure as failure:
            raise NodeFailure(node, computed[len(found)].text, failure.reason) from failure
        return tuple(found)

    return values


def _single(node: str, item: Item, function: Callable[..., Any]) -> Values:
    def values(row0: Row | None, row1: Row | None, time0: int | None, time1: int | None) -> Row:
        try:
            return (function(row0, row1, time0, time1),)
        except ExpressionFailure as failure:
            raise NodeFailure(node, item.text, failure.reason) from failure

    return values
