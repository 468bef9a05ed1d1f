"""``collect_top`` and ``collect_last`` in a batch, with the same entries as `aggregate.functions.top`.

Of a group's stored rows only the first ones are read: as many as are collected and, of a table, one more for each
record of the batch, which can take at most one back. So what is read always has the first ones, and a row of the batch
may stand behind it although others come before.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pyarrow as pa

from vsc.plan.types import DataType
from vsc.runtime.operators.aggregate.functions.collected import PLACE
from vsc.runtime.operators.aggregate.functions.collecting import Collected, Group, Ranked, Stretch
from vsc.runtime.operators.aggregate.functions.states import EntryRanges, Rows, State, valid
from vsc.runtime.operators.aggregate.functions.top import Top
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.records import Mask
from vsc.runtime.state.kv_base import prefix_end
from vsc.runtime.values import to_values

__all__ = ["CollectTopColumns"]


class _Rows(Ranked):
    """The first rows of a group. `rest`: those not read."""

    __slots__ = ("rest",)

    def __init__(self, ranges: EntryRanges, group: int) -> None:
        super().__init__(ranges, group)
        self.rest: Iterator[tuple[bytes, bytes]] | None = None
        if ranges.stored[group]:
            start = ranges.prefixes[group] + PLACE
            self.rest = ((row[len(start) :], data) for row, data in ranges.kv.scan(start, prefix_end(start)))

    def read(self, count: int, data: list[bytes], known: int) -> None:
        """Reads so many more; their values go to `data`, which stands behind the `known` ones."""
        if self.rest is None:
            return
        found = list(islice(self.rest, count))
        if len(found) < count:
            self.rest = None
        self.places += [place for place, _ in found]
        first = known + len(data)
        self.numbers += range(first, first + len(found))
        data += [value for _, value in found]


class CollectTopColumns(Collected):
    """The values of the first rows, nulls included; a row without an ordering value is none."""

    def __init__(self, of: DataType, top: Top, table: bool) -> None:
        super().__init__(of, PLACE)
        self._top, self._table = top, table

    def _empty(self, group: int) -> Group:
        return _Rows(self.ranges, group)

    def open(self, ranges: EntryRanges, state: State) -> State:
        self.ranges = ranges
        data: list[bytes] = []
        shown = np.zeros((2, len(ranges.prefixes)), dtype=np.int64)
        for group in np.flatnonzero(ranges.stored).tolist():
            kept = self._groups[group] = _Rows(ranges, group)
            kept.read(self._top.count, data, 0)
            shown[:, group] = self._lists.of(self._top.shown(kept.numbers))
        self.values = self._decoded(data)
        return shown[0], shown[1]

    def _decoded(self, data: list[bytes]) -> pa.Array:
        (values,) = self.row.decode_columns(pa.array(data, pa.binary()))
        return values

    def fold(self, start: State, segments: Segments, rows: Rows) -> tuple[State, State]:
        if self._table:
            many = (segments.ends - segments.starts).tolist()
            data: list[bytes] = []
            for group, kept in self._groups.items():
                assert isinstance(kept, _Rows)
                kept.read(many[group], data, len(self.values))
            self.values = pa.concat_arrays([self.values, self._decoded(data)])
        return super().fold(start, segments, rows)

    def _counts(self, rows: Rows) -> Mask:
        return valid(rows.args[1])

    def _prepare(self, rows: Rows) -> None:
        order, arrivals = to_values(rows.args[1], self._top.by), rows.arrival.tolist()
        place = self._top.place
        self._places = [b"" if v is None else place(v, at) for v, at in zip(order, arrivals, strict=True)]

    def _add(self, kept: Group, now: Stretch, at: int, number: int, ident: bytes) -> Stretch:
        assert isinstance(kept, _Rows)
        place, places, count = self._places[at], kept.places, self._top.count
        if not self._table and len(places) == count and place > places[-1]:
            return now
        kept.added[PLACE + place] = number
        if self._table:
            kept.identified(ident, place)
        between = kept.insert(place, number)
        if not self._table and len(places) > count:
            kept.delete(PLACE + places.pop())
            kept.numbers.pop()
        return self._lists.of(self._top.shown(kept.numbers)) if between < count else now

    def _remove(self, kept: Group, now: Stretch, at: int, ident: bytes) -> Stretch:
        assert isinstance(kept, _Rows)
        place = kept.taken(ident)
        if place is None:
            return now
        kept.delete(PLACE + place)
        between = kept.take_out(place)
        if between is None or between >= self._top.count:  # it has not been read, or is not among the first
            return now
        return self._lists.of(self._top.shown(kept.numbers))
