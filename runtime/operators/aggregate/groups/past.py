"""What has changed a group, and when: how a group with a complete history gets back to an earlier time.

An entry has a time, the identity of a row of the table, and the row in the group before and after that time. From the
newest rows of a group, those of an earlier time follow: each later entry is undone.

Layout, beside the groups of the aggregate (root: as in `state`; numbers are eight bytes, big endian)::

    root "h" width span group time ident    an entry (`RowCodec`): is there a row before, since when it is valid, its
                                            arrival; is there one after, its arrival; the calls' arguments for both
    root "p" group ident                    the arrival of the group's newest row of this identity, if arrivals matter

Entries lie by spans of ``2 ** width`` ms (the width is one byte), so that those before the retention are forgotten as a
whole. After a change of the retention, there are entries of two widths for a while.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Aggregate
from vsc.plan.types import BIGINT, BOOLEAN
from vsc.runtime.operators.columns.flow import taken
from vsc.runtime.records import Int64s
from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root
from vsc.runtime.state.rows import RowCodec

__all__ = ["NOWHERE", "Changed", "Entry", "Past", "Row"]

NOWHERE: Final = -1
"""The place of a row that is not there."""

_NUMBER: Final = struct.Struct(">Q")
_MOST_SPANS: Final = 32
_HEAD: Final = (BOOLEAN, BIGINT, BIGINT, BOOLEAN, BIGINT)


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
    """Changed entries: of which group, when, of which row; for the rows before and after their places (`NOWHERE`: none)
    and arrivals, and since when those before are valid."""

    group: Sequence[bytes]
    time: Int64s
    ident: Sequence[bytes]
    before: Int64s
    since: Int64s
    came: Int64s
    after: Int64s
    came_after: Int64s

    @staticmethod
    def of(entries: Mapping[tuple[bytes, int, bytes], Entry]) -> Changed:
        """Entries by group, time and identity."""
        groups, times, idents = zip(*entries, strict=True) if entries else ((), (), ())
        nowhere = Row(NOWHERE, 0, 0)
        rows = [(*(e.before or nowhere), *(e.after or nowhere)) for e in entries.values()]
        before, since, came, after, _, came_after = np.array(rows, dtype=np.int64).reshape(-1, 6).T
        return Changed(groups, np.array(times, dtype=np.int64), idents, before, since, came, after, came_after)


class Past:
    """The entries of one aggregate, and the arguments of those rows that have been read."""

    def __init__(self, kv: OrderedKV, prefix: bytes, operation: Aggregate, retention: int) -> None:
        root = store_root(prefix)
        self._kv, self._entries, self._arrivals = kv, root + b"h", root + b"p"
        args = [arg.type for call in operation.calls for arg in call.args]
        self._codec, self._count = RowCodec([*_HEAD, *args, *args]), len(args)
        self._width = (retention // _MOST_SPANS).bit_length()
        self._widths = sorted({self._width, *self._stored_widths()})
        self._rows: list[tuple[pa.Array, ...]] = []

    def of(self, group: bytes, since: int, until: int, first: int) -> dict[tuple[int, bytes], Entry]:
        """The entries of a group from `since` to `until`, by time and identity. Their rows have places from `first` on:
        before and after, entry by entry."""
        keys: list[tuple[int, bytes]] = []
        data: list[bytes] = []
        for width in self._widths:
            for span in range(since >> width, (until >> width) + 1):
                prefix = self._prefix(width, span) + group
                for key, value in self._kv.scan(prefix + _NUMBER.pack(since), prefix_end(prefix)):
                    (time,) = _NUMBER.unpack_from(key, len(prefix))
                    keys.append((time, key[len(prefix) + _NUMBER.size :]))
                    data.append(value)
        columns = self._codec.decode_columns(pa.array(data, pa.binary()))
        head, args = columns[: len(_HEAD)], columns[len(_HEAD) :]
        turn = np.arange(2 * len(data)).reshape(2, -1).T.reshape(-1)
        both = [pa.concat_arrays([args[i], args[self._count + i]]) for i in range(self._count)]
        self._rows.append(tuple(taken(both, turn)))
        found = {}
        for n, (key, had, at, came, has, then) in enumerate(zip(keys, *(c.to_pylist() for c in head), strict=True)):
            place = first + 2 * n
            found[key] = Entry(Row(place, at, came) if had else None, Row(place + 1, key[0], then) if has else None)
        return found

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
        parts: Iterable[Changed],
        args: Sequence[pa.Array],
        arrivals: Mapping[tuple[bytes, bytes], int | None],
        forgotten: tuple[int, int],
    ) -> None:
        """Writes changed entries (those without rows are removed), whose rows have their arguments in `args`, and
        arrivals (None: there is none any more). `forgotten`: before which time the history was forgotten until now, and
        is from now on."""
        puts: list[tuple[bytes, bytes]] = []
        deletes: list[bytes] = []
        for part in parts:
            self._write(part, args, forgotten[1], puts, deletes)
        for (group, ident), arrival in arrivals.items():
            key = self._arrivals + group + ident
            if arrival is None:
                deletes.append(key)
            else:
                puts.append((key, _NUMBER.pack(arrival)))
        ranges = []
        for width in self._widths:
            before, now = (max(time, 0) >> width for time in forgotten)
            if now > before:
                ranges.append((self._prefix(width, 0), self._prefix(width, now)))
        self._kv.write(puts, deletes, ranges)

    def _write(
        self, part: Changed, args: Sequence[pa.Array], begin: int, puts: list[tuple[bytes, bytes]], deletes: list[bytes]
    ) -> None:
        keys = self._keys(part, self._width)
        for width in self._widths:
            deletes += self._keys(part, width) if width != self._width else []
        had, has = part.before >= 0, part.after >= 0
        head = [pa.array(column) for column in (had, part.since, part.came, has, part.came_after)]
        rows = self._codec.encode_columns([*head, *taken(args, part.before), *taken(args, part.after)], len(keys))
        for key, row, is_there, is_kept in zip(
            keys, rows.to_pylist(), (had | has).tolist(), (part.time >= begin).tolist(), strict=True
        ):
            if not is_there:
                deletes.append(key)
            elif is_kept:
                puts.append((key, row))

    def _keys(self, part: Changed, width: int) -> list[bytes]:
        pack, start = _NUMBER.pack, self._entries + bytes((width,))
        whole = zip(part.group, (part.time >> width).tolist(), part.time.tolist(), part.ident, strict=True)
        return [start + pack(span) + group + pack(time) + ident for group, span, time, ident in whole]

    def _prefix(self, width: int, span: int) -> bytes:
        return self._entries + bytes((width,)) + _NUMBER.pack(span)

    def _stored_widths(self) -> Iterator[int]:
        """The widths of the entries that are stored."""
        width, end = 0, prefix_end(self._entries)
        while (first := next(iter(self._kv.scan(self._entries + bytes((width,)), end)), None)) is not None:
            yield first[0][len(self._entries)]
            width = first[0][len(self._entries)] + 1
