"""What an aggregate keeps in its stage's key-value store, beside its result table.

Layout, format version 2 (root: the length of the prefix as two bytes, big endian, and the prefix; times in keys are
eight bytes, big endian, so that they sort)::

    root "m"                      "VSTA", u16 format version, u16 zero, then i64 (little endian): stream time, arrivals,
                                  closed up to, highest window start, open windows, forgotten up to (missing in
                                  version 1, see `migrate`)
    root "g" group                a group's row: its result's time, its rows, the cells of its calls (`RowCodec`)
    root "e" group u16 call ...   an accumulator's entries (`entries`)
    root "e" group time key       a row that windows are computed from (`windows.kept_rows`), instead of these two
    root "c", "h", "p"            of a complete history, see `past`
    root "t" place start group    empty
    root "d" place start group    empty; instead of the row above, for a window whose final result was given before it
                                  moved into a partition that is behind

A group is its encoded key, in a windowed aggregate followed by the window's start (`window_key`). The index of windows
by time has their place in time, their start and the group's key (`index`, `indexed`). The state is complete: it does
not depend on the result table, which may be versioned and refuse or forget results (D18).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from vsc.runtime.operators.aggregate.functions.entries import At
from vsc.runtime.records import Int64s
from vsc.runtime.state.kv_base import OrderedKV, prefix_end, store_root
from vsc.runtime.state.kv_overlay import OverlayKV
from vsc.runtime.state.meta_row import MetaRow
from vsc.runtime.state.moving import Moving, behind

__all__ = [
    "FORMAT_VERSION",
    "SUFFIX",
    "AggregateState",
    "WindowKey",
    "Windows",
    "migrate",
    "moving",
    "window_key",
    "window_keys",
]

FORMAT_VERSION: Final = 2
SUFFIX: Final = b"a"
"""The suffix that makes a node's prefix the root of its aggregate."""

_META: Final = MetaRow(b"VSTA", FORMAT_VERSION, "the state of an aggregate", (-1, 0, -1, -1, 0, -1))
_BEFORE: Final = MetaRow(b"VSTA", 1, "the state of an aggregate", (-1, 0, -1, -1, 0))
_NUMBER: Final = struct.Struct(">Q")
_PLACE: Final = struct.Struct(">QQ")


WindowKey = tuple[int, int, bytes]
"""A window: its place in time, its start, its group's encoded key."""


def window_key(key: bytes, start: int) -> bytes:
    """The window of the group `key` that begins at `start`, as a group."""
    return key + _NUMBER.pack(start)


def window_keys(keys: Sequence[bytes], starts: Int64s) -> list[bytes]:
    """The windows of these groups that begin then, as groups."""
    packed, size = starts.astype(">u8").tobytes(), _NUMBER.size
    return [key + packed[at : at + size] for key, at in zip(keys, range(0, len(packed), size), strict=True)]


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows: their places in time, their starts, their groups' encoded keys."""

    place: Int64s
    start: Int64s
    kb: list[bytes]

    def __len__(self) -> int:
        return len(self.kb)

    def names(self) -> list[bytes]:
        """Each as a group."""
        return window_keys(self.kb, self.start)

    def take(self, rows: Int64s) -> Windows:
        """The windows at `rows`."""
        return Windows(self.place[rows], self.start[rows], [self.kb[row] for row in rows.tolist()])

    def behind(self, prefix: bytes) -> list[bytes]:
        """Their rows in an index under `prefix`."""
        packed, size = np.stack([self.place, self.start], axis=1).astype(">u8").tobytes(), _PLACE.size
        return [
            prefix + packed[at : at + size] + kb for at, kb in zip(range(0, len(packed), size), self.kb, strict=True)
        ]

    @staticmethod
    def read(rows: Sequence[bytes]) -> Windows:
        """The windows with these rows, without the prefix of an index."""
        size = _PLACE.size
        packed = np.frombuffer(b"".join([row[:size] for row in rows]), dtype=">u8").astype(np.int64).reshape(-1, 2)
        return Windows(packed[:, 0], packed[:, 1], [row[size:] for row in rows])


class AggregateState:
    """The groups of one aggregate, its clock and its counters. `numbered`: arrivals distinguish rows.

    `stream_time` is the highest time so far (-1 at first), `arrivals` the number of rows numbered, `closed` the place
    up to which windows are closed (-1: none), `highest` the highest window start ever written, `open` the number of
    windows not yet closed, `forgotten` the place up to which windows have been removed (-1: none).
    """

    __slots__ = (
        "_base",
        "_kept",
        "_meta",
        "_numbered",
        "arrivals",
        "closed",
        "entries",
        "forgotten",
        "given",
        "groups",
        "highest",
        "kv",
        "open",
        "stream_time",
        "times",
    )
    stream_time: int
    closed: int

    def __init__(self, kv: OrderedKV, prefix: bytes, numbered: bool) -> None:
        """Open the state that `kv` has under `prefix`. Raises StateError if something else is stored there."""
        root = store_root(prefix)
        self._base, self.kv = kv, OverlayKV(kv)
        self._numbered = numbered
        self._meta = root + b"m"
        self.groups, self.entries = root + b"g", root + b"e"
        self.times, self.given = root + b"t", root + b"d"
        self._kept = _META.read(kv.get(self._meta))
        self._reset()

    @property
    def below(self) -> OrderedKV:
        """The store below `kv`, without the writes that wait in it: for whole batches, in which none may wait."""
        return self._base

    def get_many(self, groups: Sequence[bytes]) -> list[bytes | None]:
        """The rows of many groups, None for groups without one."""
        return self.kv.get_many([self.groups + group for group in groups])

    def write(
        self,
        puts: list[tuple[bytes, bytes]],
        deletes: Iterable[bytes] = (),
        ranges: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Writes rows and counters at once, past `kv`, in which no writes may wait: for whole batches."""
        self._base.write(puts + self._changed_meta(), deletes, ranges)

    def clear(self, prefix: bytes) -> None:
        """Removes all rows that begin with `prefix`."""
        end = prefix_end(prefix)
        assert end is not None
        self.kv.write((), (), [(prefix, end)])

    def close_all(self, due: Callable[[int], int]) -> list[tuple[int, WindowKey]]:
        """Takes out the windows that wait for their final result, in the order in which they would close: the place in
        time, and the window. Moves the clock to where all are closed, which is `due` of a place."""
        held = list(map(self.indexed, self.places(self.closed + 1, None)))
        if held:
            last = held[-1][0]
            self.stream_time = max(self.stream_time, due(last))
            self.closed, self.open = max(self.closed, last), 0
        return [(place, (place, start, kb)) for place, start, kb in held]

    def rows(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """All rows that begin with `prefix`."""
        return self.kv.between(prefix, prefix_end(prefix))

    def scope(self, key: bytes, start: int) -> bytes:
        """Where the accumulators of a window of the group `key` keep their entries."""
        return self.entries + window_key(key, start)

    def index(self, place: int, start: int, key: bytes) -> bytes:
        """The row key in the index by time of a window of the group `key`."""
        return self.times + _PLACE.pack(place, start) + key

    def indexed(self, row_key: bytes) -> tuple[int, int, bytes]:
        """The place, start and group key of a row key of an index."""
        at = len(self.times)
        place, start = _PLACE.unpack_from(row_key, at)
        return place, start, row_key[at + _PLACE.size :]

    def places(self, first: int, end: int | None) -> Iterator[bytes]:
        """The row keys of the windows with a place in time from `first` to before `end` (None: no end), in order.

        Without those of `given_places`.
        """
        return self._places(self.times, first, end)

    def given_places(self, first: int, end: int | None) -> Iterator[bytes]:
        """The places of windows whose final result was given before they moved here: only `emit final` has any."""
        return self._places(self.given, first, end)

    def arrive(self, time: int, ident: bytes = b"") -> At:
        """The place of the next row."""
        self.arrivals += self._numbered
        return At(time, self.arrivals, ident)

    def arrive_many(self, count: int) -> Int64s:
        """The arrivals of the next `count` rows."""
        found = self.arrivals_of(count)
        self.arrivals += count * self._numbered
        return found

    def arrivals_of(self, count: int) -> Int64s:
        """What `arrive_many` would return, without using up the numbers."""
        return self.arrivals + self._numbered * (1 + np.arange(count, dtype=np.int64))

    def _places(self, index: bytes, first: int, end: int | None) -> Iterator[bytes]:
        if end is not None and end <= first:
            return
        stop = prefix_end(index) if end is None else index + _NUMBER.pack(end)
        for row_key, _ in self.kv.scan(index + _NUMBER.pack(first), stop):
            yield row_key

    def _changed_meta(self) -> list[tuple[bytes, bytes]]:
        now = (self.stream_time, self.arrivals, self.closed, self.highest, self.open, self.forgotten)
        if now == self._kept:
            return []
        self._kept = now
        return [(self._meta, _META.row(*now))]

    def _reset(self) -> None:
        self.stream_time, self.arrivals, self.closed, self.highest, self.open, self.forgotten = self._kept


def migrate(kv: OrderedKV, root: bytes) -> None:
    """Converts what `kv` has under `root` from format version 1 to 2, which adds up to where windows were removed."""
    meta = kv.get(root + b"m")
    if _BEFORE.is_of(meta):
        kv.write([(root + b"m", _META.row(*_BEFORE.read(meta), -1))])


def moving(final: bool) -> Moving:
    """How the rows move to other partitions. `final`: a window has a result when it closes."""
    keys = {
        b"g": behind(0),
        b"e": behind(0),
        b"c": behind(1 + _NUMBER.size),
        b"h": behind(1 + _NUMBER.size),
        b"p": behind(0),
        b"t": behind(_PLACE.size),
        b"d": behind(_PLACE.size),
    }
    return Moving(keys, None, _merged_final, _opened, _letter) if final else Moving(keys, None, _merged, _opened)


def _merged(metas: Sequence[bytes], counts: tuple[int, ...]) -> bytes:
    time, arrivals, closed, highest, _, forgotten = zip(*map(_META.read, metas), strict=True)
    most = map(max, (time, arrivals, closed, highest))
    return _META.row(*most, *(counts or (0,)), min(forgotten))


def _merged_final(metas: Sequence[bytes], counts: tuple[int, ...]) -> bytes:
    """A window for which one partition has not given a result yet is open, even if another partition is ahead."""
    closed = min(_META.read(meta)[2] for meta in metas)
    time, arrivals, _, highest, is_open, forgotten = _META.read(_merged(metas, counts))
    return _META.row(time, arrivals, closed, highest, is_open, min(forgotten, closed))


def _letter(meta: bytes | None, letter: bytes, rest: bytes) -> bytes:
    """Another one for the index row of a window whose result has been given: it does not close again."""
    return b"d" if letter == b"t" and not _is_open(meta, rest) else letter


def _opened(meta: bytes | None, letter: bytes, rest: bytes, value: bytes) -> tuple[int, ...]:
    return (int(letter == b"t" and _is_open(meta, rest)),)


def _is_open(meta: bytes | None, rest: bytes) -> bool:
    return bool(_PLACE.unpack_from(rest)[0] > _META.read(meta)[2])
