"""Conditions of a node as plain functions over rows, with failures that know their node and their text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vsc.plan.nodes import Item, Schema
from vsc.runtime.operators.evaluate import Row, items

__all__ = ["condition"]

Condition = Callable[[Row | None, Row | None, int | None, int | None], bool]


def condition(node: str, item: Item, schemas: Sequence[Schema]) -> Condition:
    """A function that tells whether `item` is true (null is not); raises NodeFailure where it fails."""
    values = items(node, [item], schemas)
    return lambda row0, row1, time0, time1: values(row0, row1, time0, time1)[0] is True
