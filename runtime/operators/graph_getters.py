"""Builds look-ups into tables: by their own store, or through what they are computed from to the stores behind it."""

from __future__ import annotations

from vsc.plan.nodes import Filter, Map
from vsc.runtime.operators import evaluate, getters
from vsc.runtime.operators.building import Parts

__all__ = ["getter"]


def getter(parts: Parts, name: str) -> getters.Getter:
    """The look-up into table `name`; ValueError if neither it nor what it comes from has a store in the stage."""
    store = parts.tables.get(name)
    if store is not None:
        lookup = store.lookup
        return lambda kb, key, as_of: lookup(kb, as_of)
    node = parts.nodes[name]
    match node.operation:
        case Filter(predicate):
            holds = evaluate.condition(name, predicate, [parts.schema(node)])
            return getters.filtered(getter(parts, node.inputs[0]), holds)
        case Map(computed):
            values = evaluate.items(name, computed, [parts.schema(node)])
            return getters.mapped(getter(parts, node.inputs[0]), values)
        case _:
            raise ValueError(f"table '{name}' has no store to look into")
