"""What has changed a group, and when: how a group with a complete history gets back to an earlier time.

An entry has a time, the identity of a row of the table, and the row in the group before and after that time. From the
newest rows of a group, those of an earlier time follow: each later entry is undone.

Layout, beside the groups of the aggregate (root: as in `state`; numbers are eight bytes, big endian)::

    root "c" width span group last      a chunk: entries of the group, as `packed` has them, of which `last` is the
                                        highest time; all of them are later than those of the chunk before. An entry
                                        (`RowCodec`): the identity; is there a row before, since when it is valid, its
                                        arrival; is there one after, its arrival; the calls' arguments for both
    root "p" group ident                the arrival of the group's newest row of this identity, if arrivals matter

What comes in order is a chunk for each batch and group, or a few; a late entry goes into the chunk of its time. Chunks
lie by spans of ``2 ** width`` ms of `last` (the width is one byte), so that those before the retention are forgotten as
a whole. After a change of the retention, there are chunks of two widths for a while.

Up to checkpoints of format 4, each entry had a row of its own: ``root "h" width span group time ident``, with the
columns of an entry behind the identity. They are read, and become chunks when they change.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Aggregate
from vsc.plan.types import BIGINT, BINARY, BOOLEAN
from vsc.runtime.operators.columns.flow import taken
from vsc.runtime.records import Int64s
from vsc.runtime.state.joined import packed, packed_each, unpacked
from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root
from vsc.runtime.state.rows import RowCodec

__all__ = ["NOWHERE", "Changed", "Entry", "Past", "Row"]

NOWHERE: Final = -1
"""The place of a row that is not there."""

_NUMBER: Final = struct.Struct(">Q")
_MOST_SPANS: Final = 32
_MOST_ENTRIES: Final = 256
"""A late entry reads and writes so many others at most, beside those of its time."""
_HEAD: Final = (BINARY, BOOLEAN, BIGINT, BIGINT, BOOLEAN, BIGINT)


class Row(NamedTuple):
    """A row in a group: the place of its arguments, since when it is valid, its arrival."""

    place: int
    time: int
    arrival: int


class Entry(NamedTuple):
    """The rows of one identity in a group, before a time and after it; None: there is none."""

    before: Row | None
    after: Row | None


@dataclass(frozen=True, slots=True)
class Changed:
    """Changed entries: of which of the `groups`, when, of which row; for the rows before and after their places
    (`NOWHERE`: none) and arrivals, and since when those before are valid."""

    groups: Sequence[bytes]
    group: Int64s
    time: Int64s
    ident: Sequence[bytes]
    before: Int64s
    since: Int64s
    came: Int64s
    after: Int64s
    came_after: Int64s

    @staticmethod
    def of(groups: Sequence[bytes], entries: Mapping[tuple[int, int, bytes], Entry]) -> Changed:
        """Entries by group, time and identity."""
        number, times, idents = zip(*entries, strict=True) if entries else ((), (), ())
        nowhere = Row(NOWHERE, 0, 0)
        rows = [(*(e.before or nowhere), *(e.after or nowhere)) for e in entries.values()]
        before, since, came, after, _, came_after = np.array(rows, dtype=np.int64).reshape(-1, 6).T
        of, at = (np.array(column, dtype=np.int64) for column in (number, times))
        return Changed(groups, of, at, idents, before, since, came, after, came_after)


def _starts(group: Int64s, time: Int64s) -> Int64s:
    """Where chunks begin, of entries by group and time: they have some `_MOST_ENTRIES`, and all of one time."""
    place = np.arange(len(group))
    other = np.append(True, group[1:] != group[:-1])
    begins = other | np.append(True, time[1:] != time[:-1])
    first, same = (np.maximum.accumulate(np.where(mask, place, 0)) for mask in (other, begins))
    block = (same - first) // _MOST_ENTRIES
    return np.flatnonzero(other | np.append(True, block[1:] != block[:-1]))


class _Chunk(NamedTuple):
    """Where a chunk is stored, its highest time, and its entries."""

    key: bytes
    last: int
    value: bytes


class Past:
    """The entries of one aggregate, and the arguments of those rows that have been read."""

    def __init__(self, kv: OrderedKV, prefix: bytes, operation: Aggregate, retention: int) -> None:
        root = store_root(prefix)
        self._kv, self._entries, self._former, self._arrivals = kv, root + b"c", root + b"h", root + b"p"
        args = [arg.type for call in operation.calls for arg in call.args]
        self._codec, self._count = RowCodec([*_HEAD, *args, *args]), len(args)
        self._former_codec = RowCodec([*_HEAD[1:], *args, *args])
        self._width = (retention // _MOST_SPANS).bit_length()
        self._widths = sorted({self._width, *self._stored_widths(self._entries)})
        self._former_widths = list(self._stored_widths(self._former))
        self._rows: list[tuple[pa.Array, ...]] = []
        self._chunks: dict[bytes, list[_Chunk]] = {}
        self._former_keys: dict[tuple[bytes, int, bytes], bytes] = {}

    def of(self, group: bytes, since: int, until: int, first: int) -> dict[tuple[int, bytes], Entry]:
        """The entries of a group from `since` to `until`, by time and identity. Their rows have places from `first` on:
        before and after, entry by entry."""
        rows = self._stored(self._entries, self._widths, group, since, until)
        chunks = [_Chunk(key, _NUMBER.unpack(rest)[0], value) for key, rest, value in rows]
        self._chunks[group] = sorted(chunks, key=lambda chunk: chunk.last)
        _, time, data = unpacked([chunk.value for chunk in chunks])
        if self._former_widths:
            times, more = self._of_former(group, since, until)
            time, data = np.concatenate([time, times]), pa.concat_arrays([data, more])
        asked = np.flatnonzero(time >= since)
        columns = self._codec.decode_columns(data.take(pa.array(asked)))
        head, args = columns[: len(_HEAD)], columns[len(_HEAD) :]
        turn = np.arange(2 * len(asked)).reshape(2, -1).T.reshape(-1)
        both = [pa.concat_arrays([args[i], args[self._count + i]]) for i in range(self._count)]
        self._rows.append(tuple(taken(both, turn)))
        found = {}
        entries = zip(time[asked].tolist(), *(column.to_pylist() for column in head), strict=True)
        for n, (at, ident, had, begin, came, has, then) in enumerate(entries):
            place = first + 2 * n
            before, after = Row(place, begin, came) if had else None, Row(place + 1, at, then) if has else None
            found[at, ident] = Entry(before, after)
        return found

    def _of_former(self, group: bytes, since: int, until: int) -> tuple[Int64s, pa.BinaryArray]:
        """The times and rows of entries that have rows of their own."""
        times: list[int] = []
        idents: list[bytes] = []
        data: list[bytes] = []
        for key, rest, value in self._stored(self._former, self._former_widths, group, since, until):
            (time,), ident = _NUMBER.unpack_from(rest), rest[_NUMBER.size :]
            self._former_keys[group, time, ident] = key
            times.append(time)
            idents.append(ident)
            data.append(value)
        columns = self._former_codec.decode_columns(pa.array(data, pa.binary()))
        rows = self._codec.encode_columns([pa.array(idents, pa.binary()), *columns], len(data))
        return np.array(times, dtype=np.int64), rows

    def _stored(
        self, root: bytes, widths: Sequence[int], group: bytes, since: int, until: int
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        """The rows of a group from `since` on, in the spans up to that of `until`: key, what of it is behind the group,
        value."""
        for width in widths:
            for span in range(since >> width, (until >> width) + 1):
                prefix = self._prefix(root, width, span) + group
                for key, value in self._kv.between(prefix + _NUMBER.pack(since), prefix_end(prefix)):
                    yield key, key[len(prefix) :], value

    @property
    def rows(self) -> Sequence[tuple[pa.Array, ...]]:
        """The arguments of all rows that have been read, in the order of their places."""
        return self._rows

    def arrivals(self, rows: Sequence[tuple[bytes, bytes]]) -> list[int]:
        """The arrivals of the newest rows of groups with these identities; 0 without one."""
        found = self._kv.get_many([self._arrivals + group + ident for group, ident in rows])
        return [0 if data is None else _NUMBER.unpack(data)[0] for data in found]

    def write(
        self,
        in_order: Changed,
        late: Changed,
        args: Sequence[pa.Array],
        arrivals: Mapping[tuple[bytes, bytes], int | None],
        forgotten: tuple[int, int],
    ) -> None:
        """Writes entries that are later than all of their groups, and changed ones of groups that have been read (those
        without rows are removed); their rows have their arguments in `args`. And arrivals (None: there is none any
        more). `forgotten`: before which time the history was forgotten until now, and is from now on."""
        puts, gone = self._changed(late, args, forgotten[1]) if len(late.time) else ({}, [])
        puts |= self._appended(in_order, args, forgotten[1])
        for (group, ident), arrival in arrivals.items():
            key = self._arrivals + group + ident
            if arrival is None:
                gone.append(key)
            else:
                puts[key] = _NUMBER.pack(arrival)
        ranges = []
        widths = ((self._entries, self._widths), (self._former, self._former_widths))
        for root, width in ((root, width) for root, found in widths for width in found):
            before, now = (max(time, 0) >> width for time in forgotten)
            if now > before:
                ranges.append((self._prefix(root, width, 0), self._prefix(root, width, now)))
        self._kv.write(list(puts.items()), [key for key in gone if key not in puts], ranges)

    def _encoded(self, part: Changed, args: Sequence[pa.Array]) -> pa.BinaryArray:
        head = (part.before >= 0, part.since, part.came, part.after >= 0, part.came_after)
        columns = [pa.array(part.ident, pa.binary()), *map(pa.array, head)]
        return self._codec.encode_columns([*columns, *taken(args, part.before), *taken(args, part.after)])

    def _appended(self, part: Changed, args: Sequence[pa.Array], begin: int) -> dict[bytes, bytes]:
        """Chunks of entries that come in order, without those before `begin` and those without rows."""
        kept = np.flatnonzero((part.time >= begin) & ((part.before >= 0) | (part.after >= 0)))
        if not len(kept):
            return {}
        names, number = np.unique(part.group[kept], return_inverse=True)
        order = np.lexsort((part.time[kept], number))
        number, kept = number[order], kept[order]
        time = part.time[kept]
        starts = _starts(number, time)
        last = time[np.append(starts[1:], len(kept)) - 1]
        values = packed_each([None] * len(starts), starts, time, self._encoded(part, args).take(pa.array(kept)))
        groups = [part.groups[of] for of in names[number[starts]].tolist()]
        return dict(zip(map(self._key, groups, last.tolist()), values, strict=True))

    def _changed(self, part: Changed, args: Sequence[pa.Array], begin: int) -> tuple[dict[bytes, bytes], list[bytes]]:
        """The chunks into which changed entries go, and the keys of those that were there."""
        there, rows = ((part.before >= 0) | (part.after >= 0)).tolist(), self._encoded(part, args).to_pylist()
        gone: list[bytes] = []
        of_chunk: dict[tuple[bytes, int], dict[tuple[int, bytes], bytes | None]] = {}
        for number, time, ident, row, is_there in zip(
            part.group.tolist(), part.time.tolist(), part.ident, rows, there, strict=True
        ):
            group = part.groups[number]
            if (former := self._former_keys.get((group, time, ident))) is not None:
                gone.append(former)
            place = bisect_left(self._chunks[group], time, key=lambda chunk: chunk.last)
            of_chunk.setdefault((group, place), {})[time, ident] = row if is_there and time >= begin else None
        puts: dict[bytes, bytes] = {}
        for (group, place), changes in of_chunk.items():
            entries: dict[tuple[int, bytes], bytes | None] = {}
            if place < len(self._chunks[group]):
                chunk = self._chunks[group][place]
                gone.append(chunk.key)
                _, times, known = unpacked([chunk.value])
                (idents,) = self._codec.decode_columns(known, [0])
                entries = dict(
                    zip(zip(times.tolist(), idents.to_pylist(), strict=True), known.to_pylist(), strict=True)
                )
            kept = sorted((at, row) for at, row in (entries | changes).items() if row is not None)
            if kept:
                times = np.array([time for (time, _), _ in kept], dtype=np.int64)
                puts[self._key(group, kept[-1][0][0])] = packed(None, times, [row for _, row in kept])
        return puts, gone

    def _key(self, group: bytes, last: int) -> bytes:
        return self._prefix(self._entries, self._width, last >> self._width) + group + _NUMBER.pack(last)

    @staticmethod
    def _prefix(root: bytes, width: int, span: int) -> bytes:
        return root + bytes((width,)) + _NUMBER.pack(span)

    def _stored_widths(self, root: bytes) -> Iterator[int]:
        """The widths of the rows that are stored under `root`."""
        width, end = 0, prefix_end(root)
        while (first := next(iter(self._kv.scan(root + bytes((width,)), end)), None)) is not None:
            yield first[0][len(root)]
            width = first[0][len(root)] + 1
