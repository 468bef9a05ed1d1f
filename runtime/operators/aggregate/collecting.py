"""``collect_list`` and ``collect_set`` in a batch, with the same entries as `aggregate.collected`.

A group's rows are read once a batch. Each record changes the list of its group; only rows that were added or removed
are written. So the cost of a record does not grow with its group, except for the list that it returns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from vsc.plan.types import DataType
from vsc.runtime.operators.aggregate.collected import IDENT, PLACE, VALUE
from vsc.runtime.operators.aggregate.distinct import ordered
from vsc.runtime.operators.aggregate.lists import Lists, Stretch
from vsc.runtime.operators.aggregate.states import Beside, Rows, State, Writes, valid
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.kv_base import prefix_end
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.values import arrow_type

__all__ = ["CollectListColumns", "CollectSetColumns"]

_ARRIVAL, _PLACE = 8, 16
"""The sizes in bytes of an arrival, and of an event time with an arrival."""


@dataclass(slots=True)
class _Kept:
    """The rows of one group: the `places` of those in its list, in order; the place of each row by identity.

    `added` and `gone` are the batch's changes: entries by suffix, with the number of the value (-1: none).
    """

    places: list[bytes] = field(default_factory=list)
    idents: dict[bytes, list[bytes]] = field(default_factory=dict)
    added: dict[bytes, int] = field(default_factory=dict)
    gone: set[bytes] = field(default_factory=set)
    rows: dict[bytes, dict[bytes, int]] = field(default_factory=dict)

    def put(self, suffix: bytes, number: int = -1) -> None:
        self.gone.discard(suffix)
        self.added[suffix] = number

    def delete(self, suffix: bytes) -> None:
        self.added.pop(suffix, None)
        self.gone.add(suffix)

    def identified(self, ident: bytes, place: bytes) -> None:
        """Notes that the row `ident` is at `place`."""
        self.idents.setdefault(ident, []).append(place)
        self.put(IDENT + ident + place)

    def taken(self, ident: bytes) -> bytes | None:
        """Removes the row `ident` and returns its place."""
        places = self.idents.get(ident)
        if not places:
            return None
        place = min(places)
        places.remove(place)
        self.delete(IDENT + ident + place)
        return place


class _Collected:
    """Base of both: values by number, those of the store and of the batch, and lists of numbers."""

    _mark = PLACE

    def __init__(self, of: DataType, table: bool) -> None:
        self._of, self._table = of, table
        self._row = RowCodec([of])
        self._lists = Lists()
        self._values = pa.array([], arrow_type(of))
        self._beside: Beside | None = None
        self._kept: dict[int, _Kept] = {}

    def load(self, cells: Sequence[pa.Array]) -> State:
        """Empty: there are no cells (see `open`)."""
        return ()

    def open(self, beside: Beside, state: State) -> State:
        self._beside = beside
        data: list[bytes] = []
        found = np.zeros((2, len(beside.prefixes)), dtype=np.int64)
        for group in np.flatnonzero(beside.stored).tolist():
            found[:, group] = self._read(group, beside, data)
        (self._values,) = self._row.decode_columns(pa.array(data, pa.binary()))
        return found[0], found[1]

    def _read(self, group: int, beside: Beside, data: list[bytes]) -> Stretch:
        """The list of one group, whose rows it reads; `data` are the rows of the values."""
        raise NotImplementedError

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        self._prepare(rows)
        first = len(self._values)
        self._values = pa.concat_arrays([self._values, rows.args[0]])
        signs = np.where(valid(rows.args[0]), 1 if rows.sign is None else rows.sign, 0).tolist()
        idents: Sequence[bytes] = [b""] * len(signs) if rows.ident is None else rows.ident.tolist()
        states: list[Stretch] = []
        ended: list[Stretch] = list(zip(*(column.tolist() for column in start), strict=True))
        for group, (begin, end) in enumerate(zip(segments.starts.tolist(), segments.ends.tolist(), strict=True)):
            if begin == end:
                continue
            now = ended[group]
            kept = self._kept.setdefault(group, _Kept())
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

    def _add(self, kept: _Kept, now: Stretch, at: int, number: int, ident: bytes) -> Stretch:
        """The list after the record `at`, whose value has this number."""
        raise NotImplementedError

    def _remove(self, kept: _Kept, now: Stretch, at: int, ident: bytes) -> Stretch:
        """The list after the row `ident` has been taken back by the record `at`."""
        raise NotImplementedError

    def results(self, state: State) -> pa.Array:
        begin, length = state
        return self._lists.column(begin, length, self._values)

    def store(self, state: State) -> tuple[pa.Array, ...]:
        return ()

    def writes(self, chosen: Mask) -> Writes:
        assert self._beside is not None
        names: list[bytes] = []
        numbers: list[int] = []
        gone: list[bytes] = []
        for group, kept in self._kept.items():
            if chosen[group]:
                prefix = self._beside.prefixes[group]
                names += [prefix + suffix for suffix in kept.added]
                numbers += kept.added.values()
                gone += [prefix + suffix for suffix in kept.gone]
        places = pa.array(numbers, pa.int64())
        data = self._row.encode_columns([self._values.take(pa.array(np.maximum(places, 0)))], len(names)).to_pylist()
        return [(k, v if n >= 0 else b"") for k, v, n in zip(names, data, numbers, strict=True)], gone


class CollectListColumns(_Collected):
    """The values by (event time, arrival), without nulls."""

    def _read(self, group: int, beside: Beside, data: list[bytes]) -> Stretch:
        kept, prefix, first = _Kept(), beside.prefixes[group], len(data)
        start = prefix if self._table else prefix + PLACE
        for row, value in beside.kv.scan(start, prefix_end(start)):
            suffix = row[len(prefix) + 1 :]
            if row.startswith(PLACE, len(prefix)):
                kept.places.append(suffix)
                data.append(value)
            else:
                kept.idents.setdefault(suffix[:-_PLACE], []).append(suffix[-_PLACE:])
        self._kept[group] = kept
        return self._lists.of(range(first, len(data)))

    def _prepare(self, rows: Rows) -> None:
        packed = np.stack([rows.time, rows.arrival], axis=1).astype(">u8").tobytes()
        self._places = [packed[at : at + _PLACE] for at in range(0, len(packed), _PLACE)]

    def _add(self, kept: _Kept, now: Stretch, at: int, number: int, ident: bytes) -> Stretch:
        place, places = self._places[at], kept.places
        kept.put(PLACE + place, number)
        if ident:
            kept.identified(ident, place)
        if not places or place > places[-1]:
            places.append(place)
            return self._lists.appended(now, number)
        between = bisect_left(places, place)
        places.insert(between, place)
        return self._lists.inserted(now, between, number)

    def _remove(self, kept: _Kept, now: Stretch, at: int, ident: bytes) -> Stretch:
        place = kept.taken(ident)
        if place is None:
            return now
        kept.delete(PLACE + place)
        between = bisect_left(kept.places, place)
        del kept.places[between]
        return self._lists.without(now, between)


class CollectSetColumns(_Collected):
    """Each value once, in the order of first appearance, without nulls.

    `_Kept.rows` has the arrivals of each value's rows, by the value's order bytes, with the numbers of their values;
    for a stream, only the first row. `_Kept.places` are the arrivals of the first rows.
    """

    def _read(self, group: int, beside: Beside, data: list[bytes]) -> Stretch:
        kept, prefix, first = _Kept(), beside.prefixes[group], []
        start = prefix if self._table else prefix + VALUE
        for row, value in beside.kv.scan(start, prefix_end(start)):
            mark, suffix, arrival = (
                row[len(prefix) : len(prefix) + 1],
                row[len(prefix) + 1 : -_ARRIVAL],
                row[-_ARRIVAL:],
            )
            if mark == VALUE:
                of_value = kept.rows.setdefault(suffix, {})
                if not of_value:
                    first.append((arrival, len(data)))
                of_value[arrival] = len(data)
                data.append(value)
            elif row.startswith(IDENT, len(prefix)):
                kept.idents.setdefault(suffix, []).append(arrival)
        first.sort()
        kept.places = [arrival for arrival, _ in first]
        self._kept[group] = kept
        return self._lists.of(number for _, number in first)

    def _prepare(self, rows: Rows) -> None:
        there = np.flatnonzero(valid(rows.args[0]))
        values, index = ordered(self._of, rows.args[0].take(pa.array(there)))
        self._value = [b""] * len(rows.time)
        for at, value in zip(there.tolist(), index.tolist(), strict=True):
            self._value[at] = values[value]
        packed = rows.arrival.astype(">u8").tobytes()
        self._arrivals = [packed[at : at + _ARRIVAL] for at in range(0, len(packed), _ARRIVAL)]

    def _add(self, kept: _Kept, now: Stretch, at: int, number: int, ident: bytes) -> Stretch:
        value, arrival = self._value[at], self._arrivals[at]
        known = kept.rows.get(value)
        if known and not ident:
            return now
        kept.put(VALUE + value + arrival, number)
        if ident:
            kept.identified(ident, arrival)
        if known:
            known[arrival] = number
            return now
        kept.rows[value] = {arrival: number}
        kept.put(PLACE + arrival, number)
        kept.places.append(arrival)
        return self._lists.appended(now, number)

    def _remove(self, kept: _Kept, now: Stretch, at: int, ident: bytes) -> Stretch:
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
        kept.delete(PLACE + arrival)
        del places[between]
        now = self._lists.without(now, between)
        if not rows:
            return now
        following, number = next(iter(rows.items()))
        kept.put(PLACE + following, number)
        between = bisect_left(places, following)
        places.insert(between, following)
        return self._lists.inserted(now, between, number)


def _columns(states: Sequence[Stretch]) -> State:
    found: Int64s = np.array(states, dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]
