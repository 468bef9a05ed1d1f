"""Accumulators that keep a row for each value: all that is taken back exactly, and what collects values.

The rows lie in the group's entries, in the order in which they are wanted; a row that is to be taken back is found by
its identity, which tells at which place it was put. Nothing is kept in cells.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from vsc.plan.types import DataType
from vsc.runtime.operators.aggregate.entries import At, Entries, packed
from vsc.runtime.operators.aggregate.order import order_bytes
from vsc.runtime.state.rows import RowCodec

__all__ = ["IDENT", "PLACE", "VALUE", "CollectList", "CollectSet", "KeptExtreme", "KeptExtremeBy", "KeptFirstLast"]

_COUNT = struct.Struct("<q")
_ARRIVAL = struct.Struct(">Q")
_MAX = 2**64 - 1
PLACE, IDENT, VALUE = b"p", b"i", b"v"
"""What entries begin with: the row at a place, the place of an identity, a row behind its value."""


class _Entries:
    """An accumulator without cells."""

    types: tuple[DataType, ...] = ()
    has_entries = True

    def start(self) -> tuple[Any, ...]:
        return ()


class KeptExtreme(_Entries):
    """``min`` and ``max`` of a table: every value with how often it is there, in order."""

    def __init__(self, of: DataType, greatest: bool) -> None:
        self._greatest = greatest
        self._order: Callable[[Any], bytes] = order_bytes(of)
        self._row = RowCodec([of])

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is not None:
            self._count(args[0], 1, entries)

    def remove(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is not None:
            self._count(args[0], -1, entries)

    def merge(self, cells: list[Any], i: int, other: list[Any], entries: Entries, others: Entries) -> None:
        """Never called: a table has no windows."""
        raise AssertionError("groups of a table are not merged")

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The least or greatest value; null if there is none."""
        found = entries.first(reverse=self._greatest)
        return None if found is None else self._row.decode(found[1][_COUNT.size :])[0]

    def _count(self, value: Any, change: int, entries: Entries) -> None:
        # What is equal in order need not be the same (-0.0 and 0.0): the value's own bytes come behind.
        data = self._row.encode((value,))
        suffix = self._order(value) + data
        found = entries.get(suffix)
        count = change + (0 if found is None else _COUNT.unpack_from(found)[0])
        if count > 0:
            entries.put(suffix, _COUNT.pack(count) + data)
        elif found is not None:
            entries.delete(suffix)


class _Placed(_Entries):
    """Rows at places: `_place` says where a row belongs, and what is kept of it."""

    def _keep(self, place: bytes, data: bytes, at: At, entries: Entries) -> None:
        entries.put(PLACE + place, data)
        if at.ident:
            entries.put(IDENT + at.ident + place)

    def _take(self, at: At, entries: Entries) -> tuple[bytes, bytes] | None:
        """Removes the row with the identity: its place, and what was kept of it."""
        found = entries.first(IDENT + at.ident)
        if found is None:
            return None
        place = found[0]
        data = entries.get(PLACE + place)
        entries.delete(IDENT + at.ident + place)
        entries.delete(PLACE + place)
        assert data is not None
        return place, data

    def merge(self, cells: list[Any], i: int, other: list[Any], entries: Entries, others: Entries) -> None:
        """Takes in the rows of another group: a place is one row's alone, whatever group it is in."""
        for suffix, data in list(others.scan()):
            entries.put(suffix, data)


class KeptExtremeBy(_Placed):
    """``min_by`` and ``max_by`` of a table: the rows by what they are ordered by; of equal ones the latest counts."""

    def __init__(self, of: DataType, by: DataType, greatest: bool) -> None:
        self._greatest = greatest
        self._order: Callable[[Any], bytes] = order_bytes(by)
        self._row = RowCodec([of])

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        value, by = args
        if by is not None:
            arrival = at.arrival if self._greatest else _MAX - at.arrival
            self._keep(self._order(by) + _ARRIVAL.pack(arrival), self._row.encode((value,)), at, entries)

    def remove(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[1] is not None:
            self._take(at, entries)

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The value of the row that is first or last in order; null if there is none."""
        found = entries.first(PLACE, reverse=self._greatest)
        return None if found is None else self._row.decode(found[1])[0]


class KeptFirstLast(_Placed):
    """``first`` and ``last`` of a table, by (event time, arrival), nulls too."""

    def __init__(self, of: DataType, last: bool) -> None:
        self._last = last
        self._row = RowCodec([of])

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        self._keep(packed(at.time, at.arrival), self._row.encode(args), at, entries)

    def remove(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        self._take(at, entries)

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The value of the first or the last row; null without one."""
        found = entries.first(PLACE, reverse=self._last)
        return None if found is None else self._row.decode(found[1])[0]


class CollectList(_Placed):
    """``collect_list``: the values by (event time, arrival), without nulls."""

    def __init__(self, of: DataType) -> None:
        self._row = RowCodec([of])

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is not None:
            self._keep(packed(at.time, at.arrival), self._row.encode(args), at, entries)

    def remove(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is not None:
            self._take(at, entries)

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The values as a list."""
        return [self._row.decode(data)[0] for _, data in entries.scan(PLACE)]


class CollectSet(_Placed):
    """``collect_set``: each value once, in the order of first appearance, without nulls.

    Entries: a row for each value at the arrival of the first of its rows (places); for each row one behind its value
    (``v`` value arrival), which tells who is the first when the one that was is taken back.
    """

    def __init__(self, of: DataType) -> None:
        self._order: Callable[[Any], bytes] = order_bytes(of)
        self._row = RowCodec([of])

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        """Takes a row in. Of a stream only the first row of a value is kept."""
        if args[0] is None:
            return
        value, arrival = VALUE + self._order(args[0]), _ARRIVAL.pack(at.arrival)
        known = entries.first(value) is not None
        if not known:
            entries.put(PLACE + arrival, self._row.encode(args))
        if not known or at.ident:
            entries.put(value + arrival, self._row.encode(args))
        if at.ident:
            entries.put(IDENT + at.ident + arrival)

    def remove(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        """Takes a row back; if another row has its value, that one's appearance counts."""
        found = None if args[0] is None else entries.first(IDENT + at.ident)
        if found is None:
            return
        arrival, value = found[0], VALUE + self._order(args[0])
        entries.delete(IDENT + at.ident + arrival)
        entries.delete(value + arrival)
        if entries.get(PLACE + arrival) is not None:
            entries.delete(PLACE + arrival)
            following = entries.first(value)
            if following is not None:
                entries.put(PLACE + following[0], following[1])

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
