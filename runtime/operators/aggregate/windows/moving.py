"""Windows in a loop over the records of a batch: sessions and sliding windows.

What a record does to its group depends on the records before it, so this is a loop; but it only looks at times. The
clock at each record is known beforehand (`passing`), and what windows hold, and their results, are computed after the
loop, on whole columns (`groups.derived`). They are computed one by one if an accumulator keeps entries, which are
written record by record, into an overlay.

The windows that the batch's records can reach are read once per key, kept by start, and written once: a window opened
and forgotten in the same batch never reaches the store.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Aggregate, Schema
from vsc.runtime.metrics import HELD_RECORDS, Dropped
from vsc.runtime.operators.aggregate.functions.calls import Group
from vsc.runtime.operators.aggregate.groups.derived import AtOnce, Derivations, GroupCalls
from vsc.runtime.operators.aggregate.groups.folding import Folding
from vsc.runtime.operators.aggregate.groups.state import AggregateState, WindowKey, Windows, window_key
from vsc.runtime.operators.aggregate.windows.noted import KeyWindows, Noted
from vsc.runtime.operators.aggregate.windows.passing import Passing
from vsc.runtime.operators.aggregate.windows.results import Sent, WindowResults, names_of
from vsc.runtime.operators.clock import Timing, by_records
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.keyspace import KeySpace
from vsc.runtime.operators.columns.moments import Moments, turns
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.site import Site
from vsc.runtime.records import Int64s
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv_overlay import OverlayKV

__all__ = ["MovingWindows", "Number"]

Number = TypeVar("Number", int, Int64s)
_MILLISECOND = 1000
_NUMBER = struct.Struct(">Q")
_NONE: Int64s = np.zeros(0, dtype=np.int64)


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
        self._site, self._final = site, operation.final
        self._size, self._grace, self._held = operation.window.size, operation.window.grace, operation.window.held
        self._state, self._pending, self._folding = state, pending, folding
        self._entries, self._numbered = folding.calls.has_entries, folding.calls.numbered
        self._kv, self._results = state.kv, WindowResults(site)
        self._group_key = cache(self._results.decode)
        self._sent: list[Sent] = []
        self._new: list[int] = []
        """The changes sent that do not replace the row that the result table has of their window."""
        self._refused: list[int] = []
        """The records that come too late for all windows."""
        self._late: list[int] = []
        """The records that come too late for one window, each as often."""
        self._opened: list[tuple[int, int]] = []
        """The records that open windows, and their places in time."""
        self._merged: list[int] = []
        """The records that merge one window into another."""
        self._loaded: dict[int, KeyWindows] = {}
        self._reached: set[bytes] = set()
        self._closed, self._forgotten = state.closed, state.forgotten
        self._shut, self._gone = Noted(), Noted()
        self._finals = Noted()
        self._at: Moments | None = None
        self._deletes: list[bytes] = []

    def changes(self, flow: Flow, args: Sequence[pa.Array]) -> Flow:
        """The changes of the windows, or their final results, given the calls' arguments of records with a value; none
        where a result cannot be computed (D34)."""
        state, moving = self._state, self._site.moving(flow)
        before = state.stream_time
        self._open(args, flow.time, moving)
        if len(flow):
            self._load(flow)
            self._loop(flow)
        self._end(self._site.timing(flow, before, moving))
        return self._changes(flow)

    def waiting(self) -> list[tuple[int, WindowKey]]:
        """Takes out the windows that wait for their final result: see `AggregateState.close_all`."""
        return self._state.close_all(lambda place: int(self._due(np.array([place]))[0]))

    def release(self, waiting: list[tuple[int, WindowKey]], at: Moments) -> Flow:
        """The final results of windows that waited, one for each moment."""
        places, starts, kbs = zip(*(window for _, window in waiting), strict=True) if waiting else ((), (), ())
        self._open((), _NONE, _NONE)
        self._close_stored(Windows(np.array(places, np.int64), np.array(starts, np.int64), list(kbs)))
        rows = np.arange(len(waiting), dtype=np.int64)
        nothing = Flow.empty(Schema(self._site.node.schema.key[:-2], ()), KeySpace(KeyCodec([])))
        timing = by_records(self._site.routes, self._site.node.name, at, rows, -1)
        self._send_finals(timing, rows)
        return self._changes(replace(nothing, at=at))

    def commit(self) -> None:
        """Writes the changed windows, and removes the forgotten ones."""
        state, shown, now = self._state, self._shown(), Noted()
        olds: list[tuple[int, Any] | None] = []
        gone: list[tuple[int, int, bytes]] = []
        for key in self._loaded.values():
            before = key.before
            now.of_group(key, self._places(key), slice(None))
            olds += [before.get(start) for start in key.starts] if before else [None] * len(key.starts)
            if before and (removed := before.keys() - set(key.starts)):
                gone += [(self._place(start, before[start][0]), start, key.kb) for start in removed]
        deletes = [state.groups + window_key(kb, start) for _, start, kb in gone]
        changed = [at for at, old in enumerate(olds) if old is None or old[1] != now.value[at]]
        fresh = [at for at in changed if olds[at] is None]
        for at in changed:
            start, old = now.start[at], olds[at]
            if old is not None and (place := self._place(start, old[0])) != now.place[at]:
                fresh.append(at)
                gone.append((place, start, now.kb[at]))
        held, new = now.take(changed), [*now.take(fresh).windows().behind(state.times), *shown]
        rows = [state.groups + name for name in held.windows().names()]
        puts = list(zip(rows, self._calls.encode(held.time, held.value), strict=True))
        # What is put is not deleted: a window that has left its group may be shown still.
        state.write(puts + [(row, b"") for row in new], self._deletes + deletes + [state.index(*one) for one in gone])
        if self._pending is not None:
            self._pending.commit()

    # ------------------------------------------------------------------------------------------- for the subclasses

    def _take(self, key: KeyWindows, row: int, time: int, now: int, closed: int) -> None:
        """Changes the windows of a record, `now` and `closed` as in `Passing`."""
        raise NotImplementedError

    def _stored(self, kb: bytes, first: int, last: int) -> Iterable[tuple[int, bytes]]:
        """The stored windows of a group that records of these times may reach, by start, descending."""
        raise NotImplementedError

    def _scan(self, kb: bytes, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """The rows of the stored windows of a group that begin from `first` to `last`, descending."""
        rows = self._state.groups + kb
        for row, data in reversed(self._kv.between(window_key(rows, first), window_key(rows, last + 1))):
            yield _NUMBER.unpack_from(row, len(rows))[0], data

    def _closed_up_to(self, clock: int) -> int:
        """The place in time up to which this stream time closes windows."""
        return clock - self._held

    def _due(self, place: Int64s) -> Int64s:
        """The stream times at which windows at these places in time close."""
        return place + self._held

    def _forgotten_up_to(self, clock: Int64s, highest: Int64s) -> Int64s:
        """The places in time up to which no record can reach a window."""
        raise NotImplementedError

    @cached_property
    def _unseen_up_to(self) -> int | None:
        """The place in time up to which no node sees a window's result, by the input's clock; None: by records."""
        horizon = self._site.horizon()
        return None if horizon is None else self._closed_up_to(horizon - 1)

    @cached_property
    def _given(self) -> dict[bytes, int]:
        """The windows whose final result was given before they moved here, by their rows, and their places in time."""
        state = self._state
        rows = state.given_places(self._forgotten + 1, None) if self._final else ()
        return {row[len(state.given) :]: state.indexed(row)[0] for row in rows}

    def _left_up_to(self) -> int:
        """The place in time up to which windows leave their groups at the end."""
        raise NotImplementedError

    def _leave_unreached(self, closing: Windows) -> None:
        """Windows that close without a record of the batch leave their groups."""

    def _shown(self) -> Collection[bytes]:
        """The rows of the windows that have left their groups, and stay in the index until they are forgotten."""
        return ()

    def _places(self, key: KeyWindows) -> list[int]:
        """The places in time of a group's windows, ascending."""
        raise NotImplementedError

    def _place(self, start: int, time: int) -> int:
        """The place in time of a window, whose newest record is of this time."""
        raise NotImplementedError

    def _ends(self, place: Number, start: Number) -> Number:
        """The end, as the table shows it, of a window at a place in time, or the ends of many."""
        raise NotImplementedError

    def _value(self, kb: bytes, start: int, end: int, time: int, state: Any) -> Any:
        """A window's result, or why there is none; its state if that is computed later."""
        if not self._entries:
            return state
        key = (*self._group_key(kb), start * _MILLISECOND, end * _MILLISECOND)
        try:
            group = Group(time, state.rows, state.cells)
            return self._folding.calls.result(group, key, self._kv, self._state.scope(kb, start))
        except NodeFailure as failure:
            return failure

    # ------------------------------------------------------------------------------------------------------- reading

    def _open(self, args: Sequence[pa.Array], time: Int64s, moving: Int64s) -> None:
        self._passing = Passing(self._state, self._held, moving)
        self._arrivals = [self._state.arrivals] * len(time)
        self._derived = None if self._entries else Derivations(self._folding, args, time, self._arrivals)
        calls: GroupCalls = self._derived or AtOnce(self._folding.calls, self._state, args, time, self._arrivals)
        self._calls, self._add, self._nothing = calls, calls.add, calls.empty()

    def _load(self, flow: Flow) -> None:
        """Reads the windows that the batch's records reach."""
        state, keys = self._state, flow.space.keys
        order = np.argsort(flow.key, kind="stable")
        number, time = flow.key[order], flow.time[order]
        begins = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
        numbers = number[begins].tolist()
        firsts, lasts = (of.reduceat(time, begins).tolist() for of in (np.minimum, np.maximum))
        found: list[tuple[KeyWindows, int]] = []
        rows: list[bytes] = []
        for kb, one, first, last in sorted(zip([keys[n] for n in numbers], numbers, firsts, lasts, strict=True)):
            key = self._loaded[one] = KeyWindows(kb)
            if state.highest >= 0:
                stored = list(self._stored(kb, first, last))[::-1]
                key.starts = [start for start, _ in stored]
                rows += [row for _, row in stored]
                found.append((key, len(rows)))
        times, states = self._calls.load(rows)
        windows, begin = Noted(), 0
        for key, end in found:
            key.times, key.states = list(times[begin:end]), list(states[begin:end])
            key.before = dict(zip(key.starts, zip(key.times, key.states, strict=True), strict=True))
            windows.of_group(key, self._places(key), slice(None))
            begin = end
        self._reached = set(windows.windows().behind(b""))

    # ------------------------------------------------------------------------------------------------------ the loop

    def _loop(self, flow: Flow) -> None:
        take, loaded, passing, commit = self._take, self._loaded, self._passing, self._kv.commit
        clock = zip(flow.key.tolist(), flow.time.tolist(), passing.now.tolist(), passing.closed.tolist(), strict=True)
        for row, (number, time, now, closed) in enumerate(clock):
            take(loaded[number], row, time, now, closed)
            if self._entries:
                commit()
        passing.move(self._refused, self._opened, self._merged, self._forgotten_up_to)

    def _arrive(self, row: int, time: int) -> None:
        """Numbers a record that is not refused."""
        if self._numbered:
            self._arrivals[row] = self._state.arrive(time).arrival

    # ---------------------------------------------------------------------------------------------- what has passed

    def _drop(self, key: KeyWindows, last: int) -> None:
        """Closes and removes the windows of a group, up to a place in time, that no record can reach any more."""
        places = self._places(key)
        gone = bisect_right(places, last)
        if not gone:
            return
        self._close(key, last)
        self._leave(key, slice(gone))
        del key.starts[:gone], key.times[:gone], key.states[:gone]
        if self._entries:
            self._kv.commit()

    def _end(self, timing: Timing) -> None:
        """Closes and forgets all windows that the batch has passed."""
        state = self._state
        self._passing.end(timing, self._forgotten_up_to)
        closing = self._unreached(state.places(self._closed + 1, state.closed + 1), state.times)
        self._close_stored(closing)
        self._leave_unreached(closing)
        if state.forgotten > self._forgotten:
            self._forget_passed()
        for key in self._loaded.values():
            self._drop(key, self._left_up_to())
            self._close(key, state.closed)
        self._send_finals(timing)
        state.open -= len(self._shut)
        state.closed = max(self._closed, min(state.closed, self._closed_up_to(timing.kept)))
        if self._entries:
            self._kv.commit()

    def _forget_passed(self) -> None:
        """Forgets the windows that the batch has passed and does not reach."""
        state = self._state
        passed = self._unreached(state.places(self._forgotten + 1, state.forgotten + 1), state.times)
        self._deletes += passed.behind(state.times)
        self._forget(passed)
        given = [state.given + name for name, place in self._given.items() if place <= state.forgotten]
        self._deletes += given
        self._forget(self._unreached(given, state.given))

    def _remove(self, flow: Flow) -> None:
        """Removes the results of the windows that were forgotten."""
        if len(self._gone):
            gone = self._gone.windows()
            keys = self._site.space.encoded(names_of(gone.kb, gone.start, self._ends(gone.place, gone.start)))
            self._results.removed(flow, keys, self._passing.forgetting(gone.place), np.array(self._gone.stored))

    def _unreached(self, rows: Iterable[bytes], prefix: bytes) -> Windows:
        """The windows with these rows in an index that no record of the batch reaches."""
        at, reached = len(prefix), self._reached
        return Windows.read([name for row in rows if (name := row[at:]) not in reached])

    def _close(self, key: KeyWindows, last: int) -> None:
        """Closes the windows of a group up to a place in time, but those that were closed before the batch."""
        places, closing = self._places(key), Noted()
        closing.of_group(key, places, slice(bisect_right(places, self._closed), bisect_right(places, last)))
        self._shut_these(closing)

    def _close_stored(self, windows: Windows) -> None:
        """Closes windows that no record of the batch reaches."""
        closing, held = Noted(), None
        if self._final:
            rows = self._state.get_many(windows.names())
            held = self._calls.load([row for row in rows if row is not None])
        closing.of_store(windows, held)
        self._shut_these(closing)

    def _shut_these(self, closing: Noted) -> None:
        if self._given:
            names = closing.windows().behind(b"")
            closing = closing.take([at for at, name in enumerate(names) if name not in self._given])
        if self._final and self._entries:
            ends = self._ends(np.array(closing.place, dtype=np.int64), np.array(closing.start, dtype=np.int64)).tolist()
            closing.value = list(map(self._value, closing.kb, closing.start, ends, closing.time, closing.value))
        self._shut.extend(closing)

    def _send_finals(self, timing: Timing, event: Int64s | None = None) -> None:
        """Sends the final results, in the order in which their windows close: at these events, or by the clock."""
        if not self._final:
            return
        windows = self._shut.windows()
        due = self._due(windows.place)
        event = timing.passes(due) if event is None else event
        order, self._at = timing.sent(event, due, list(map(self._rank, self._shut.start, self._shut.kb)))
        self._finals = self._shut.take(order.tolist())

    def _rank(self, start: int, kb: bytes) -> bytes:
        """Orders the windows that close at the same time."""
        return kb

    def _changes(self, flow: Flow) -> Flow:
        """What was sent for the records of `flow`, as the result table takes it."""
        site, results = self._site, self._results
        if self._final:
            assert self._at is not None
            shut = self._finals
            windows = shut.windows()
            names = results.of_groups(flow, windows, self._ends(windows.place, windows.start))
            sent, failed = results.flow(self._at, names, np.array(shut.time, np.int64), shut.value, self._derived)
        else:
            records, starts, times, values = zip(*self._sent, strict=True) if self._sent else ((),) * 4
            record, start, time = (np.array(of, dtype=np.int64) for of in (records, starts, times))
            names = results.of_records(flow, record, start, self._ends(time, start))
            at = site.give(flow.at.take(record), turns(record))
            sent, failed = results.flow(at, names, time, values, self._derived)
        self._remove(flow)
        self._tell(flow)
        if self._final:
            return site.stored(sent.select(site.kept(sent, failed, site.node.schema, waited=True)))
        kept = results.kept(flow, record, failed)
        replaces = np.ones(len(sent), dtype=np.bool_)
        replaces[self._new] = False
        return site.stored(sent.select(kept), replaces[kept])

    def _forget(self, windows: Windows) -> None:
        """Notes that stored windows, which no record of the batch reaches, are forgotten; removes them."""
        self._remove_groups(windows)
        self._gone.of_store(windows)

    def _leave(self, key: KeyWindows, own: slice) -> None:
        """Notes that windows have left their group; removes their entries."""
        self._gone.of_group(key, self._places(key), own)
        self._clear_all(key, own)

    def _clear_all(self, key: KeyWindows, own: slice) -> None:
        if self._entries:
            starts = key.starts[own]
            self._clear([key.kb] * len(starts), starts)

    def _remove_groups(self, windows: Windows) -> None:
        self._deletes += [self._state.groups + name for name in windows.names()]
        self._clear(windows.kb, windows.start.tolist())

    def _clear(self, kbs: Iterable[bytes], starts: Iterable[int]) -> None:
        if self._entries:
            for kb, start in zip(kbs, starts, strict=True):
                self._state.clear(self._state.scope(kb, start))

    def _tell(self, flow: Flow) -> None:
        """Reports how many windows were open, and what was lost of the records of `flow`."""
        site, late = self._site, np.sort(np.array(self._refused + self._late, dtype=np.int64))
        if most := self._passing.most_open(self._shut.place):
            site.peak(HELD_RECORDS, most)
        site.lose(Dropped.WINDOW_CLOSED, flow, late)
