"""Aggregates for one record: the calls' arguments, and accumulators that take a table's rows in and back."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from vsc.plan.nodes import Aggregate, AggregateCall, Node
from vsc.plan.types import DataType
from vsc.runtime.expressions import ExpressionFailure, compile_row
from vsc.runtime.operators.aggregate import collected, numbers
from vsc.runtime.operators.aggregate.calls import Accumulator, Calls, Group, accumulator_of
from vsc.runtime.operators.aggregate.collected import IDENT, PLACE, VALUE
from vsc.runtime.operators.aggregate.entries import At, Entries, packed
from vsc.runtime.operators.aggregate.order import order_bytes
from vsc.runtime.operators.aggregate.state import AggregateState
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.state.kv_base import OrderedKV

__all__ = ["RecordCalls", "RecordState"]

_COUNT = struct.Struct("<q")
_ARRIVAL = struct.Struct(">Q")
_MAX = 2**64 - 1


class RecordCalls(Calls):
    """The calls of an aggregate, one row at a time."""

    def __init__(self, node: Node, operation: Aggregate) -> None:
        super().__init__(node, operation)
        self._args = [[compile_row(arg, [operation.row]) for arg in call.args] for call in operation.calls]

    def accumulator(self, call: AggregateCall, table: bool) -> Any:
        return _of_table(call) if table else accumulator_of(call, table)

    def args(self, row: Row, time: int) -> Sequence[tuple[Any, ...]]:
        """The arguments of all calls for a row; NodeFailure if one of them fails."""
        found = []
        for call, functions in zip(self._calls, self._args, strict=True):
            try:
                found.append(tuple([f(row, None, time, None) for f in functions]))
            except ExpressionFailure as failure:
                raise NodeFailure(self._name, call.text, failure.reason) from failure
        return found

    def remove(self, group: Group, args: Sequence[tuple[Any, ...]], at: At, kv: OrderedKV, prefix: bytes) -> None:
        """Takes a row back."""
        group.rows -= 1
        for n, accumulator, i, tag in self._steps:
            taking: Any = accumulator
            taking.remove(group.cells, i, args[n], at, Entries(kv, prefix + (tag or b"")))


class RecordState(AggregateState):
    """The state of an aggregate, which is written after each record."""

    __slots__ = ()

    def get(self, group: bytes) -> bytes | None:
        """A group's row, or None."""
        return self.kv.get(self.groups + group)

    def put(self, group: bytes, data: bytes) -> None:
        """Writes a group's row."""
        self.kv.write([(self.groups + group, data)])

    def remove(self, group: bytes, entries: bool) -> None:
        """Removes a group's row, and with `entries` what its accumulators keep beside it."""
        self.kv.write((), [self.groups + group])
        if entries:
            self.clear(self.entries + group)

    def commit(self) -> None:
        """Writes what has changed, all at once."""
        meta = self._changed_meta()
        if meta:
            self.kv.write(meta)
        self.kv.commit()

    def discard(self) -> None:
        """Forgets what has changed since the last commit."""
        self.kv.discard()
        self._reset()


def _of_table(call: AggregateCall) -> Accumulator:
    of = [arg.type for arg in call.args]
    match call.function:
        case "count":
            return _CountDistinct(order_bytes(of[0])) if call.distinct else _Count()
        case "sum" | "avg" if numbers.is_float(of[0]):
            return _ExactFloatSum(call.function == "avg")
        case "sum" | "avg":
            return _ExactSum(of[0], call.type, call.function == "avg", checked=False)
        case "min" | "max":
            return _KeptExtreme(of[0], call.function == "max")
        case "min_by" | "max_by":
            return _KeptExtremeBy(of[0], of[1], call.function == "max_by")
        case "first" | "last":
            return _KeptFirstLast(of[0], call.function == "last")
        case "collect_list":
            return _CollectList(of[0])
        case _:
            return _CollectSet(of[0])


class _Count(numbers.Count):
    def remove(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if not args or args[0] is not None:
            cells[i] -= 1


class _CountDistinct(numbers.CountDistinct):
    def remove(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is None:
            return
        value = self._encode(args[0])
        left = int.from_bytes(entries.get(value) or b"", "little", signed=True) - 1
        if left > 0:
            entries.put(value, left.to_bytes(left.bit_length() // 8 + 1, "little", signed=True))
        elif left == 0:
            entries.delete(value)
            cells[i] -= 1


class _ExactSum(numbers.ExactSum):
    def remove(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is not None:
            self._change(cells, i, -1, -self._exact(args[0]))


class _OfTable:
    def merge(self, cells: list[Any], i: int, other: list[Any], entries: Entries, others: Entries) -> None:
        raise AssertionError("groups of a table are not merged")


class _ExactFloatSum(numbers.ExactFloatSum, _OfTable):
    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is not None:
            self.change(cells, i, args[0], 1)

    def remove(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is not None:
            self.change(cells, i, args[0], -1)


class _KeptExtreme(collected.KeptExtreme, _OfTable):
    """Every value with how often it is there, in order."""

    def __init__(self, of: DataType, greatest: bool) -> None:
        super().__init__(of, greatest)
        self._order = order_bytes(of)

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is not None:
            self._count(args[0], 1, entries)

    def remove(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is not None:
            self._count(args[0], -1, entries)

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


def _keep(place: bytes, data: bytes, at: At, entries: Entries) -> None:
    entries.put(PLACE + place, data)
    entries.put(IDENT + at.ident + place)


def _take(at: At, entries: Entries) -> None:
    """Removes the row with the identity."""
    found = entries.first(IDENT + at.ident)
    if found is not None:
        entries.delete(IDENT + at.ident + found[0])
        entries.delete(PLACE + found[0])


class _KeptExtremeBy(collected.KeptRow, _OfTable):
    """The rows by what they are ordered by; of equal ones the latest counts."""

    def __init__(self, of: DataType, by: DataType, greatest: bool) -> None:
        super().__init__(of, greatest)
        self._order = order_bytes(by)

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        value, by = args
        if by is not None:
            arrival = at.arrival if self._greatest else _MAX - at.arrival
            _keep(self._order(by) + _ARRIVAL.pack(arrival), self._row.encode((value,)), at, entries)

    def remove(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[1] is not None:
            _take(at, entries)


class _KeptFirstLast(collected.KeptRow, _OfTable):
    """The rows by (event time, arrival), nulls too."""

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        _keep(packed(at.time, at.arrival), self._row.encode(args), at, entries)

    def remove(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        _take(at, entries)


class _CollectList(collected.CollectList):
    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is not None:
            _keep(packed(at.time, at.arrival), self._row.encode(args), at, entries)

    def remove(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is not None:
            _take(at, entries)


class _CollectSet(collected.CollectSet):
    """For each row one entry behind its value: it tells who is the first when the one that was is taken back."""

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        if args[0] is None:
            return
        value, arrival = VALUE + self._order(args[0]), _ARRIVAL.pack(at.arrival)
        if entries.first(value) is None:
            entries.put(PLACE + arrival, self._row.encode(args))
        entries.put(value + arrival, self._row.encode(args))
        entries.put(IDENT + at.ident + arrival)

    def remove(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
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
