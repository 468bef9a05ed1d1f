"""The calls of an aggregate: their arguments, their accumulators, and the result row that is computed from them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from vsc.plan.expressions import Column as ColumnExpr
from vsc.plan.nodes import Aggregate, AggregateCall, Column, Node, Schema
from vsc.plan.types import BIGINT, DataType
from vsc.runtime.expressions import ExpressionFailure
from vsc.runtime.operators import evaluate
from vsc.runtime.operators.aggregate.functions import collected, numbers, running
from vsc.runtime.operators.aggregate.functions.entries import At, Entries
from vsc.runtime.operators.aggregate.functions.order import order_bytes
from vsc.runtime.operators.aggregate.functions.percentile import Percentile, share_of
from vsc.runtime.operators.aggregate.functions.top import CollectTop, top_of
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.state.kv_base import OrderedKV
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.values import to_array, to_values

__all__ = ["Accumulator", "Calls", "Group", "accumulator_of", "entry_tag"]

_TAG = struct.Struct(">H")
_NONE: Any = None
"""The entries of an accumulator that keeps none: never read."""

_BY_ARRIVAL = (running.ExtremeBy, running.FirstLast)


class Accumulator(Protocol):
    """One call's part of a group: cells (of `types`) in the group's row, and entries beside it.

    `cells` are those of all calls of the group; this one's begin at `i`.
    """

    @property
    def types(self) -> tuple[DataType, ...]:
        """The types of its cells."""

    @property
    def has_entries(self) -> bool:
        """Whether it keeps entries."""

    def start(self) -> tuple[Any, ...]:
        """The cells of an empty group."""

    def add(self, cells: list[Any], i: int, args: tuple[Any, ...], at: At, entries: Entries) -> None:
        """Adds a row."""

    def merge(self, cells: list[Any], i: int, other: list[Any], entries: Entries, others: Entries) -> None:
        """Merges in what another group of the same stream holds."""

    def result(self, cells: list[Any], i: int, entries: Entries) -> Any:
        """The value of the call. Raises ExpressionFailure if it does not fit its type."""


class Group:
    """One group: the time of its result, its number of rows, the cells of its calls."""

    __slots__ = ("cells", "rows", "time")

    def __init__(self, time: int, rows: int, cells: list[Any]) -> None:
        self.time, self.rows, self.cells = time, rows, cells

    def copy(self) -> Group:
        """An independent copy."""
        return Group(self.time, self.rows, list(self.cells))


class Calls:
    """The calls and the items of `node`, which is an `Aggregate`. All state lies in `Group` and `Entries`.

    `row` is a group's layout in the store: its time, its number of rows, the cells of its calls. `plain`: the items are
    the calls' results, one for one.
    """

    def __init__(self, node: Node, operation: Aggregate) -> None:
        table = operation.over == "table"
        self._name = node.name
        self._calls = operation.calls
        self.accumulators: list[Accumulator] = [accumulator_of(call, table) for call in operation.calls]
        self._at: list[int] = []
        types: list[DataType] = []
        for accumulator in self.accumulators:
            self._at.append(len(types))
            types.extend(accumulator.types)
        self.row = RowCodec([BIGINT, BIGINT, *types])
        self._start = [cell for a in self.accumulators for cell in a.start()]
        self._steps = [
            (n, accumulator, i, entry_tag(n) if accumulator.has_entries else None)
            for n, (accumulator, i) in enumerate(zip(self.accumulators, self._at, strict=True))
        ]
        self.has_entries = any(a.has_entries for a in self.accumulators)
        # Whether arrivals must distinguish rows: if not, arrivals need not be counted.
        self.numbered = any(a.has_entries or isinstance(a, _BY_ARRIVAL) for a in self.accumulators)
        columns = tuple(Column(f"#{i}", call.type) for i, call in enumerate(operation.calls))
        self.plain = _plain(operation)
        self._items = evaluate.items(node.name, operation.items, [Schema(node.schema.key, columns)])

    # ------------------------------------------------------------------------------------------------- the group

    def empty(self) -> Group:
        """A group without rows."""
        return Group(-1, 0, list(self._start))

    def decode(self, data: bytes) -> Group:
        """The group that `encode` encoded."""
        time, rows, *cells = self.row.decode(data)
        assert isinstance(time, int) and isinstance(rows, int)
        return Group(time, rows, cells)

    def encode(self, group: Group) -> bytes:
        """A group's row in the store."""
        return self.row.encode((group.time, group.rows, *group.cells))

    def encode_many(self, groups: Sequence[Group]) -> list[bytes]:
        """The rows of groups in the store."""
        encoded: list[bytes] = self.row.encode_columns(self.columns(groups), len(groups)).to_pylist()
        return encoded

    # ------------------------------------------------------------------------------------------------ its rows

    def rows(self, columns: Sequence[pa.Array], count: int) -> Sequence[Sequence[tuple[Any, ...]]]:
        """The arguments of all calls for each of `count` rows, from their columns."""
        types = [arg.type for call in self._calls for arg in call.args]
        values = iter([to_values(column, type_) for column, type_ in zip(columns, types, strict=True)])
        found: list[Sequence[tuple[Any, ...]]] = []
        for call in self._calls:
            of_call = [next(values) for _ in call.args]
            found.append(list(zip(*of_call, strict=True)) if of_call else [()] * count)
        return list(zip(*found, strict=True)) if found else [()] * count

    def columns(self, groups: Sequence[Group | None]) -> list[pa.Array]:
        """The columns of `row` for many groups: times, numbers of rows, cells; null for no group."""
        nothing = (None,) * len(self.row.types)
        rows = [nothing if group is None else (group.time, group.rows, *group.cells) for group in groups]
        columns = zip(*rows, strict=True) if rows else [()] * len(nothing)
        return [to_array(list(column), of) for column, of in zip(columns, self.row.types, strict=True)]

    def add(self, group: Group, args: Sequence[tuple[Any, ...]], at: At, kv: OrderedKV, prefix: bytes) -> None:
        """Adds a row; the group's time stays as it is."""
        group.rows += 1
        for n, accumulator, i, tag in self._steps:
            accumulator.add(group.cells, i, args[n], at, _NONE if tag is None else Entries(kv, prefix + tag))

    def merge(self, group: Group, other: Group, kv: OrderedKV, prefix: bytes, others: bytes) -> None:
        """Merges in the rows of another group, whose entries are under `others`."""
        group.rows += other.rows
        for _, accumulator, i, tag in self._steps:
            accumulator.merge(group.cells, i, other.cells, _entries(kv, prefix, tag), _entries(kv, others, tag))

    def result(self, group: Group, key: Row, kv: OrderedKV, prefix: bytes) -> Row:
        """The value columns of the group's result; `key`: its key columns. Raises NodeFailure if an item fails."""
        values, cells = [], group.cells
        for n, accumulator, i, tag in self._steps:
            try:
                values.append(accumulator.result(cells, i, _NONE if tag is None else Entries(kv, prefix + tag)))
            except ExpressionFailure as failure:
                raise NodeFailure(self._name, self._calls[n].text, failure.reason) from failure
        if self.plain:
            return tuple(values)
        return self._items((*key, *values), None, group.time, None)


def entry_tag(call: int) -> bytes:
    """What the entries of a call begin with, after the prefix of their group."""
    return _TAG.pack(call)


def _entries(kv: OrderedKV, prefix: bytes, tag: bytes | None) -> Entries:
    return _NONE if tag is None else Entries(kv, prefix + tag)


def _plain(operation: Aggregate) -> bool:
    """Whether the items are the calls' results, one for one."""
    names = [i.expr.name if isinstance(i.expr, ColumnExpr) else "" for i in operation.items]
    return names == [f"#{n}" for n in range(len(operation.calls))]


def accumulator_of(call: AggregateCall, table: bool) -> Any:
    """The accumulator of a call over a stream or a `table`; that of a table may only read what is kept."""
    of = [arg.type for arg in call.args]
    if call.distinct and call.function != "count":
        raise ValueError(f"{call.text}: 'distinct' is for count alone")
    match call.function:
        case "count":
            return numbers.CountDistinct(order_bytes(of[0])) if call.distinct else numbers.Count()
        case "sum" | "avg" as function:
            average = function == "avg"
            if not numbers.is_float(of[0]):
                return numbers.ExactSum(of[0], call.type, average)
            return numbers.ExactFloatSum(average) if table else numbers.RunningFloatSum(average)
        case "stddev" | "variance" as function:
            return numbers.ExactSpread(function == "stddev")
        case "min" | "max" as function:
            extreme = collected.KeptExtreme if table else running.Extreme
            return extreme(of[0], function == "max")
        case "min_by" | "max_by" as function:
            greatest = function == "max_by"
            return collected.KeptRow(of[0], greatest) if table else running.ExtremeBy(of[0], of[1], greatest)
        case "first" | "last" as function:
            first_last = collected.KeptRow if table else running.FirstLast
            return first_last(of[0], function == "last")
        case "collect_list":
            return collected.CollectList(of[0])
        case "collect_set":
            return collected.CollectSet(of[0])
        case "collect_top" | "collect_last":
            return CollectTop(of[0], top_of(call))
        case "approx_percentile":
            return Percentile(of[0], share_of(call))
        case other:
            raise ValueError(f"{call.text}: unknown aggregate function {other}")
