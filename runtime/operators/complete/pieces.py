"""What a table with a complete history sends (KIP-914, "Attempt 2"), given its results on intervals of time.

A *piece* is a result that is valid on an interval ``[time, until)``. What is sent is a put for each moment from which
the table would otherwise say something else: so a versioned store that takes what is sent is right as of every time
that it keeps. Where an interval ends, the row from before is put again, if no other put of that time is known.

Pieces of keys whose rows come in order, with intervals that do not end, are judged together; those of other keys one by
one, each against what its key's history has become.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.columns.flow import Flow, chosen, stacked, taken
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.columns.moments import Moments, processing, turns
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.tables.store import VersionedColumns
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.api import NEVER

__all__ = ["Pieces", "sent"]

_NOTHING = -1
"""The number of a missing row."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Results on intervals, in the order of the `event`s that they are for; those of one event and key by time.

    Without `ends`, the key's next piece, of the same event, begins where this one stops. `present`: there is a row.
    """

    event: Int64s
    key: Int64s
    time: Int64s
    until: Int64s
    ends: Mask
    present: Mask
    keys: tuple[pa.Array, ...]
    values: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.event)

    def select(self, mask: Mask) -> Pieces:
        """The pieces where `mask` is true."""
        if mask.all():
            return self
        return Pieces(
            self.event[mask], self.key[mask], self.time[mask], self.until[mask], self.ends[mask], self.present[mask],
            chosen(self.keys, mask), chosen(self.values, mask),
        )  # fmt: skip

    @staticmethod
    def merged(parts: Sequence[tuple[Moments, Pieces]]) -> tuple[Moments, Pieces]:
        """The pieces of several inputs, with the moments of their events, in the order of processing."""
        if len(parts) == 1:
            return parts[0]
        at = Moments.concat([moments for moments, _ in parts])
        order = processing(at)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        first = np.cumsum([0, *(len(moments) for moments, _ in parts)])
        event = rank[np.concatenate([p.event + begin for (_, p), begin in zip(parts, first[:-1], strict=True)])]
        sorting = np.argsort(event, kind="stable")
        every = [pieces for _, pieces in parts]

        def joined(name: str) -> Any:
            return np.concatenate([getattr(pieces, name) for pieces in every])[sorting]

        keys, values = every[0].keys, every[0].values
        for one in every[1:]:
            keys, values = stacked(keys, one.keys), stacked(values, one.values)
        return at.take(order), Pieces(
            event[sorting], joined("key"), joined("time"), joined("until"), joined("ends"), joined("present"),
            taken(keys, sorting), taken(values, sorting),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Puts:
    """What goes out: the pieces because of which it does, times, and places of rows (-1: a tombstone)."""

    piece: Int64s
    time: Int64s
    place: Int64s


def sent(site: Site, at: Moments, space: KeySpace, pieces: Pieces) -> Flow:
    """The changes of the node's table, put into its store; `at` are the moments of the events."""
    store = site.table
    assert isinstance(store, VersionedColumns)
    none = np.zeros(len(at), dtype=np.int64)
    moving = site.moving(Flow(at, none, space, none, none.astype(np.bool_), (), ()))
    earliest = store.earliest(moving)[pieces.event]
    pieces = pieces.select(pieces.until > earliest)
    time = np.maximum(pieces.time, store.earliest(moving)[pieces.event])

    at_piece = at.take(pieces.event)
    flow = Flow(at_piece, pieces.key, space, time, pieces.present, pieces.keys, pieces.values)
    key, since, rows = store.stored_within(pieces.key, time, pieces.until)
    encoded = pa.concat_arrays([rows, store.encoded(flow)]).dictionary_encode()
    result = encoded.indices.fill_null(_NOTHING).to_numpy().astype(np.int64)
    known, of_pieces = result[: len(rows)], result[len(rows) :]

    puts = _puts(len(space.keys), pieces, time, of_pieces, (key, since, known))
    order = np.argsort(pieces.event[puts.piece], kind="stable")
    piece, place = puts.piece[order], puts.place[order]
    event = pieces.event[piece]
    return site.stored(
        Flow(
            site.give(at.take(event), turns(event)), pieces.key[piece], space, puts.time[order], place >= 0,
            taken(pieces.keys, piece), store.decoded(rows, pieces.values, place),
        )
    )  # fmt: skip


def _puts(keys: int, pieces: Pieces, time: Int64s, result: Int64s, stored: tuple[Int64s, Int64s, Int64s]) -> _Puts:
    """What is put for the pieces, whose intervals begin at `time`, given the stored versions of their keys: numbers of
    keys, times, results."""
    order = np.argsort(pieces.key, kind="stable")
    by_key = pieces.key[order]
    first = np.append(True, by_key[1:] != by_key[:-1])[: len(order)]
    key, since, known = stored
    newest, last = np.full(keys, -1, dtype=np.int64), np.full(keys, _NOTHING, dtype=np.int64)
    newest[key], last[key] = since, known  # of a key's versions, the last assignment counts
    before = np.append(-1, time[order][:-1])[: len(order)]
    back = time[order] < np.where(first, newest[by_key], before)
    back |= (pieces.ends & (pieces.until < NEVER))[order]
    late = np.zeros(keys, dtype=np.bool_)
    late[by_key[back]] = True

    was = np.where(first, last[by_key], np.append(_NOTHING, result[order][:-1])[: len(order)])
    piece = order[(result[order] != was) & ~late[by_key]]
    there = len(key) + piece
    in_order = _Puts(piece, time[piece], np.where(pieces.present[piece], there, -1))
    if not late.any():
        return in_order
    loop = _Histories(late, stored)
    mine = order[late[by_key]]
    found = loop.puts(pieces, mine, time, np.where(pieces.present, result, _NOTHING), len(key))
    return _Puts(*(np.concatenate([getattr(in_order, n), getattr(found, n)]) for n in _Puts.__slots__))


class _Histories:
    """The histories of some keys, piece by piece: for each the times of its versions, and their results and places."""

    def __init__(self, mine: Mask, stored: tuple[Int64s, Int64s, Int64s]) -> None:
        self._times: dict[int, list[int]] = {}
        self._rows: dict[int, list[tuple[int, int]]] = {}
        key, since, known = stored
        for place in np.flatnonzero(mine[key]).tolist():
            number, row = int(key[place]), int(known[place])
            self._times.setdefault(number, []).append(int(since[place]))
            self._rows.setdefault(number, []).append((row, place if row != _NOTHING else -1))

    def puts(self, pieces: Pieces, mine: Int64s, time: Int64s, result: Int64s, first: int) -> _Puts:
        """The puts for the pieces `mine`, sorted by key; rows of pieces have places from `first` on."""
        found: list[tuple[int, int, int]] = []
        ends, key = pieces.ends.tolist(), pieces.key.tolist()
        chain: list[int] = []
        for piece in mine.tolist():
            chain.append(piece)
            if ends[piece]:
                rows = [(int(result[p]), first + p if result[p] != _NOTHING else -1) for p in chain]
                begins, until = [int(time[p]) for p in chain], int(pieces.until[piece])
                found += [(chain[0], *put) for put in self._put(key[piece], begins, rows, until)]
                chain = []
        columns = np.array(found, dtype=np.int64).reshape(-1, 3)
        return _Puts(columns[:, 0], columns[:, 1], columns[:, 2])

    def _put(self, key: int, begins: list[int], rows: list[tuple[int, int]], until: int) -> list[tuple[int, int]]:
        """Puts these results, which follow each other, into the history of a key: times and places of what changes."""
        times, history = self._times.setdefault(key, []), self._rows.setdefault(key, [])
        end = self._as_of(times, history, until)
        between = times[bisect_right(times, begins[0]) : bisect_left(times, until)]
        found = []
        for moment in sorted({*begins, *between}):
            row = rows[bisect_right(begins, moment) - 1]
            if self._changed(times, history, moment, row):
                found.append((moment, row[1]))
        if until < NEVER and self._changed(times, history, until, end):
            found.append((until, end[1]))
        return found

    def _changed(self, times: list[int], history: list[tuple[int, int]], moment: int, row: tuple[int, int]) -> bool:
        if self._as_of(times, history, moment)[0] == row[0]:
            return False
        at = bisect_left(times, moment)
        if at < len(times) and times[at] == moment:
            history[at] = row
        else:
            times.insert(at, moment)
            history.insert(at, row)
        return True

    @staticmethod
    def _as_of(times: list[int], history: list[tuple[int, int]], moment: int) -> tuple[int, int]:
        at = bisect_right(times, moment) - 1
        return history[at] if at >= 0 else (_NOTHING, -1)
