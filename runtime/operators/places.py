"""Where the columns of a node's records stand among those of its input."""

from __future__ import annotations

from vsc.plan.nodes import Schema

__all__ = ["element_place", "kept_columns", "value_order"]


def value_order(before: Schema, after: Schema) -> tuple[int, ...]:
    """Where the value columns of a merged stream stand among those of one of its inputs: they go by name."""
    names = [c.name for c in before.value]
    return tuple(names.index(c.name) for c in after.value)


def kept_columns(before: Schema, after: Schema) -> tuple[int, ...]:
    """Where the value columns of a re-keyed stream stand among the columns of its input, key columns first."""
    names = [c.name for c in before.key + before.value]
    return tuple(names.index(c.name) for c in after.value)


def element_place(before: Schema, element: str) -> int:
    """Where an exploded element stands among the value columns: in place of the column of that name, or behind all."""
    names = [c.name for c in before.value]
    return names.index(element) if element in names else len(names)
