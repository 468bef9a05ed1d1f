"""``collect_list`` and ``collect_set`` in a batch, with the same entries as `aggregate.functions.collected`.

A group's rows are read once a batch. Each record changes the list of its group; only rows that were added or removed
are written. So the cost of a record does not grow with its group, except for the list that it returns.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from vsc.plan.types import DataType
from vsc.runtime.operators.aggregate.functions.batch_entries import GroupEntries, OnlyEntries
from vsc.runtime.operators.aggregate.functions.collected import PLACE, VALUE
from vsc.runtime.operators.aggregate.functions.order import ordered
from vsc.runtime.operators.aggregate.functions.states import EntryRanges, Rows, State, valid
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.kv_base import prefix_end
from vsc.runtime.state.versioned_columns import spread

__all__ = ["CollectListColumns", "CollectSetColumns", "Collected", "Group", "Ranked", "Stretch"]

_ARRIVAL, _PLACE = 8, 16
"""The sizes in bytes of an arrival, and of an event time with an arrival."""


Stretch = tuple[int, int]


class _Lists:
    """Changing lists of numbers with all of their states, as a column of arrays.

    A state of a list is a stretch of one long array, `(begin, length)`. Appending to the list at the array's end copies
    nothing; any other change copies the list.
    """

    __slots__ = ("_numbers",)

    def __init__(self, numbers: Int64s) -> None:
        """`numbers`: those of lists that are there already, whose stretches are known."""
        self._numbers = array("q", numbers.tobytes())

    def of(self, numbers: Iterable[int]) -> Stretch:
        """A list of these numbers."""
        begin = len(self._numbers)
        self._numbers.extend(numbers)
        return begin, len(self._numbers) - begin

    def appended(self, state: Stretch, number: int) -> Stretch:
        """The list with `number` at its end."""
        begin, length = state
        if begin + length != len(self._numbers):
            begin, length = self.of(self._numbers[begin : begin + length])
        self._numbers.append(number)
        return begin, length + 1

    def inserted(self, state: Stretch, at: int, number: int) -> Stretch:
        """The list with `number` before the element `at`."""
        begin, length = state
        if at == length:
            return self.appended(state, number)
        numbers = self._numbers[begin : begin + length]
        numbers.insert(at, number)
        return self.of(numbers)

    def without(self, state: Stretch, at: int) -> Stretch:
        """The list without the element `at`."""
        begin, length = state
        if at == length - 1:
            return begin, at
        numbers = self._numbers[begin : begin + length]
        del numbers[at]
        return self.of(numbers)

    def column(self, begin: Int64s, length: Int64s, values: pa.Array) -> pa.ListArray:
        """States as a column of arrays, with the `values` at the numbers."""
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(length)])
        numbers = np.frombuffer(self._numbers, np.int64)[spread(begin, length)]
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values.take(pa.array(numbers)))


class Group(GroupEntries):
    """One group: the `places` of the rows in its list, in order (see the classes). `rows`: see `CollectSetColumns`."""

    __slots__ = ("places", "rows")

    def __init__(self, ranges: EntryRanges, group: int) -> None:
        super().__init__(ranges, group)
        self.places: list[bytes] = []
        self.rows: dict[bytes, dict[bytes, int]] = {}


class Ranked(Group):
    """A group whose `places` are places of values, with their `numbers`."""

    __slots__ = ("numbers",)

    def __init__(self, ranges: EntryRanges, group: int) -> None:
        super().__init__(ranges, group)
        self.numbers: list[int] = []

    def insert(self, place: bytes, number: int) -> int:
        """Puts a row in; returns how many are before it."""
        between = bisect_left(self.places, place)
        self.places.insert(between, place)
        self.numbers.insert(between, number)
        return between

    def take_out(self, place: bytes) -> int | None:
        """Takes a row out; returns how many are before it, None if it is not among them."""
        between = bisect_left(self.places, place)
        if between == len(self.places) or self.places[between] != place:
            return None
        del self.places[between], self.numbers[between]
        return between


class Collected(OnlyEntries):
    """Base of all: values by number, those of the store and of the batch, and lists of numbers."""

    def __init__(self, of: DataType, mark: bytes) -> None:
        super().__init__(of)
        self._of, self._mark, self._lists = of, mark, _Lists(np.zeros(0, dtype=np.int64))
        self._groups: dict[int, Group] = {}

    def open(self, ranges: EntryRanges, state: State) -> State:
        self.ranges = ranges
        groups = np.flatnonzero(ranges.stored).tolist()
        rows: list[tuple[bytes, bytes]] = []
        ends = [0]
        for group in groups:
            start = ranges.prefixes[group] + self._mark
            rows += ranges.kv.between(start, prefix_end(start))
            ends.append(len(rows))
        names, numbers = [name for name, _ in rows], np.arange(len(rows))
        lists = np.zeros((2, len(ranges.prefixes)), dtype=np.int64)
        for group, begin, end in zip(groups, ends, ends[1:], strict=False):
            kept = self._groups[group] = self._empty(group)
            found = self._read(kept, names[begin:end], range(begin, end))
            lists[:, group] = begin, len(found)
            if not isinstance(found, range):  # one that is stands there already
                numbers[begin : begin + len(found)] = found
        self._lists = _Lists(numbers)
        (self.values,) = self.row.decode_columns(pa.array([value for _, value in rows], pa.binary()))
        return lists[0], lists[1]

    def _empty(self, group: int) -> Group:
        """A group before anything is read of it."""
        return Group(self.ranges, group)

    def _counts(self, rows: Rows) -> Mask:
        """Which records are rows at all."""
        return valid(rows.args[0])

    def _read(self, kept: Group, names: list[bytes], numbers: range) -> list[int] | range:
        """The list of one group, given the names of its stored rows and the numbers of their values."""
        raise NotImplementedError

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        self._prepare(rows)
        first = len(self.values)
        self.values = pa.concat_arrays([self.values, rows.args[0]])
        signs = np.where(self._counts(rows), 1 if rows.sign is None else rows.sign, 0).tolist()
        idents: Sequence[bytes] = [b""] * len(signs) if rows.ident is None else rows.ident.tolist()
        states: list[Stretch] = []
        ended: list[Stretch] = list(zip(*(column.tolist() for column in start), strict=True))
        for group, (begin, end) in enumerate(zip(segments.starts.tolist(), segments.ends.tolist(), strict=True)):
            if begin == end:
                continue
            now = ended[group]
            kept = self._groups.get(group) or self._empty(group)
            self.changed[group] = kept
            for at in range(begin, end):
                if signs[at] > 0:
                    now = self._add(kept, now, at, first + at, idents[at])
                elif signs[at] < 0:
                    now = self._remove(kept, now, at, idents[at])
                states.append(now)
            ended[group] = now
        return _columns(states), _columns(ended)

    def _prepare(self, rows: Rows) -> None:
        """Computes what is needed of all records."""
        raise NotImplementedError

    def _add(self, kept: Group, now: Stretch, at: int, number: int, ident: bytes) -> Stretch:
        """The list after the record `at`, whose value has this number."""
        raise NotImplementedError

    def _remove(self, kept: Group, now: Stretch, at: int, ident: bytes) -> Stretch:
        """The list after the row `ident` has been taken back by the record `at`."""
        raise NotImplementedError

    def results(self, state: State) -> pa.Array:
        begin, length = state
        return self._lists.column(begin, length, self.values)


class CollectListColumns(Collected):
    """The values by (event time, arrival), without nulls. `Group.places` are the names of the rows."""

    def __init__(self, of: DataType) -> None:
        super().__init__(of, PLACE)

    def _read(self, kept: Group, names: list[bytes], numbers: range) -> range:
        kept.places = names
        return numbers

    def _prepare(self, rows: Rows) -> None:
        packed = np.stack([rows.time, rows.arrival], axis=1).astype(">u8").tobytes()
        self._suffixes = [PLACE + packed[at : at + _PLACE] for at in range(0, len(packed), _PLACE)]

    def _add(self, kept: Group, now: Stretch, at: int, number: int, ident: bytes) -> Stretch:
        suffix, places = self._suffixes[at], kept.places
        name = kept.prefix + suffix
        kept.added[suffix] = number
        if ident:
            kept.identified(ident, suffix[len(PLACE) :])
        if not places or name > places[-1]:
            places.append(name)
            return self._lists.appended(now, number)
        between = bisect_left(places, name)
        places.insert(between, name)
        return self._lists.inserted(now, between, number)

    def _remove(self, kept: Group, now: Stretch, at: int, ident: bytes) -> Stretch:
        place = kept.taken(ident)
        if place is None:
            return now
        kept.delete(PLACE + place)
        between = bisect_left(kept.places, kept.prefix + PLACE + place)
        del kept.places[between]
        return self._lists.without(now, between)


class CollectSetColumns(Collected):
    """Each value once, in the order of first appearance, without nulls.

    `Group.rows` has the arrivals of each value's rows, by the value's order bytes, with the numbers of their values;
    for a stream, only the first row. `Group.places` are the arrivals of the first rows.
    """

    def __init__(self, of: DataType) -> None:
        super().__init__(of, VALUE)

    def _read(self, kept: Group, names: list[bytes], numbers: range) -> list[int]:
        first, begin = [], len(kept.prefix) + len(VALUE)
        for name, number in zip(names, numbers, strict=True):
            value, arrival = name[begin:-_ARRIVAL], name[-_ARRIVAL:]
            if value not in kept.rows:
                kept.rows[value] = {}
                first.append((arrival, number))
            kept.rows[value][arrival] = number
        first.sort()
        kept.places = [arrival for arrival, _ in first]
        return [number for _, number in first]

    def _prepare(self, rows: Rows) -> None:
        there = np.flatnonzero(valid(rows.args[0]))
        values, index = ordered(self._of, rows.args[0].take(pa.array(there)))
        self._value = [b""] * len(rows.time)
        for at, value in zip(there.tolist(), index.tolist(), strict=True):
            self._value[at] = values[value]
        packed = rows.arrival.astype(">u8").tobytes()
        self._arrivals = [packed[at : at + _ARRIVAL] for at in range(0, len(packed), _ARRIVAL)]

    def _add(self, kept: Group, now: Stretch, at: int, number: int, ident: bytes) -> Stretch:
        value, arrival = self._value[at], self._arrivals[at]
        known = kept.rows.get(value)
        if known and not ident:
            return now
        kept.added[VALUE + value + arrival] = number
        if ident:
            kept.identified(ident, arrival)
        if known:
            shown, last = next(iter(known)), next(reversed(known))
            known[arrival] = number
            if arrival < last:  # a row that comes back stands before those after it
                kept.rows[value] = dict(sorted(known.items()))
            if arrival > shown:
                return now
            now = self._hide(kept, now, shown)
        else:
            kept.rows[value] = {arrival: number}
        return self._show(kept, now, arrival, number)

    def _show(self, kept: Group, now: Stretch, arrival: bytes, number: int) -> Stretch:
        """The list with a value where the first of its rows has come."""
        kept.added[PLACE + arrival] = number
        between = bisect_left(kept.places, arrival)
        kept.places.insert(between, arrival)
        return self._lists.inserted(now, between, number)

    def _hide(self, kept: Group, now: Stretch, arrival: bytes) -> Stretch:
        """The list without the value at a place."""
        kept.delete(PLACE + arrival)
        between = bisect_left(kept.places, arrival)
        del kept.places[between]
        return self._lists.without(now, between)

    def _remove(self, kept: Group, now: Stretch, at: int, ident: bytes) -> Stretch:
        arrival = kept.taken(ident)
        if arrival is None:
            return now
        value, places = self._value[at], kept.places
        rows = kept.rows.get(value, {})
        rows.pop(arrival, None)
        kept.delete(VALUE + value + arrival)
        between = bisect_left(places, arrival)
        if between == len(places) or places[between] != arrival:
            return now  # another row has shown the value
        now = self._hide(kept, now, arrival)
        return self._show(kept, now, *next(iter(rows.items()))) if rows else now


def _columns(states: Sequence[Stretch]) -> State:
    found: Int64s = np.array(states, dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]
