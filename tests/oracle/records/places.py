"""The places of a node's columns among those of its input."""

from __future__ import annotations

from vsc.plan.nodes import Schema

__all__ = ["kept_columns", "places_of", "value_order"]


def value_order(before: Schema, after: Schema) -> tuple[int, ...]:
    """The places of a merged stream's value columns among those of one of its inputs, matched by name."""
    names = [c.name for c in before.value]
    return tuple(names.index(c.name) for c in after.value)


def kept_columns(before: Schema, after: Schema) -> tuple[int, ...]:
    """The places of a re-keyed stream's value columns among the columns of its input, key columns first."""
    names = [c.name for c in before.key + before.value]
    return tuple(names.index(c.name) for c in after.value)


def places_of(before: list[str], new: list[str]) -> list[int]:
    """The places of new columns among all: those of the columns of their names, or after all."""
    names = [*before, *(name for name in new if name not in before)]
    return [names.index(name) for name in new]
