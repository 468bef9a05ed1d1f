"""Windows in a loop over the records of a batch: sessions, sliding windows, and all others if a record fails.

What a record does to its group depends on the records before it, so this is a loop; but it does not touch the store.
The windows that the batch's records can reach are read once per key, kept by start, and written once: a window opened
and forgotten in the same batch never reaches the store. A group is never changed, only replaced, so a record on which
an expression fails leaves no trace. The windows that the batch will close or forget wait in heaps, ordered by when they
do.

The accumulators' entries are the exception: they are written record by record, into an overlay.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Aggregate, Schema
from vsc.runtime.metrics import HELD_RECORDS, Dropped
from vsc.runtime.operators.aggregate.calls import Calls, Group
from vsc.runtime.operators.aggregate.state import AggregateState, bounds_key, window_key
from vsc.runtime.operators.aggregate.window_results import Sent, Unsent, WindowResults
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.columns.moments import Moments
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.operators.site import Site
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv_overlay import OverlayKV
from vsc.runtime.values import to_array

__all__ = ["KeyWindows", "MovingWindows"]

Place = tuple[int, int, bytes]
"""A window: its place in time, its start, its group's encoded key."""
Args = Sequence[tuple[Any, ...]]
_MILLISECOND = 1000
_NUMBER = struct.Struct(">Q")


@dataclass(slots=True)
class KeyWindows:
    """The windows of one group that the batch can reach, by start; `before` as the store has them."""

    kb: bytes
    starts: list[int] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    before: dict[int, Group] = field(default_factory=dict)


class MovingWindows:
    """Base of the windows of one aggregate, for one batch. `pending` is what `state` writes to, until `commit`."""

    def __init__(
        self,
        site: Site,
        operation: Aggregate,
        calls: Calls,
        state: AggregateState,
        pending: OverlayKV,
    ) -> None:
        assert operation.window is not None
        self._site, self._final, self._window = site, operation.final, operation.window
        self._size, self._grace = operation.window.size, operation.window.grace
        self._calls, self._state, self._pending = calls, state, pending
        self._kv, self._entries, self._results = state.kv, calls.has_entries, WindowResults(site)
        self._plain = calls.plain and not calls.has_entries
        self._sent: list[Sent] = []
        self._row, self._most = 0, 0
        self._late: list[int] = []
        self._failed: dict[int, NodeFailure] = {}
        self._unsent: list[Unsent] = []
        self._key: Row = ()
        self._loaded: dict[bytes, KeyWindows] = {}
        self._end = -1
        self._closing: list[Place] = []
        self._taken_back: set[Place] = set()
        self._forgetting: deque[Place] = deque()
        self._unread: dict[bytes, Group] = {}
        self._deletes: list[bytes] = []

    def changes(self, flow: Flow, args: Sequence[pa.Array]) -> Flow:
        """The changes of the windows, or their final results, given the calls' arguments of records with a value."""
        if len(flow):
            self._load(flow)
            self._loop(flow, self._calls.rows(args, len(flow)))
        self._tell(flow)
        return self._results.flow(flow, self._sent)

    def waiting(self) -> list[tuple[int, Place]]:
        """Takes out the windows that wait for their final result, in the order in which they would close: the place in
        time, and the window. Moves the clock to where all are closed."""
        state = self._state
        held = list(map(state.indexed, state.places(state.closed + 1, None)))
        if held:
            last = held[-1][0]
            state.stream_time = max(state.stream_time, last - self._closed_up_to(0))
            state.closed, state.open = max(state.closed, last), 0
        return [(place, (place, start, kb)) for place, start, kb in held]

    def release(self, waiting: list[tuple[int, Place]], at: Moments) -> Flow:
        """The final results of windows that waited, one for each moment."""
        self._read([(kb, start) for _, (_, start, kb) in waiting])
        for self._row, (_, held) in enumerate(waiting):
            self._close(held)
        nothing = Flow.empty(Schema(self._site.node.schema.key[:-2], ()), KeySpace(KeyCodec([])))
        nothing = replace(nothing, at=at)
        self._tell(nothing)
        return self._results.flow(nothing, self._sent)

    def commit(self) -> None:
        """Writes the changed windows, and removes the forgotten ones."""
        puts: list[tuple[bytes, bytes]] = []
        rows: list[bytes] = []
        changed: list[Group] = []
        state, deletes = self._state, self._deletes
        for key in self._loaded.values():
            now = dict(zip(key.starts, key.groups, strict=True))
            for start, group in key.before.items():
                new = now.get(start)
                if new is None:
                    deletes.append(state.groups + window_key(key.kb, start))
                if new is None or self._place(start, new) != self._place(start, group):
                    deletes.append(state.index(self._place(start, group), start, key.kb))
            for start, group in now.items():
                old = key.before.get(start)
                if old is group:
                    continue
                rows.append(state.groups + window_key(key.kb, start))
                changed.append(group)
                if old is None or self._place(start, old) != self._place(start, group):
                    puts.append((state.index(self._place(start, group), start, key.kb), b""))
        puts.extend(zip(rows, self._encoded(changed), strict=True))
        state.write(puts, deletes)
        self._pending.commit()

    # ------------------------------------------------------------------------------------------- for the subclasses

    def _take(self, key: KeyWindows, time: int, args: Args) -> None:
        """Changes the windows of a record, or nothing if an expression fails; moves `_state.stream_time`."""
        raise NotImplementedError

    def _stored(self, kb: bytes, first: int, last: int) -> Iterable[tuple[int, Group]]:
        """The stored windows of a group that records of these times may reach, by start, descending."""
        raise NotImplementedError

    def _scan(self, kb: bytes, first: int, last: int) -> Iterator[tuple[int, Group]]:
        """The stored windows of a group that begin from `first` to `last`, descending."""
        rows, decode = self._state.groups + kb, self._calls.decode
        for row, data in self._kv.scan(window_key(rows, first), window_key(rows, last + 1), reverse=True):
            yield _NUMBER.unpack_from(row, len(rows))[0], decode(data)

    def _closed_up_to(self, clock: int) -> int:
        """The place in time up to which this stream time closes windows.

        The state's `closed` may be later: what a shorter grace has closed stays closed.
        """
        return clock - self._size - self._grace - 1

    def _forgotten_up_to(self, clock: int, highest: int) -> int:
        """The place in time up to which no record can reach a window."""
        raise NotImplementedError

    def _place(self, start: int, group: Group) -> int:
        """The place in time of a window."""
        raise NotImplementedError

    def _ends(self, place: int, start: int) -> int:
        """The end, as the table shows it, of the window at a place in time."""
        raise NotImplementedError

    def _scope(self, kb: bytes, start: int) -> bytes:
        """Where the accumulators of a window keep their entries."""
        return self._state.entries + window_key(kb, start) if self._entries else b""

    def _value(self, kb: bytes, start: int, end: int, group: Group, key: Row | None = None) -> Row:
        """A window's result. Raises NodeFailure if it cannot be computed."""
        if self._plain:
            return self._calls.result(group, (), self._kv, b"")
        bounded = (*(self._key if key is None else key), start * _MILLISECOND, end * _MILLISECOND)
        return self._calls.result(group, bounded, self._kv, self._scope(kb, start))

    def _opened(self, place: int, start: int, kb: bytes) -> None:
        state = self._state
        state.open += 1
        state.highest = max(state.highest, place)
        if place <= self._end:
            heappush(self._closing, (place, start, kb))

    # ------------------------------------------------------------------------------------------------------- reading

    def _load(self, flow: Flow) -> None:
        """Reads the windows that the batch's records reach, and those that the batch closes and forgets."""
        state, keys = self._state, flow.space.keys
        order = np.argsort(flow.key, kind="stable")
        number, time = flow.key[order], flow.time[order]
        begins = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
        groups = [keys[n] for n in number[begins].tolist()]
        firsts, lasts = (of.reduceat(time, begins).tolist() for of in (np.minimum, np.maximum))
        found = {kb: (first, last) for kb, first, last in zip(groups, firsts, lasts, strict=True)}
        for kb in sorted(found):
            key = self._loaded[kb] = KeyWindows(kb)
            if state.highest >= 0:
                key.before = dict(self._stored(kb, *found[kb]))
                key.starts, key.groups = list(reversed(key.before)), list(reversed(key.before.values()))
        clock, latest = max(state.stream_time, int(flow.time.max())), int(flow.time.max()) + 1
        self._end = self._closed_up_to(clock)
        if self._end > state.closed:
            forgotten = min(self._end, self._forgotten_up_to(clock, max(state.highest, latest)), state.closed)
            self._forgetting.extend(map(state.indexed, state.places(state.forgotten + 1, forgotten + 1)))
            self._closing.extend(map(state.indexed, state.places(state.closed + 1, self._end + 1)))
        if self._final:
            self._read([(kb, start) for _, start, kb in self._closing])

    def _read(self, windows: list[tuple[bytes, int]]) -> None:
        """Reads the closing windows that no record of the batch reaches."""
        unread = [
            window_key(kb, start)
            for kb, start in windows
            if (key := self._loaded.get(kb)) is None or start not in key.before
        ]
        rows = self._state.get_many(unread)
        self._unread = {w: self._calls.decode(row) for w, row in zip(unread, rows, strict=True) if row is not None}

    def _encoded(self, groups: list[Group]) -> list[bytes]:
        if not groups:
            return []
        columns = zip(*[(g.time, g.rows, *g.cells) for g in groups], strict=True)
        codec = self._calls.row
        arrays = [to_array(list(column), type_) for column, type_ in zip(columns, codec.types, strict=True)]
        encoded: list[bytes] = codec.encode_columns(arrays, len(groups)).to_pylist()
        return encoded

    # ------------------------------------------------------------------------------------------------------ the loop

    def _loop(self, flow: Flow, args: Sequence[Args]) -> None:
        state, sent, keys = self._state, self._sent, flow.space.keys
        rows = self._results.rows(flow) if not self._plain else None
        loaded = {number: self._loaded[keys[number]] for number in set(flow.key.tolist())}
        behind = -self._closed_up_to(0)
        for row, (number, time, given) in enumerate(zip(flow.key.tolist(), flow.time.tolist(), args, strict=True)):
            self._row = row
            if rows is not None:
                self._key = rows[row]
            before = state.stream_time, state.arrivals, len(self._late), len(sent)
            try:
                self._take(loaded[number], time, given)
            except NodeFailure as failure:
                state.stream_time, state.arrivals, late, mark = before
                del self._late[late:], sent[mark:]
                self._kv.discard()
                self._failed[row] = failure
                continue
            if state.stream_time - behind > state.closed:
                self._close_up_to(state.stream_time - behind)
            if self._entries:
                self._kv.commit()
            if state.open > self._most:
                self._most = state.open

    def _close_up_to(self, closed: int) -> None:
        state, closing = self._state, self._closing
        while closing and closing[0][0] <= closed:
            held = heappop(closing)
            if held in self._taken_back:
                self._taken_back.remove(held)
                continue
            state.open -= 1
            if self._final:
                self._close(held)
            self._forgetting.append(held)
        state.closed = closed
        up_to = min(closed, self._forgotten_up_to(state.stream_time, state.highest))
        state.forgotten = max(state.forgotten, up_to)
        while self._forgetting and self._forgetting[0][0] <= up_to:
            self._forget(self._forgetting.popleft())

    def _close(self, held: Place) -> None:
        """Sends the final result of a window."""
        place, start, kb = held
        key = self._loaded.get(kb)
        number = -1 if key is None else _found(key.starts, start)
        group = self._unread[window_key(kb, start)] if key is None or number < 0 else key.groups[number]
        end = self._ends(place, start)
        try:
            new = self._value(kb, start, end, group, None if self._plain else self._results.decode(kb))
        except NodeFailure as failure:
            self._unsent.append((self._row, kb, start, end, group.time, failure))
        else:
            self._sent.append((self._row, kb, start, end, new, None, False, group.time))

    def _forget(self, held: Place) -> None:
        """Removes everything that is kept of a window."""
        place, start, kb = held
        state, key = self._state, self._loaded.get(kb)
        number = -1 if key is None else _found(key.starts, start)
        if key is None or number < 0:
            self._deletes += [state.groups + window_key(kb, start), state.index(place, start, kb)]
        else:
            del key.starts[number], key.groups[number]
        if self._entries:
            state.clear(self._scope(kb, start))
        self._results.forget(kb + bounds_key(start, self._ends(place, start)), self._row)

    def _tell(self, flow: Flow) -> None:
        """Reports what was lost of the records of `flow`, and of the windows that closed at them."""
        site, late = self._site, np.array(self._late, dtype=np.int64)
        site.lose(Dropped.WINDOW_CLOSED, flow, late)
        site.kept(flow, self._failed)
        if self._unsent:
            failures = {place: unsent[-1] for place, unsent in enumerate(self._unsent)}
            site.kept(self._results.unsent(flow, self._unsent), failures, site.node.schema, waited=True)
        if self._most:
            site.failures.metrics.peak(site.name, HELD_RECORDS, self._most)


def _found(starts: list[int], start: int) -> int:
    """The place of a window among those of its group; -1 if it does not exist."""
    place = bisect_left(starts, start)
    return place if place < len(starts) and starts[place] == start else -1
