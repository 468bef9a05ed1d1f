"""Look-ups of the newest row of a table in one batch: in its own store, or through what it is computed from.

Same meaning as the record-by-record getters (`getters`, `graph_getters`): every record sees the table as it was when it
arrived. Not for reads as of a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Filter, Map, Node, Plan, TableTableJoin
from vsc.runtime.operators.columnar.evaluation import Evaluation, Side
from vsc.runtime.operators.columnar.flow import Flow, blanked, taken
from vsc.runtime.operators.columnar.tables import TableColumns
from vsc.runtime.records import Int64s, Mask

__all__ = ["Link", "Lookup", "Pairs", "TableRows", "lookup"]


@dataclass(frozen=True, slots=True)
class TableRows:
    """A table's row for each record of a flow: its time in ms and its values, null where `present` is False."""

    present: Mask
    time: Int64s
    values: tuple[pa.Array, ...]

    def select(self, mask: Mask) -> TableRows:
        """The rows of the records where `mask` is true."""
        if mask.all():
            return self
        chosen = pa.array(mask)
        return TableRows(self.present[mask], self.time[mask], tuple(c.filter(chosen) for c in self.values))

    @staticmethod
    def none_like(columns: tuple[pa.Array, ...], time: Int64s) -> TableRows:
        """No rows, with columns of the types of `columns`."""
        count = len(time)
        return TableRows(np.zeros(count, dtype=np.bool_), time, taken(columns, np.full(count, -1, dtype=np.int64)))


Lookup = Callable[[Flow], TableRows]
"""The newest row of each record's key, as it was when the record arrived."""


class Link:
    """A filter or a map without a store, between a table that is looked into and the store that is behind it."""

    __slots__ = ("_predicate", "_rows")

    def __init__(self, plan: Plan, node: Node) -> None:
        schema = plan.node(node.inputs[0]).schema
        self._predicate = self._rows = None
        if isinstance(node.operation, Filter):
            self._predicate = Evaluation([node.operation.predicate], [schema])
        else:
            assert isinstance(node.operation, Map)
            self._rows = Evaluation(node.operation.items, [schema])

    def apply(
        self, keys: tuple[pa.Array, ...], values: tuple[pa.Array, ...], time: Int64s, there: Mask
    ) -> tuple[Mask, tuple[pa.Array, ...]]:
        """What the rows that are `there` become, and whether there still is one; others are not looked at."""
        if self._predicate is not None:
            return there & self._predicate.true(keys + values, time, there), values
        assert self._rows is not None
        return there, self._rows.where(keys + values, time, there)


class Pairs:
    """The rows that a primary-key join makes of those of its two sides."""

    __slots__ = ("_items", "_key_width", "_mode")

    def __init__(self, plan: Plan, node: Node, operation: TableTableJoin) -> None:
        schemas = [plan.node(name).schema for name in node.inputs]
        self._mode: Literal["inner", "left", "outer"] = operation.mode
        self._items = Evaluation(operation.items, schemas)
        self._key_width = len(schemas[0].key)

    def rows(self, keys: tuple[pa.Array, ...], left: TableRows, right: TableRows) -> TableRows:
        """The result for each record, at the later one of both rows' times; `keys` are the records' keys."""
        there = self._there(left.present, right.present)
        newest = np.where(
            right.present, np.where(left.present, np.maximum(left.time, right.time), right.time), left.time
        )
        if there.all():
            return TableRows(there, newest, self._values(keys, left, right))
        chosen = pa.array(there)
        values = self._values(tuple(c.filter(chosen) for c in keys), left.select(there), right.select(there))
        return TableRows(there, newest, taken(values, np.where(there, np.cumsum(there) - 1, -1)))

    def _there(self, left: Mask, right: Mask) -> Mask:
        match self._mode:
            case "inner":
                return left & right
            case "left":
                return left
            case "outer":
                return left | right

    def _values(self, keys: tuple[pa.Array, ...], left: TableRows, right: TableRows) -> tuple[pa.Array, ...]:
        return self._items.run(self._side(0, keys, left), self._side(1, keys, right))

    def _side(self, number: int, keys: tuple[pa.Array, ...], rows: TableRows) -> Side:
        width = self._key_width
        wanted = self._items.wanted[number]
        own = dict(zip(wanted, blanked([keys[i] for i in wanted if i < width], rows.present), strict=False))
        columns = [own[i] if i < width else rows.values[i - width] for i in wanted]
        return Side(columns, rows.time, None if rows.present.all() else ~rows.present)


def lookup(plan: Plan, tables: Mapping[str, TableColumns], name: str) -> Lookup:
    """The look-up into table `name` over the stores of the stage; ValueError if there is none behind it."""
    table = tables.get(name)
    if table is not None:
        return _stored(table)
    node = plan.node(name)
    match node.operation:
        case Filter() | Map():
            return _linked(Link(plan, node), lookup(plan, tables, node.inputs[0]))
        case TableTableJoin() as join:
            left, right = (lookup(plan, tables, read) for read in node.inputs)
            return _joined(Pairs(plan, node, join), left, right)
        case _:
            raise ValueError(f"table '{name}' has no store to look into")


def _stored(table: TableColumns) -> Lookup:
    def find(flow: Flow) -> TableRows:
        found = table.look_up(flow, as_of=False)
        return TableRows(found.position >= 0, found.valid_from, found.pool.take(found.position))

    return find


def _linked(link: Link, behind: Lookup) -> Lookup:
    def find(flow: Flow) -> TableRows:
        rows = behind(flow)
        there, values = link.apply(flow.keys, rows.values, rows.time, rows.present)
        return TableRows(there, rows.time, blanked(values, there))

    return find


def _joined(pairs: Pairs, left: Lookup, right: Lookup) -> Lookup:
    return lambda flow: pairs.rows(flow.keys, left(flow), right(flow))
