"""``min``, ``max``, ``min_by``, ``max_by``, ``first`` and ``last`` of a table in a batch, with the same entries as
`aggregate.collected`.

Of a group's stored rows, only these are read: those that the batch adds or takes back, and the first ones in order, up
to the first that the batch does not change. So a change costs as much in a large group as in a small one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.plan.types import DataType
from vsc.runtime.operators.aggregate.collected import IDENT, PLACE
from vsc.runtime.operators.aggregate.distinct import ordered
from vsc.runtime.operators.aggregate.order import order_bytes
from vsc.runtime.operators.aggregate.states import Beside, Rows, State, Writes, valid
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.kv_base import prefix_end
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.values import to_values

__all__ = ["KeptExtremeByColumns", "KeptExtremeColumns", "KeptFirstLastColumns"]

_COUNT = struct.Struct("<q")
_MAX = 2**64 - 1
_NOTHING = -1

Head = tuple[bytes, int]
"""A row of the store: the suffix of its key, and the number of its value."""


class _Kept:
    """Base of all. A state is a value's number: a record of the batch, below -1 a stored row, -1 no value."""

    def __init__(self, of: DataType, greatest: bool, mark: bytes) -> None:
        self._row, self._greatest, self._mark = RowCodec([of]), greatest, mark
        self._beside: Beside | None = None
        self._stored: dict[int, Iterator[Head]] = {}
        self._heads: dict[int, Head | None] = {}
        self._read: list[bytes] = []
        self._column: pa.Array | None = None

    def load(self, cells: Sequence[pa.Array]) -> State:
        """Empty: there are no cells (see `open`)."""
        return ()

    def open(self, beside: Beside, state: State) -> State:
        self._beside = beside
        found = np.full(len(beside.prefixes), _NOTHING, dtype=np.int64)
        for group in np.flatnonzero(beside.stored).tolist():
            self._stored[group] = self._scan(beside, beside.prefixes[group] + self._mark)
            head = self._heads[group] = next(self._stored[group], None)
            if head is not None:
                found[group] = head[1]
        return (found,)

    def _scan(self, beside: Beside, prefix: bytes) -> Iterator[Head]:
        for row, data in beside.kv.scan(prefix, prefix_end(prefix), self._greatest):
            self._read.append(data)
            yield row[len(prefix) :], -1 - len(self._read)

    def _head(self, group: int, changed: Callable[[bytes], bool]) -> Head | None:
        """The first of the group's stored rows for which `changed` is not true."""
        head = self._heads.get(group)
        while head is not None and changed(head[0]):
            head = self._heads[group] = next(self._stored[group], None)
        return head

    def _ahead(self, one: bytes, head: Head | None) -> bool:
        """Whether a row comes before the first stored one."""
        return head is None or (one > head[0] if self._greatest else one < head[0])

    def results(self, state: State) -> pa.Array:
        assert self._column is not None
        number: Int64s = state[0]
        (read,) = self._row.decode_columns(pa.array([self._value(data) for data in self._read], pa.binary()))
        place = np.where(number < _NOTHING, len(self._column) - 2 - number, number)
        return pa.concat_arrays([self._column, read]).take(pa.array(place, mask=number == _NOTHING))

    def _value(self, data: bytes) -> bytes:
        """The row of a value, from what is stored."""
        return data

    def store(self, state: State) -> tuple[pa.Array, ...]:
        return ()


class KeptExtremeColumns(_Kept):
    """``min`` and ``max``: an entry for each value has its count."""

    def __init__(self, of: DataType, greatest: bool) -> None:
        super().__init__(of, greatest, b"")
        self._of = of
        self._changed: tuple[Int64s, list[bytes], Int64s, Int64s, list[bytes]] | None = None

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        assert self._beside is not None and rows.sign is not None
        column = self._column = rows.args[0]
        counted = np.flatnonzero(valid(column) & (rows.sign != 0))
        if not len(counted):
            return (start[0][segments.group],), start
        names, data, index, example = self._values(column.take(pa.array(counted)))
        pairs, pair = np.unique(segments.group[counted] * len(names) + index, return_inverse=True)
        group, value = pairs // len(names), pairs % len(names)
        prefixes = self._beside.prefixes
        entries = [prefixes[g] + names[v] for g, v in zip(group.tolist(), value.tolist(), strict=True)]
        known = self._known(group, entries)
        by_pair = Segments(pair.reshape(-1), len(pairs))
        running = by_pair.counts(rows.sign[counted][by_pair.order], known)
        before = by_pair.before(running, known)
        change = np.zeros(len(segments), dtype=np.int64)
        change[counted[by_pair.order]] = (running > 0).astype(np.int64) - (before > 0)
        ended = running[by_pair.ends - 1]
        self._changed = group, entries, known, ended, [data[v] for v in value.tolist()]
        there = np.zeros(len(segments), dtype=np.int64)
        there[counted] = index
        touched = self._touched(group, value, known)
        return self._extremes(start, segments, change, there, touched, names, counted[example])

    def _values(self, column: pa.Array) -> tuple[list[bytes], list[bytes], Int64s, Int64s]:
        """The distinct values in order: their names in the store, their rows; the value of each row; an example row."""
        encoded = self._row.encode_columns([column], len(column)).dictionary_encode()
        index = encoded.indices.to_numpy().astype(np.int64)
        data: list[bytes] = encoded.dictionary.to_pylist()
        example = np.empty(len(data), dtype=np.int64)
        example[index[::-1]] = np.arange(len(index))[::-1]
        orders, place = ordered(self._of, column.take(pa.array(example)))
        names = [orders[p] + d for p, d in zip(place.tolist(), data, strict=True)]
        order = sorted(range(len(names)), key=names.__getitem__)
        rank = np.empty(len(names), dtype=np.int64)
        rank[order] = np.arange(len(names))
        return [names[i] for i in order], [data[i] for i in order], rank[index], example[order]

    def _known(self, group: Int64s, entries: Sequence[bytes]) -> Int64s:
        """How often the group has had each value before."""
        assert self._beside is not None
        known = np.zeros(len(entries), dtype=np.int64)
        stored = np.flatnonzero(self._beside.stored[group]).tolist()
        for i, found in zip(stored, self._beside.kv.get_many([entries[i] for i in stored]), strict=True):
            known[i] = 0 if found is None else _COUNT.unpack_from(found)[0]
        return known

    def _touched(self, group: Int64s, value: Int64s, known: Int64s) -> dict[int, tuple[set[int], list[int]]]:
        """By group the values that the batch counts, and those of them that existed before."""
        touched: dict[int, tuple[set[int], list[int]]] = {}
        for g, v, n in zip(group.tolist(), value.tolist(), known.tolist(), strict=True):
            every, there = touched.setdefault(g, (set(), []))
            every.add(v)
            if n > 0:
                there.append(v)
        return touched

    def _extremes(
        self, start: State, segments: Segments, change: Int64s, value: Int64s,
        touched: dict[int, tuple[set[int], list[int]]], names: list[bytes], example: Int64s,
    ) -> tuple[State, State]:  # fmt: skip
        """The states, given which value appears (1) or disappears (-1) at each record."""
        sign = -1 if self._greatest else 1
        changes, values, examples = change.tolist(), value.tolist(), example.tolist()
        found = start[0][segments.group]
        ended = start[0].copy()
        for group, (every, there) in touched.items():
            mine = {names[v] for v in every}
            head = self._head(group, mine.__contains__)
            heap, present = [sign * v for v in there], set(there)
            heapify(heap)
            now = int(start[0][group])
            for at in range(int(segments.starts[group]), int(segments.ends[group])):
                if changes[at]:
                    if changes[at] > 0:
                        present.add(values[at])
                        heappush(heap, sign * values[at])
                    else:
                        present.discard(values[at])
                    while heap and sign * heap[0] not in present:
                        heappop(heap)
                    best = sign * heap[0] if heap else -1
                    if heap and self._ahead(names[best], head):
                        now = examples[best]
                    else:
                        now = _NOTHING if head is None else head[1]
                found[at] = now
            ended[group] = now
        return (found,), (ended,)

    def _value(self, data: bytes) -> bytes:
        return data[_COUNT.size :]

    def writes(self, chosen: Mask) -> Writes:
        if self._changed is None:
            return [], []
        group, entries, known, ended, data = self._changed
        put = np.flatnonzero(chosen[group] & (ended > 0) & (ended != known)).tolist()
        gone = np.flatnonzero(chosen[group] & (ended == 0) & (known > 0)).tolist()
        counts = ended.tolist()
        return [(entries[i], _COUNT.pack(counts[i]) + data[i]) for i in put], [entries[i] for i in gone]


@dataclass(slots=True)
class _Rows:
    """The rows of one group that the batch touches: the places by identity, the added records by place, and the removed
    places of the store."""

    idents: dict[bytes, list[bytes]] = field(default_factory=dict)
    added: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    gone: dict[bytes, bytes] = field(default_factory=dict)


class _Placed(_Kept):
    """Rows at ordered places; the first or the last is the result."""

    def __init__(self, of: DataType, greatest: bool) -> None:
        super().__init__(of, greatest, PLACE)
        self._rows: dict[int, _Rows] = {}

    def _counts(self, rows: Rows) -> Mask:
        """Which records are rows at all."""
        raise NotImplementedError

    def _places(self, rows: Rows, at: Int64s) -> list[bytes]:
        """The places of the records `at`."""
        raise NotImplementedError

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        assert rows.sign is not None and rows.ident is not None
        self._column = rows.args[0]
        signs = np.where(self._counts(rows), rows.sign, 0)
        adding = np.flatnonzero(signs > 0)
        places = dict(zip(adding.tolist(), self._places(rows, adding), strict=True))
        order = sorted(places, key=places.__getitem__, reverse=self._greatest)
        rank = dict(zip(order, range(len(order)), strict=True))
        steps, idents = signs.tolist(), rows.ident.tolist()
        found = start[0][segments.group]
        ended = start[0].copy()
        for group in np.unique(segments.group[signs != 0]).tolist():
            heap: list[int] = []
            mine = self._rows[group] = _Rows()
            now = int(start[0][group])
            for at in range(int(segments.starts[group]), int(segments.ends[group])):
                if steps[at]:
                    if steps[at] > 0:
                        self._add(group, mine, at, places[at], idents[at])
                        heappush(heap, rank[at])
                    else:
                        self._take(group, mine, idents[at])
                    now = self._best(group, mine, heap, order, places)
                found[at] = now
            ended[group] = now
        return (found,), (ended,)

    def _add(self, group: int, mine: _Rows, at: int, place: bytes, ident: bytes) -> None:
        self._of(group, mine, ident).append(place)
        mine.added[place] = at, ident

    def _take(self, group: int, mine: _Rows, ident: bytes) -> None:
        places = self._of(group, mine, ident)
        if places:
            place = min(places)
            places.remove(place)
            if mine.added.pop(place, None) is None:
                mine.gone[place] = ident

    def _of(self, group: int, mine: _Rows, ident: bytes) -> list[bytes]:
        """Where the rows of an identity are."""
        assert self._beside is not None
        if ident not in mine.idents:
            prefix = self._beside.prefixes[group] + IDENT + ident
            stored = self._beside.kv.scan(prefix, prefix_end(prefix)) if self._beside.stored[group] else ()
            mine.idents[ident] = [row[len(prefix) :] for row, _ in stored]
        return mine.idents[ident]

    def _best(self, group: int, mine: _Rows, heap: list[int], order: list[int], places: dict[int, bytes]) -> int:
        """The number of the value that is the result."""
        while heap and places[order[heap[0]]] not in mine.added:
            heappop(heap)
        head = self._head(group, mine.gone.__contains__)
        if heap and self._ahead(places[order[heap[0]]], head):
            return order[heap[0]]
        return _NOTHING if head is None else head[1]

    def writes(self, chosen: Mask) -> Writes:
        assert self._beside is not None and self._column is not None
        puts: list[tuple[bytes, bytes]] = []
        names: list[bytes] = []
        numbers: list[int] = []
        deletes: list[bytes] = []
        for group, mine in self._rows.items():
            if not chosen[group]:
                continue
            prefix = self._beside.prefixes[group]
            for place, (at, ident) in mine.added.items():
                names.append(prefix + PLACE + place)
                numbers.append(at)
                puts.append((prefix + IDENT + ident + place, b""))
            for place, ident in mine.gone.items():
                deletes += [prefix + PLACE + place, prefix + IDENT + ident + place]
        data = self._row.encode_columns([self._column.take(pa.array(numbers, pa.int64()))], len(names)).to_pylist()
        return puts + list(zip(names, data, strict=True)), deletes


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
