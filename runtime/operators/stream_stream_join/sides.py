"""One side of a join of streams in one batch: its records, and those that it had before, as far as they are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Column, Schema, StreamStreamJoin, WithinAggregate
from vsc.runtime.operators.columns.flow import Flow, taken
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.stream_stream_join.pairs import Rows
from vsc.runtime.operators.tables.pool import Pool
from vsc.runtime.records import Int64s
from vsc.runtime.state.joined import Joined, RecordKey, packed_each, unpacked
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.values import arrow_type

__all__ = ["Held", "Layout", "Side", "bucket_width", "kept_columns", "load", "placed"]


def bucket_width(operation: StreamStreamJoin | WithinAggregate) -> int:
    """As long as partners may be apart, so that they are in two buckets at most."""
    return operation.before + operation.after + 1


def kept_columns(left: Schema, right: Schema) -> tuple[Column, ...]:
    """The columns that the state keeps of both sides: a record has nulls in those of the other one."""
    sides = (("left", left), ("right", right))
    return tuple(Column(f"{name}.{column.name}", column.type) for name, schema in sides for column in schema.value)


class Layout:
    """How records of both sides are kept as rows."""

    def __init__(self, left: Schema, right: Schema) -> None:
        self._columns = kept_columns(left, right)
        self._own = slice(0, len(left.value)), slice(len(left.value), len(self._columns))
        self.codec = RowCodec([column.type for column in self._columns])

    def all(self, side: int, values: Sequence[pa.Array], count: int) -> tuple[pa.Array, ...]:
        """The columns of both sides, given those of one."""
        found = [pa.nulls(count, arrow_type(column.type)) for column in self._columns]
        found[self._own[side]] = values
        return tuple(found)

    def own(self, side: int, columns: Sequence[pa.Array]) -> tuple[pa.Array, ...]:
        """The columns of one side, given those of both."""
        return tuple(columns[self._own[side]])

    def some(self, side: int, rows: pa.BinaryArray, wanted: Sequence[int]) -> tuple[pa.Array, ...]:
        """The `wanted` columns of one side, of rows."""
        return self.codec.decode_columns(rows, [self._own[side].start + number for number in wanted])


@dataclass(frozen=True, slots=True)
class Held:
    """Records of a side that wait: where, the numbers of their keys, their times and rows."""

    place: Int64s
    places: tuple[RecordKey, ...]
    key: Int64s
    time: Int64s
    rows: pa.BinaryArray

    @staticmethod
    def of(found: Sequence[tuple[RecordKey, bytes]], space: KeySpace) -> Held:
        """The records that the state has at these places."""
        place, time, rows = unpacked([value for _, value in found])
        key = space.encoded([where.key for where, _ in found])[place]
        return Held(place, tuple(where for where, _ in found), key, time, rows)


@dataclass(frozen=True, slots=True)
class Side:
    """One side: the records of the batch as a flow, and in `rows` also those that it had, whose rows are `stored`.

    Its `held` records are those of the state that may come out in this batch.
    """

    number: int
    flow: Flow
    rows: Rows
    stored: pa.BinaryArray
    held: Held

    def place(self, row: Int64s) -> Int64s:
        """The places in `columns` of rows of the side."""
        return np.where(row < self.rows.stored, row, row + len(self.held.key))

    def held_place(self, number: Int64s) -> Int64s:
        """The places in `columns` of held records."""
        return self.rows.stored + number

    def columns(self, layout: Layout, places: Int64s) -> tuple[pa.Array, ...]:
        """The value columns of records at these places, null where a place is negative."""
        stored = pa.concat_arrays([self.stored, self.held.rows])
        fresh = layout.all(self.number, self.flow.values, len(self.flow))
        return layout.own(self.number, Pool(layout.codec, stored, fresh).take(places))

    def times(self, places: Int64s) -> Int64s:
        """The times of records at these places."""
        own = self.rows.time
        every = np.concatenate([own[: self.rows.stored], self.held.time, own[self.rows.stored :], [0]])
        found: Int64s = every[places]
        return found


def load(
    state: Joined,
    operation: StreamStreamJoin,
    flows: Sequence[Flow],
    arrivals: Sequence[Int64s],
    held: Sequence[Held],
    newest: Sequence[int],
) -> tuple[tuple[Side, Side], dict[RecordKey, bytes]]:
    """Both sides, and the buckets that were read: in which partners of the flows' records may be, and into which they
    themselves go. `newest`: by side, the highest time of the records that are there."""
    space = flows[0].space
    places = _places(state, operation, flows, newest)
    read = {place: value for place, value in zip(places, state.rows(places), strict=True) if value is not None}
    sides = []
    for number, (flow, arrival) in enumerate(zip(flows, arrivals, strict=True)):
        found = [(place, value) for place, value in read.items() if place.side == number]
        of, time, rows = unpacked([value for _, value in found])
        key = space.encoded([place.key for place, _ in found])[of]
        stored = Rows(
            np.concatenate([key, flow.key]),
            np.concatenate([time, flow.time]),
            np.concatenate([np.full(len(key), -1, dtype=np.int64), arrival]),
            len(key),
        )
        sides.append(Side(number, flow, stored, rows, held[number]))
    return (sides[0], sides[1]), read


def _places(
    state: Joined, operation: StreamStreamJoin, flows: Sequence[Flow], newest: Sequence[int]
) -> list[RecordKey]:
    """The buckets to read, in order: only those in which there may be records."""
    width, back = bucket_width(operation), (operation.before, operation.after)
    asked: dict[int, list[tuple[Int64s, Int64s]]] = {0: [], 1: []}
    for side, flow in enumerate(flows):
        partners = np.maximum(flow.time - back[side], 0), flow.time + operation.ahead[side]
        for of, time in ((1 - side, partners[0]), (1 - side, partners[1]), (side, flow.time)):
            bucket = time // width
            there = (bucket * width <= newest[of]) & ((bucket + 1) * width > state.floor[of])
            asked[of].append((bucket[there], flow.key[there]))
    names, found = flows[0].space.keys, []
    for of, parts in asked.items():
        buckets, keys = (np.concatenate(part) for part in zip(*parts, strict=True))
        order, first = grouped(buckets, keys)
        every = zip(buckets[order][first].tolist(), keys[order][first].tolist(), strict=True)
        found += [RecordKey(of, bucket, names[key]) for bucket, key in every]
    return found


def grouped(number: Int64s, key: Int64s) -> tuple[Int64s, Int64s]:
    """What brings together equal pairs of numbers and keys, else in order; and where, in that order, each begins."""
    order = np.lexsort((key, number))
    number, key = number[order], key[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (np.diff(number) != 0) | (np.diff(key) != 0)
    return order, np.flatnonzero(begins)


def placed(
    side: Side, layout: Layout, rows: Int64s, number: Int64s, before: Mapping[RecordKey, bytes]
) -> list[tuple[RecordKey, bytes]]:
    """Records of the batch, each in its place, which has its key and `number`, behind those that are there `before`."""
    flow = side.flow
    order, first = grouped(number[rows], flow.key[rows])
    rows = rows[order]
    names, at = flow.space.keys, rows[first]
    every = zip(number[at].tolist(), flow.key[at].tolist(), strict=True)
    places = [RecordKey(side.number, n, names[key]) for n, key in every]
    columns = layout.all(side.number, taken(flow.values, rows), len(rows))
    encoded = layout.codec.encode_columns(columns, len(rows))
    return list(zip(places, packed_each([before.get(p) for p in places], first, flow.time[rows], encoded), strict=True))
