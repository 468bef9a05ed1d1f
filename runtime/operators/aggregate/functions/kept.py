"""``min``, ``max``, ``min_by``, ``max_by``, ``first`` and ``last`` of a table in a batch, with the same entries as
`aggregate.functions.collected`.

Of a group's stored rows, only these are read: those that the batch adds or takes back, and the first ones in order, up
to the first that the batch does not change. So a change costs as much in a large group as in a small one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence, Set
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.plan.types import DataType
from vsc.runtime.operators.aggregate.functions.batch_entries import Counts, GroupEntries, OnlyEntries
from vsc.runtime.operators.aggregate.functions.collected import PLACE
from vsc.runtime.operators.aggregate.functions.order import order_bytes, ordered
from vsc.runtime.operators.aggregate.functions.states import EntryRanges, Rows, State, Writes, valid
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.kv_base import prefix_end
from vsc.runtime.values import to_values

__all__ = ["KeptExtremeByColumns", "KeptExtremeColumns", "KeptFirstLastColumns"]

_COUNT = struct.Struct("<q")
_MAX = 2**64 - 1
_NOTHING = -1

Head = tuple[bytes, int]
"""A row of the store: the suffix of its key, and the number of its value."""


class _Kept(OnlyEntries):
    """Base of all. A state is a value's number: a record of the batch, below -1 a stored row, -1 no value."""

    def __init__(self, of: DataType, greatest: bool, mark: bytes) -> None:
        super().__init__(of)
        self._greatest, self._mark = greatest, mark
        self._stored: dict[int, Iterator[Head]] = {}
        self._heads: dict[int, Head | None] = {}
        self._read: list[bytes] = []

    def open(self, ranges: EntryRanges, state: State) -> State:
        self.ranges = ranges
        found = np.full(len(ranges.prefixes), _NOTHING, dtype=np.int64)
        for group in np.flatnonzero(ranges.stored).tolist():
            self._stored[group] = self._scan(ranges, ranges.prefixes[group] + self._mark)
            head = self._heads[group] = next(self._stored[group], None)
            if head is not None:
                found[group] = head[1]
        return (found,)

    def _scan(self, ranges: EntryRanges, prefix: bytes) -> Iterator[Head]:
        for row, data in ranges.kv.scan(prefix, prefix_end(prefix), self._greatest):
            self._read.append(data)
            yield row[len(prefix) :], -1 - len(self._read)

    def _best(
        self, group: int, heap: list[int], names: Sequence[bytes], numbers: Sequence[int], gone: Set[bytes],
        changed: Set[bytes],
    ) -> int:  # fmt: skip
        """The number of the best value of a group.

        A `heap` has places in `names` (best first) and `numbers`: the batch's values, without those that are `gone`.
        The others are the stored rows that are not `changed`.
        """
        while heap and names[heap[0]] in gone:
            heappop(heap)
        head = self._heads.get(group)
        while head is not None and head[0] in changed:
            head = self._heads[group] = next(self._stored[group], None)
        if heap:
            name = names[heap[0]]
            if head is None or (name > head[0] if self._greatest else name < head[0]):
                return numbers[heap[0]]
        return _NOTHING if head is None else head[1]

    def results(self, state: State) -> pa.Array:
        number: Int64s = state[0]
        (read,) = self.row.decode_columns(pa.array([self._value(data) for data in self._read], pa.binary()))
        place = np.where(number < _NOTHING, len(self.values) - 2 - number, number)
        return pa.concat_arrays([self.values, read]).take(pa.array(place, mask=number == _NOTHING))

    def _value(self, data: bytes) -> bytes:
        """The row of a value, from what is stored."""
        return data


class KeptExtremeColumns(_Kept):
    """``min`` and ``max``: an entry for each value has its count."""

    _counts: Counts

    def __init__(self, of: DataType, greatest: bool) -> None:
        super().__init__(of, greatest, b"")
        self._of = of
        self._data: list[bytes] = []

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        column = self.values = rows.args[0]
        steps = rows.signed(valid(column).astype(np.int64))
        counted = np.flatnonzero(steps)
        names, self._data, index, example = self._values(column.take(pa.array(counted)))
        counts = self._counts = Counts(self.ranges, segments, steps, counted, names, index, _counts_of)
        value = np.zeros(len(segments), dtype=np.int64)
        value[counted] = index
        return self._extremes(start, segments, counts, value, names, counted[example].tolist())

    def _values(self, column: pa.Array) -> tuple[list[bytes], list[bytes], Int64s, Int64s]:
        """The distinct values, best first: their names in the store, their rows; the value of each row; an example."""
        encoded = self.row.encode_columns([column], len(column)).dictionary_encode()
        index = encoded.indices.to_numpy().astype(np.int64)
        data: list[bytes] = encoded.dictionary.to_pylist()
        example = np.empty(len(data), dtype=np.int64)
        example[index[::-1]] = np.arange(len(index))[::-1]
        orders, place = ordered(self._of, column.take(pa.array(example)))
        names = [orders[p] + d for p, d in zip(place.tolist(), data, strict=True)]
        order = sorted(range(len(names)), key=names.__getitem__, reverse=self._greatest)
        rank = np.empty(len(names), dtype=np.int64)
        rank[order] = np.arange(len(names))
        return [names[i] for i in order], [data[i] for i in order], rank[index], example[order]

    def _extremes(
        self, start: State, segments: Segments, counts: Counts, value: Int64s, names: list[bytes], numbers: list[int]
    ) -> tuple[State, State]:
        """The states, given the value that each record counts."""
        changes, values = counts.change.tolist(), value.tolist()
        extremes, ended = start[0][segments.group], start[0].copy()
        for group, known in _touched(counts).items():
            counted = {names[v] for v in known}
            heap = [v for v, n in known.items() if n > 0]
            gone = counted.difference(names[v] for v in heap)
            heapify(heap)
            now = int(start[0][group])
            for at in range(int(segments.starts[group]), int(segments.ends[group])):
                if changes[at]:
                    if changes[at] > 0:
                        gone.discard(names[values[at]])
                        heappush(heap, values[at])
                    else:
                        gone.add(names[values[at]])
                    now = self._best(group, heap, names, numbers, gone, counted)
                extremes[at] = now
            ended[group] = now
        return (extremes,), (ended,)

    def _value(self, data: bytes) -> bytes:
        return data[_COUNT.size :]

    def writes(self, chosen: Mask) -> Writes:
        data = self._data
        return self._counts.writes(
            chosen, lambda n, value: [_COUNT.pack(c) + data[v] for c, v in zip(n.tolist(), value.tolist(), strict=True)]
        )


def _counts_of(found: pa.BinaryArray) -> Int64s:
    return np.array([0 if data is None else _COUNT.unpack_from(data)[0] for data in found.to_pylist()], dtype=np.int64)


def _touched(counts: Counts) -> dict[int, dict[int, int]]:
    """By group the values that the batch counts, with their counts before."""
    touched: dict[int, dict[int, int]] = {}
    for group, value, known in zip(counts.group.tolist(), counts.value.tolist(), counts.known.tolist(), strict=True):
        touched.setdefault(group, {})[value] = known
    return touched


class _Placed(_Kept):
    """Rows at ordered places; the first or the last is the result."""

    def __init__(self, of: DataType, greatest: bool) -> None:
        super().__init__(of, greatest, PLACE)

    def _counts(self, rows: Rows) -> Mask:
        """Which records are rows at all."""
        raise NotImplementedError

    def _places(self, rows: Rows, at: Int64s) -> list[bytes]:
        """The places of the records `at`."""
        raise NotImplementedError

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        assert rows.sign is not None and rows.ident is not None
        self.values = rows.args[0]
        signs = np.where(self._counts(rows), rows.sign, 0)
        adding = np.flatnonzero(signs > 0)
        places = dict(zip(adding.tolist(), self._places(rows, adding), strict=True))
        order = sorted(places, key=places.__getitem__, reverse=self._greatest)
        names, rank = [places[at] for at in order], {at: place for place, at in enumerate(order)}
        steps, idents = signs.tolist(), rows.ident.tolist()
        extremes, ended = start[0][segments.group], start[0].copy()
        for group in np.unique(segments.group[signs != 0]).tolist():
            heap: list[int] = []
            mine = self.changed[group] = GroupEntries(self.ranges, group)
            gone: set[bytes] = set()
            now = int(start[0][group])
            for at in range(int(segments.starts[group]), int(segments.ends[group])):
                if steps[at]:
                    if steps[at] > 0:
                        mine.identified(idents[at], places[at])
                        mine.added[PLACE + places[at]] = at
                        gone.discard(places[at])
                        heappush(heap, rank[at])
                    elif (place := mine.taken(idents[at])) is not None:
                        mine.delete(PLACE + place)
                        gone.add(place)
                    now = self._best(group, heap, names, order, gone, gone)
                extremes[at] = now
            ended[group] = now
        return (extremes,), (ended,)


class KeptExtremeByColumns(_Placed):
    """``min_by`` and ``max_by``: the rows in order of their ordering value; of equal ones the latest counts."""

    def __init__(self, of: DataType, by: DataType, greatest: bool) -> None:
        super().__init__(of, greatest)
        self._by, self._order = by, order_bytes(by)

    def _counts(self, rows: Rows) -> Mask:
        return valid(rows.args[1])

    def _places(self, rows: Rows, at: Int64s) -> list[bytes]:
        order: list[Any] = to_values(rows.args[1].take(pa.array(at)), self._by)
        arrivals = rows.arrival[at].tolist()
        if not self._greatest:
            arrivals = [_MAX - arrival for arrival in arrivals]
        return [self._order(by) + arrival.to_bytes(8, "big") for by, arrival in zip(order, arrivals, strict=True)]


class KeptFirstLastColumns(_Placed):
    """``first`` and ``last`` by (event time, arrival), including nulls."""

    def _counts(self, rows: Rows) -> Mask:
        return np.ones(len(rows.time), dtype=np.bool_)

    def _places(self, rows: Rows, at: Int64s) -> list[bytes]:
        packed = np.stack([rows.time[at], rows.arrival[at]], axis=1).astype(">u8").tobytes()
        return [packed[i : i + 16] for i in range(0, len(packed), 16)]
