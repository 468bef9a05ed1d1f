"""Builds look-ups into tables: by their own store, or through what they are computed from to the stores behind it."""

from __future__ import annotations

from tests.oracle.records import getters, table_table_join
from tests.oracle.records.building import Parts
from tests.oracle.records.expressions import Row, condition, items
from tests.oracle.records.tables import Found
from vsc.plan.nodes import Filter, Map, Node, Suppress, TableTableJoin
from vsc.runtime.metrics import Missed

__all__ = ["asked", "getter", "pair"]


def asked(parts: Parts, reader: Node, name: str) -> getters.Getter:
    """The look-up of node `reader` into table `name`."""
    get = getter(parts, name)

    def ask(key: Row, as_of: int | None) -> Found | Missed:
        parts.context.asker = reader.name
        return get(key, as_of)

    return ask


def getter(parts: Parts, name: str) -> getters.Getter:
    """The look-up into table `name`; ValueError if neither it nor what it comes from has a store in the stage."""
    store = parts.tables.get(name)
    if store is not None:
        return store.lookup
    node = parts.nodes[name]
    match node.operation:
        case Filter(predicate):
            holds = condition(name, predicate, [parts.schema(node)])
            return getters.filtered(getter(parts, node.inputs[0]), holds)
        case Map(computed):
            values = items(name, computed, [parts.schema(node)])
            return getters.mapped(getter(parts, node.inputs[0]), values)
        case TableTableJoin() as join:
            left, right = (getter(parts, read) for read in node.inputs)
            return table_table_join.join_getter(left, right, pair(parts, node, join))
        case Suppress():
            return getters.suppressed_getter(parts.suppressed[name], getter(parts, node.inputs[0]))
        case _:
            raise ValueError(f"table '{name}' has no store to look into")


def pair(parts: Parts, node: Node, join: TableTableJoin) -> table_table_join.Pair:
    """The result of `join` for a row of each side."""
    schemas = [parts.nodes[name].schema for name in node.inputs]
    return table_table_join.joined(join.mode, items(node.name, join.items, schemas))
