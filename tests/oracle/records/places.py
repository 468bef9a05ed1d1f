"""The places of a node's columns among those of its input."""

from __future__ import annotations

from vsc.plan.nodes import Schema

__all__ = ["element_place", "kept_columns", "value_order"]


def value_order(before: Schema, after: Schema) -> tuple[int, ...]:
    """The places of a merged stream's value columns among those of one of its inputs, matched by name."""
    names = [c.name for c in before.value]
    return tuple(names.index(c.name) for c in after.value)


def kept_columns(before: Schema, after: Schema) -> tuple[int, ...]:
    """The places of a re-keyed stream's value columns among the columns of its input, key columns first."""
    names = [c.name for c in before.key + before.value]
    return tuple(names.index(c.name) for c in after.value)


def element_place(before: Schema, element: str) -> int:
    """The place of an exploded element among the value columns: that of the column of its name, or after all."""
    names = [c.name for c in before.value]
    return names.index(element) if element in names else len(names)
