"""Accumulators that keep a row for each value, to take values back exactly or to collect them.

The rows are among the group's entries, in the order in which they are needed. A row to take back is found by its
identity, which is stored with its place. Nothing is kept in cells. The rows of a table are only read here; `kept`
writes them, on whole columns.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from vsc.plan.types import DataType
from vsc.runtime.operators.aggregate.functions.entries import At, Entries, packed
from vsc.runtime.operators.aggregate.functions.order import order_bytes
from vsc.runtime.state.rows import RowCodec

__all__ = ["IDENT", "PLACE", "VALUE", "CollectList", "CollectSet", "KeptExtreme", "KeptRow"]

_COUNT = struct.Struct("<q")
_ARRIVAL = struct.Struct(">Q")
PLACE, IDENT, VALUE = b"p", b"i", b"v"
"""What entries begin with: the row at a place, the place of an identity, a row after its value."""


class _Entries:
    """An accumulator without cells."""

    types: tuple[DataType, ...] = ()
    has_entries = True

    def start(self) -> tuple[Any, ...]:
        return ()


class KeptRow(_Entries):
    """``min_by``, ``max_by``, ``first`` and ``last`` of a table: the value of the row at the first or last place."""

    def __init__(self, of: DataType, greatest: bool) -> None:
        self._greatest = greatest
        self._row = RowCodec([of])

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The value; null if the group has no rows."""
        found = entries.first(PLACE, reverse=self._greatest)
        return None if found is None else self._row.decode(found[1])[0]


class KeptExtreme(KeptRow):
    """``min`` and ``max`` of a table: every value with its count, in order."""

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The value; null if the group has no rows."""
        found = entries.first(reverse=self._greatest)
        return None if found is None else self._row.decode(found[1][_COUNT.size :])[0]


class CollectList(_Entries):
    """``collect_list``: the values by (event time, arrival), without nulls."""

    def __init__(self, of: DataType) -> None:
        self._row = RowCodec([of])

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is not None:
            entries.put(PLACE + packed(at.time, at.arrival), self._row.encode(args))

    def merge(self, cells: list[Any], i: int, other: list[Any], entries: Entries, others: Entries) -> None:
        """No two rows share a place, even across groups."""
        for suffix, data in list(others.scan()):
            entries.put(suffix, data)

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The values as a list."""
        return [self._row.decode(data)[0] for _, data in entries.scan(PLACE)]


class CollectSet(_Entries):
    """``collect_set``: each value once, in the order of first appearance, without nulls.

    Entries: one for each value at the arrival of its first row (places), and one after its value (``v`` value arrival).
    A table has the latter for each row: it says which row becomes the first when the first one is taken back.
    """

    def __init__(self, of: DataType) -> None:
        self._order: Callable[[Any], bytes] = order_bytes(of)
        self._row = RowCodec([of])

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        """Only the first row of a value is kept."""
        if args[0] is None:
            return
        value, arrival = VALUE + self._order(args[0]), _ARRIVAL.pack(at.arrival)
        if entries.first(value) is None:
            entries.put(PLACE + arrival, self._row.encode(args))
            entries.put(value + arrival, self._row.encode(args))

    def merge(self, cells: list[Any], i: int, other: list[Any], entries: Entries, others: Entries) -> None:
        for arrival, data in list(others.scan(PLACE)):
            value = VALUE + self._order(self._row.decode(data)[0])
            known = entries.first(value)
            if known is not None and known[0] < arrival:
                continue
            if known is not None:
                entries.delete(value + known[0])
                entries.delete(PLACE + known[0])
            entries.put(value + arrival, data)
            entries.put(PLACE + arrival, data)

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The values as a list."""
        return [self._row.decode(data)[0] for _, data in entries.scan(PLACE)]
