"""Windows in a loop over the records of a batch: sessions and sliding windows.

What a record does to its group depends on the records before it, so this is a loop; but it does not touch the store.
The windows that the batch's records can reach are read once per key, kept by start, and written once: a window opened
and forgotten in the same batch never reaches the store. The loop only notes when stream time moves: a window that has
closed is looked at when the next record of its group comes, or after the loop, and closes where stream time has moved
past it.

What windows hold, and their results, are computed after the loop, on whole columns (`groups.derived`): the loop only
looks at times. They are computed one by one if an accumulator keeps entries, which are written record by record, into
an overlay. A group is never changed, only replaced, so that a result sees it as it was.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Aggregate, Schema
from vsc.runtime.metrics import HELD_RECORDS, Dropped
from vsc.runtime.operators.aggregate.groups.derived import AnyGroup, Derivations, Derived, GroupCalls
from vsc.runtime.operators.aggregate.groups.folding import Folding
from vsc.runtime.operators.aggregate.groups.state import AggregateState, WindowKey, window_key
from vsc.runtime.operators.aggregate.windows.closings import Closings
from vsc.runtime.operators.aggregate.windows.results import Result, Sent, WindowResults, names_of
from vsc.runtime.operators.clock import Timing, by_records
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.columns.moments import Moments
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.site import Site
from vsc.runtime.records import Int64s
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv_overlay import OverlayKV

__all__ = ["Args", "KeyWindows", "MovingWindows", "Number"]

Args = Any
"""A record as `GroupCalls` take it."""
Number = TypeVar("Number", int, Int64s)
_MILLISECOND = 1000
_NUMBER = struct.Struct(">Q")


@dataclass(slots=True)
class KeyWindows:
    """The windows of one group that the batch can reach, by start; `before` as the store has them."""

    kb: bytes
    starts: list[int] = field(default_factory=list)
    groups: list[AnyGroup] = field(default_factory=list)
    before: dict[int, AnyGroup] = field(default_factory=dict)


class MovingWindows:
    """Base of the windows of one aggregate, for one batch.

    `pending` is what `state` writes to until `commit`, as its loop changes entries; None: there are none.
    """

    def __init__(
        self,
        site: Site,
        operation: Aggregate,
        folding: Folding,
        state: AggregateState,
        pending: OverlayKV | None,
    ) -> None:
        assert operation.window is not None
        self._site, self._final, self._window = site, operation.final, operation.window
        self._size, self._grace, self._held = operation.window.size, operation.window.grace, operation.window.held
        self._state, self._pending = state, pending
        self._one_by_one = folding.calls
        self._entries = folding.calls.has_entries
        self._derived = None if self._entries else Derivations(folding)
        self._calls: GroupCalls = self._derived or folding.calls
        self._kv, self._results = state.kv, WindowResults(site)
        self._group_key = cache(self._results.decode)
        self._sent: list[Sent] = []
        self._row = 0
        self._late: list[int] = []
        self._loaded: dict[bytes, KeyWindows] = {}
        self._closings, self._closed, self._forgotten = Closings(), state.closed, state.forgotten
        self._gone: list[tuple[int, int, bytes, bool]] = []
        self._finals: list[tuple[WindowKey, int, Result]] = []
        self._at: Moments | None = None
        self._now = -1
        self._deletes: list[bytes] = []

    def changes(self, flow: Flow, args: Sequence[pa.Array]) -> Flow:
        """The changes of the windows, or their final results, given the calls' arguments of records with a value; none
        where a result cannot be computed (D34)."""
        state, moving = self._state, self._site.moving(flow)
        before = state.stream_time
        if len(flow):
            self._load(flow)
            self._loop(flow, self._rows(flow, args), moving)
        self._end(len(flow), self._site.timing(flow, before, moving))
        return self._changes(flow)

    def waiting(self) -> list[tuple[int, WindowKey]]:
        """Takes out the windows that wait for their final result: see `AggregateState.close_all`."""
        return self._state.close_all(lambda place: int(self._due(np.array([place]))[0]))

    def release(self, waiting: list[tuple[int, WindowKey]], at: Moments) -> Flow:
        """The final results of windows that waited, one for each moment."""
        places = [place for _, place in waiting]
        for place, group in zip(places, self._groups_of(places), strict=True):
            self._finish(place, group)
        rows = np.arange(len(places), dtype=np.int64)
        self._send_finals(by_records(self._site.routes, self._site.node.name, at, rows, -1), rows)
        nothing = Flow.empty(Schema(self._site.node.schema.key[:-2], ()), KeySpace(KeyCodec([])))
        return self._changes(replace(nothing, at=at))

    def commit(self) -> None:
        """Writes the changed windows, and removes the forgotten ones."""
        puts: list[tuple[bytes, bytes]] = []
        rows: list[bytes] = []
        changed: list[AnyGroup] = []
        state, deletes, shown = self._state, self._deletes, self._shown()
        for key in self._loaded.values():
            now = dict(zip(key.starts, key.groups, strict=True))
            for start, group in key.before.items():
                new = now.get(start)
                if new is None:
                    deletes.append(state.groups + window_key(key.kb, start))
                place = self._place(start, group)
                if (new is None or self._place(start, new) != place) and (place, start, key.kb) not in shown:
                    deletes.append(state.index(place, start, key.kb))
            for start, group in now.items():
                old = key.before.get(start)
                if old is group:
                    continue
                rows.append(state.groups + window_key(key.kb, start))
                changed.append(group)
                if old is None or self._place(start, old) != self._place(start, group):
                    puts.append((state.index(self._place(start, group), start, key.kb), b""))
        puts.extend((state.index(*window), b"") for window in shown)
        puts.extend(zip(rows, self._calls.encode_many(changed), strict=True))
        state.write(puts, deletes)
        if self._pending is not None:
            self._pending.commit()

    # ------------------------------------------------------------------------------------------- for the subclasses

    def _take(self, key: KeyWindows, time: int, args: Args) -> None:
        """Changes the windows of a record, after those that it does not reach have left their group; moves
        `_state.stream_time` to `_now`."""
        raise NotImplementedError

    def _stored(self, kb: bytes, first: int, last: int) -> Iterable[tuple[int, AnyGroup]]:
        """The stored windows of a group that records of these times may reach, by start, descending."""
        raise NotImplementedError

    def _scan(self, kb: bytes, first: int, last: int) -> Iterator[tuple[int, AnyGroup]]:
        """The stored windows of a group that begin from `first` to `last`, descending."""
        rows, decode = self._state.groups + kb, self._calls.decode
        for row, data in reversed(self._kv.between(window_key(rows, first), window_key(rows, last + 1))):
            yield _NUMBER.unpack_from(row, len(rows))[0], decode(data)

    def _closed_up_to(self, clock: int) -> int:
        """The place in time up to which this stream time closes windows.

        The state's `closed` may be later: what a shorter grace has closed stays closed.
        """
        return clock - self._held

    def _due(self, place: Int64s) -> Int64s:
        """The stream times at which windows at these places in time close."""
        return place + self._held

    def _forgotten_up_to(self, clock: int, highest: int) -> int:
        """The place in time up to which no record can reach a window."""
        raise NotImplementedError

    @cached_property
    def _unseen_up_to(self) -> int | None:
        """The place in time up to which no node sees a window's result, by the input's clock; None: by records."""
        horizon = self._site.horizon()
        return None if horizon is None else self._closed_up_to(horizon - 1)

    @cached_property
    def _given(self) -> dict[WindowKey, bytes]:
        """The windows whose final result was given before they moved here, with their rows in the index."""
        state = self._state
        rows = state.given_places(self._forgotten + 1, None) if self._final else ()
        return {state.indexed(row): row for row in rows}

    def _left_up_to(self) -> int:
        """The place in time up to which windows leave their groups at the end."""
        raise NotImplementedError

    def _leave_unreached(self, closing: Sequence[WindowKey]) -> None:
        """Windows that close without a record of the batch leave their groups."""

    def _shown(self) -> Collection[WindowKey]:
        """The windows that have left their groups, and stay in the index until they are forgotten."""
        return ()

    def _until(self, key: KeyWindows, last: int) -> Sequence[tuple[int, int, AnyGroup]]:
        """The windows of a group with a place in time up to `last`, which are its first ones: place, start, group."""
        raise NotImplementedError

    def _place(self, start: int, group: AnyGroup) -> int:
        """The place in time of a window."""
        raise NotImplementedError

    def _ends(self, place: Number, start: Number) -> Number:
        """The end, as the table shows it, of a window at a place in time, or the ends of many."""
        raise NotImplementedError

    def _scope(self, kb: bytes, start: int) -> bytes:
        """Where the accumulators of a window keep their entries."""
        return self._state.entries + window_key(kb, start) if self._entries else b""

    def _result(self, kb: bytes, start: int, end: int, group: AnyGroup) -> Result:
        """A window's result, or why there is none; its group if that is computed later."""
        if isinstance(group, Derived):
            return group
        key = (*self._group_key(kb), start * _MILLISECOND, end * _MILLISECOND)
        try:
            return self._one_by_one.result(group, key, self._kv, self._scope(kb, start))
        except NodeFailure as failure:
            return failure

    def _opened(self, place: int) -> None:
        state = self._state
        state.open += 1
        if place > state.highest:
            state.highest = place

    # ------------------------------------------------------------------------------------------------------- reading

    def _rows(self, flow: Flow, args: Sequence[pa.Array]) -> Sequence[Args]:
        """The records as `_calls` takes them."""
        if self._derived is None:
            return self._one_by_one.rows(args, len(flow))
        return self._derived.rows(args, flow.time)

    def _load(self, flow: Flow) -> None:
        """Reads the windows that the batch's records reach."""
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

    def _groups_of(self, windows: Sequence[WindowKey]) -> list[AnyGroup]:
        """The stored groups of windows."""
        rows = self._state.get_many([window_key(kb, start) for _, start, kb in windows])
        return [self._calls.decode(row) for row in rows if row is not None]

    # ------------------------------------------------------------------------------------------------------ the loop

    def _loop(self, flow: Flow, args: Sequence[Args], moving: Int64s) -> None:
        state, keys = self._state, flow.space.keys
        loaded = {number: self._loaded[keys[number]] for number in set(flow.key.tolist())}
        take, held, most = self._take, self._held, self._closings.most
        records = zip(flow.key.tolist(), flow.time.tolist(), args, moving.tolist(), strict=True)
        for row, (number, time, given, moved) in enumerate(records):
            self._row, before = row, state.stream_time
            self._now = moved if moved > before else before
            take(loaded[number], time, given)
            if (closed := state.stream_time - held) > state.closed:
                self._move(closed)
            if self._entries:
                self._kv.commit()
            if state.open > most[-1]:
                most[-1] = state.open

    def _move(self, closed: int) -> None:
        """Notes that windows up to a place in time close at this record, and which are forgotten."""
        state = self._state
        state.closed = closed
        if (limit := min(closed, self._forgotten_up_to(state.stream_time, state.highest))) > state.forgotten:
            state.forgotten = limit
        self._closings.move(self._row, closed, state.forgotten)

    # ---------------------------------------------------------------------------------------------- what has passed

    def _drop(self, key: KeyWindows, last: int) -> None:
        """Closes and removes the windows of a group, up to a place in time, that no record can reach any more."""
        gone = self._until(key, last)
        if not gone:
            return
        for place, start, group in gone:
            if place > self._closed:
                self._close((place, start, key.kb), group)
            self._leave(place, start, key.kb, start in key.before)
        del key.starts[: len(gone)], key.groups[: len(gone)]
        if self._entries:
            self._kv.commit()

    def _end(self, records: int, timing: Timing) -> None:
        """Closes and forgets all windows that the batch has passed."""
        state = self._state
        self._row, state.stream_time = records, timing.kept
        if (closed := self._closed_up_to(timing.now)) > state.closed:
            self._move(closed)
        closing = list(self._unreached(state.places(self._closed + 1, state.closed + 1)))
        groups = self._groups_of(closing) if self._final else [None] * len(closing)
        for window, group in zip(closing, groups, strict=True):
            self._close(window, group)
        self._leave_unreached(closing)
        if state.forgotten > self._forgotten:
            self._forget_passed()
        for key in self._loaded.values():
            self._drop(key, self._left_up_to())
            for place, start, group in self._until(key, state.closed):
                if place > self._closed:
                    self._close((place, start, key.kb), group)
        self._send_finals(timing)
        state.open -= len(self._closings.closed)
        state.closed = max(self._closed, min(state.closed, self._closed_up_to(timing.kept)))
        if self._entries:
            self._kv.commit()

    def _forget_passed(self) -> None:
        """Forgets the windows that the batch has passed and does not reach."""
        state = self._state
        for window in self._unreached(state.places(self._forgotten + 1, state.forgotten + 1)):
            self._deletes.append(state.index(*window))
            self._forget(*window)
        given = [row for (place, _, _), row in self._given.items() if place <= state.forgotten]
        self._deletes += given
        for window in self._unreached(given):
            self._forget(*window)

    def _remove(self, flow: Flow) -> None:
        """Removes the results of the windows that were forgotten."""
        if self._gone:
            places, starts, kbs, stored = zip(*self._gone, strict=True)
            place, start = np.array(places, dtype=np.int64), np.array(starts, dtype=np.int64)
            keys = self._site.space.encoded(names_of(kbs, start, self._ends(place, start)))
            self._results.removed(flow, keys, self._closings.forgetting(place), np.array(stored))

    def _unreached(self, rows: Iterable[bytes]) -> Iterator[WindowKey]:
        """The windows with these rows in an index that no record of the batch reaches."""
        for place, start, kb in map(self._state.indexed, rows):
            group = None if (key := self._loaded.get(kb)) is None else key.before.get(start)
            if group is None or self._place(start, group) != place:
                yield place, start, kb

    def _close(self, window: WindowKey, group: AnyGroup | None) -> None:
        """Closes a window; its final result needs its group."""
        if window in self._given:
            return
        self._closings.closed.append(window[0])
        if self._final:
            assert group is not None
            self._finish(window, group)

    def _finish(self, window: WindowKey, group: AnyGroup) -> None:
        """Computes the final result of a window."""
        place, start, kb = window
        self._finals.append((window, group.time, self._result(kb, start, self._ends(place, start), group)))

    def _send_finals(self, timing: Timing, event: Int64s | None = None) -> None:
        """Sends the final results, in the order in which their windows close: at these events, or by the clock."""
        if not self._final:
            return
        due = self._due(np.array([place for (place, _, _), _, _ in self._finals], dtype=np.int64))
        event = timing.passes(due) if event is None else event
        order, self._at = timing.sent(event, due, [self._rank(start, kb) for (_, start, kb), _, _ in self._finals])
        for (place, start, kb), time, new in map(self._finals.__getitem__, order.tolist()):
            self._sent.append((0, kb, start, self._ends(place, start), new, True, time))

    def _rank(self, start: int, kb: bytes) -> bytes:
        """Orders the windows that close at the same time."""
        return kb

    def _changes(self, flow: Flow) -> Flow:
        """What was sent for the records of `flow`, as the result table takes it."""
        sent, failed = self._results.flow(flow, self._sent, self._derived, self._at)
        self._remove(flow)
        self._tell(flow)
        if self._final:
            kept = self._site.kept(sent, failed, self._site.node.schema, waited=True)
        else:
            kept = self._results.kept(flow, np.array([row[0] for row in self._sent], dtype=np.int64), failed)
        replaces = np.fromiter((row[-2] for row in self._sent), dtype=np.bool_, count=len(sent))
        return self._site.stored(sent.select(kept), replaces[kept])

    def _forget(self, place: int, start: int, kb: bytes) -> None:
        """Notes that a stored window, which no record of the batch reaches, is forgotten; removes it."""
        self._remove_group(start, kb)
        self._gone.append((place, start, kb, True))

    def _leave(self, place: int, start: int, kb: bytes, stored: bool) -> None:
        """Notes that a window has left its group, and whether the store has it; removes its entries."""
        self._gone.append((place, start, kb, stored))
        self._clear(start, kb)

    def _remove_group(self, start: int, kb: bytes) -> None:
        self._deletes.append(self._state.groups + window_key(kb, start))
        self._clear(start, kb)

    def _clear(self, start: int, kb: bytes) -> None:
        if self._entries:
            self._state.clear(self._scope(kb, start))

    def _tell(self, flow: Flow) -> None:
        """Reports how many windows were open, and what was lost of the records of `flow`."""
        site, late = self._site, np.array(self._late, dtype=np.int64)
        if most := self._closings.most_open():
            site.peak(HELD_RECORDS, most)
        site.lose(Dropped.WINDOW_CLOSED, flow, late)
