"""Tumbling and hopping windows on whole columns.

The clock at each record is known beforehand, so array expressions tell which records are late, when each window closes
and what is forgotten. Each window that a batch changes or closes is read once, and written at most once: a window
opened and forgotten in the same batch never reaches the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Aggregate
from vsc.runtime.metrics import HELD_RECORDS, Dropped
from vsc.runtime.operators.aggregate.functions.states import EntryRanges, Rows
from vsc.runtime.operators.aggregate.groups.folding import Folding, Groups, arguments_of
from vsc.runtime.operators.aggregate.groups.state import AggregateState, WindowKey, window_key, window_keys
from vsc.runtime.operators.aggregate.windows.clock import Reached, WindowClock
from vsc.runtime.operators.aggregate.windows.grid import grid_of
from vsc.runtime.operators.aggregate.windows.results import WindowResults, names_of
from vsc.runtime.operators.columns.evaluation import Failed
from vsc.runtime.operators.columns.flow import Flow, taken
from vsc.runtime.operators.columns.moments import Moments, turns
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.operators.site import Site
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.kv_base import prefix_end

__all__ = ["WindowColumns"]


@dataclass(frozen=True, slots=True)
class _Windows:
    """The windows that the records of a batch change, numbered first, and the windows that it closes.

    By window: `kb` the encoded key of the group, `start`, `name` both (`window_key`), `number` that of its key, `first`
    the first record that changes it (-1: none), `fresh` whether it is not in the store. `index` are the row keys of the
    stored ones among those up to the clock.
    """

    kb: list[bytes]
    start: Int64s
    name: list[bytes]
    number: Int64s
    first: Int64s
    fresh: Mask
    rows: list[bytes | None]
    index: list[bytes]


class WindowColumns:
    """The windows of one aggregate, for one batch."""

    def __init__(
        self,
        site: Site,
        operation: Aggregate,
        folding: Folding,
        state: AggregateState,
    ) -> None:
        assert operation.window is not None
        self._site, self._window, self._final = site, operation.window, operation.final
        self._operation = operation
        self._ends = grid_of(operation.window).ends_of
        self._folding, self._state = folding, state
        self._space, self._results = site.space, WindowResults(site)
        self._keys: list[bytes] = []
        self._puts: list[tuple[bytes, bytes]] = []
        self._deletes: list[bytes] = []
        self._ranges: list[tuple[bytes, bytes]] = []
        self._gone: list[tuple[bytes, int]] = []

    def changes(self, flow: Flow, args: tuple[pa.Array, ...]) -> Flow:
        """The changes of the windows, or their final results, each with its place among those of its cause; none where
        a result cannot be computed (D34)."""
        state, self._keys = self._state, flow.space.keys
        clock = WindowClock(self._window, state.closed, self._site.timing(flow, state.stream_time))
        reached = clock.reach(flow.time)
        windows, group = self._windows(flow, clock, reached)
        segments = Segments(group, len(windows.kb))
        added = Rows(args, flow.time, state.arrivals_of(len(flow))).take(reached.record)
        before = self._folding.open(self._entry_ranges(windows), self._folding.load(windows.rows))
        running, ended = self._folding.fold(before, segments, added)
        sent = None if self._final else self._changes(flow, reached, group, running.take(segments.unsorted()))
        self._site.lose(Dropped.WINDOW_CLOSED, flow, reached.late)
        state.stream_time, state.closed = clock.timing.kept, clock.kept
        state.arrive_many(len(flow))
        closing = self._account(windows, clock)
        limits, forgotten = self._forgotten(clock, reached)
        state.forgotten = max(state.forgotten, forgotten)
        state.highest = max(state.highest, int(reached.start.max()) if len(reached.start) else -1)
        self._keep(windows, ended, forgotten)
        if sent is None:
            sent = self._finals(flow, windows, ended, clock, closing)
        self._forget(flow, windows, limits, forgotten)
        return self._site.stored(replace(sent, key=windows.number[sent.key]))

    def waiting(self) -> list[tuple[int, WindowKey]]:
        """Takes out the windows that wait for their final result: see `AggregateState.close_all`."""
        return self._state.close_all(lambda place: int(self._ends(np.array([place]))[0]) + self._window.grace)

    def closing(self, most: int) -> Flow:
        """The final results of the first `most` windows that the clock closes. They leave nothing behind: nothing may
        look for them."""
        state, nothing = self._state, self._site.nothing()
        clock = WindowClock(self._window, state.closed, self._site.timing(nothing, state.stream_time))
        index = list(islice(state.places(state.closed + 1, clock.end + 1), most))
        found = [state.indexed(row_key) for row_key in index]
        kbs, start = [kb for _, _, kb in found], np.array([begin for _, begin, _ in found], dtype=np.int64)
        names = [window_key(kb, begin) for _, begin, kb in found]
        ended, due = self._ended(names), clock.due(start)
        order, at = clock.timing.sent(clock.timing.passes(due), due, kbs)
        keys = self._results.group_keys(nothing, [kbs[number] for number in order.tolist()])
        bounds = self._results.bounded(keys, start[order], self._ends(start[order]))
        state.open -= len(index)
        self._deletes += index + [state.groups + name for name in names]
        if self._folding.keeps:
            prefixes = [state.entries + name for name in names]
            self._ranges += [(prefix, prefix_end(prefix) or b"") for prefix in prefixes]
        sent = self._final_ones(at, order, bounds, ended.take(order))
        return replace(sent, key=self._numbers(kbs, start)[sent.key])

    def release(self, waiting: list[tuple[int, WindowKey]], at: Moments) -> Flow:
        """The final results of windows that waited, one for each moment."""
        site, kbs = self._site, [kb for _, (_, _, kb) in waiting]
        start, rows = np.array([begin for _, (_, begin, _) in waiting], dtype=np.int64), np.arange(len(waiting))
        names = [window_key(kb, begin) for _, (_, begin, kb) in waiting]
        ended, groups = self._ended(names), self._results.group_keys(site.nothing(), kbs)
        keys = self._results.bounded(groups, start, self._ends(start))
        sent = self._final_ones(site.give(at, turns(rows)), rows, keys, ended)
        return site.stored(replace(sent, key=self._numbers(kbs, start)[sent.key]))

    def _ended(self, names: Sequence[bytes]) -> Groups:
        """Windows that no record changes any more."""
        folding, nothing, none = self._folding, self._site.nothing(), np.zeros(0, dtype=np.int64)
        stored = np.ones(len(names), dtype=np.bool_)
        ranges = EntryRanges(self._state.below, [self._state.entries + name for name in names], stored)
        before = folding.open(ranges, folding.load(self._state.get_many(names)))
        args = arguments_of(self._site.node, self._operation).rows(nothing.columns, nothing.time).columns
        return folding.fold(before, Segments(none, len(names)), Rows(args, nothing.time, none))[1]

    def commit(self) -> None:
        """Writes the changed windows, and removes the forgotten ones."""
        self._state.write(self._puts, self._deletes, self._ranges)

    # ------------------------------------------------------------------------------------------------ what is changed

    def _windows(self, flow: Flow, clock: WindowClock, reached: Reached) -> tuple[_Windows, Int64s]:
        """The windows, and for each pair of record and window the window's number."""
        group, first = reached.distinct(flow.key)
        state, numbers, start = self._state, flow.key[reached.record[first]], reached.start[first]
        kbs = [self._keys[number] for number in numbers.tolist()]
        names = window_keys(kbs, start)
        # Windows that are closed but not yet forgotten come here again: less than one advance of them.
        passed = (state.forgotten + 1, clock.end + 1 if clock.end > clock.before else 0)
        index, closing = list(state.places(*passed)), []
        known = set(names) if index else set()
        for row_key in index:
            place, begin, kb = state.indexed(row_key)
            if place > clock.before and (name := window_key(kb, begin)) not in known:
                names.append(name)
                kbs.append(kb)
                closing.append(begin)
        if self._final:
            index += state.given_places(*passed)
        start = np.concatenate([start, np.array(closing, dtype=np.int64)])
        rows: list[bytes | None] = [None] * len(names)
        there = np.flatnonzero(start <= state.highest).tolist()  # no later one was ever written
        for at, row in zip(there, state.get_many([names[at] for at in there]), strict=True):
            rows[at] = row
        fresh = np.array([row is None for row in rows], dtype=np.bool_)
        firsts = np.concatenate([reached.record[first], np.full(len(closing), -1, dtype=np.int64)])
        return _Windows(kbs, start, names, self._numbers(kbs, start), firsts, fresh, rows, index), group

    # ---------------------------------------------------------------------------------------- what becomes of windows

    def _forgotten(self, clock: WindowClock, reached: Reached) -> tuple[Int64s, int]:
        """The starts up to which windows are forgotten after each record, and at the end of the batch."""
        if clock.end == clock.before:  # as in a loop: windows are forgotten only when windows close
            return np.full(len(clock.closed), self._state.forgotten, dtype=np.int64), self._state.forgotten
        horizon = self._site.horizon()
        if horizon is None:
            limits = clock.forgotten(reached, self._state.highest)
            return limits, int(limits[-1]) if len(limits) else -1
        unseen = clock.closed_by(np.array([horizon - 1], dtype=np.int64))
        limit = min(clock.kept, int(unseen[0]))
        return np.full(len(clock.closed), limit, dtype=np.int64), limit

    def _account(self, windows: _Windows, clock: WindowClock) -> Int64s:
        """The windows that the batch closes; notes in the metrics how many are open at each record."""
        closing = np.flatnonzero((windows.start > clock.before) & (windows.start <= clock.end))
        starts, records = windows.start[closing], len(clock.closed)
        opened = np.bincount(windows.first[windows.fresh], minlength=records)
        # a window that closes with a record is not open at it
        gone = np.maximum(clock.timing.seen(clock.closing(starts), clock.due(starts)) - 1, 0)
        closed = np.bincount(gone, minlength=records)
        is_open = self._state.open + np.cumsum(opened[:records] - closed[:records])
        self._state.open += int(opened.sum()) - len(closing)
        if records and (most := int(is_open.max())) > 0:
            self._site.peak(HELD_RECORDS, most)
        return closing

    def _keep(self, windows: _Windows, ended: Groups, forgotten: int) -> None:
        """Decides what to write and what to remove: nothing remains of a window that no record can reach."""
        state = self._state
        for row_key in windows.index:
            place, start, kb = state.indexed(row_key)
            if place <= forgotten:
                name = window_key(kb, start)
                self._deletes += [row_key, state.groups + name]
                self._gone.append((kb, start))
                if self._folding.keeps:
                    prefix = state.entries + name
                    self._ranges.append((prefix, prefix_end(prefix) or b""))
        chosen = (windows.first >= 0) & (windows.start > forgotten)
        puts, deletes = self._folding.writes(chosen)
        self._puts += puts
        self._deletes += deletes
        kept = np.flatnonzero(chosen)
        starts, fresh = windows.start.tolist(), windows.fresh.tolist()
        for number, row in zip(kept.tolist(), self._folding.store(ended.take(kept)), strict=True):
            self._puts.append((state.groups + windows.name[number], row))
            if fresh[number]:
                start = starts[number]
                self._puts.append((state.index(start, start, windows.kb[number]), b""))

    def _entry_ranges(self, windows: _Windows) -> EntryRanges:
        entries = self._state.entries
        prefixes = [entries + name for name in windows.name] if self._folding.keeps else []
        return EntryRanges(self._state.below, prefixes, ~windows.fresh & ((windows.first >= 0) | self._final))

    # --------------------------------------------------------------------------------------------------- what is sent

    def _changes(self, flow: Flow, reached: Reached, group: Int64s, now: Groups) -> Flow:
        keys = self._results.bounded(taken(flow.keys, reached.record), reached.start, self._ends(reached.start))
        at = self._site.give(flow.at.take(reached.record), turns(reached.record))
        sent, failed = self._sent(at, group, keys, now)
        return sent.select(self._results.kept(flow, reached.record, failed))

    def _finals(self, flow: Flow, windows: _Windows, ended: Groups, clock: WindowClock, closing: Int64s) -> Flow:
        """The results of the windows that close, in the order of their records, then of (start, encoded key)."""
        due, keys = clock.due(windows.start[closing]), [windows.kb[number] for number in closing.tolist()]
        order, at = clock.timing.sent(clock.timing.passes(due), due, keys)
        closing = closing[order]
        results = ended.take(closing)
        start = windows.start[closing]
        groups = self._results.group_keys(flow, [keys[number] for number in order.tolist()])
        bounds = self._results.bounded(groups, start, self._ends(start))
        return self._final_ones(at, closing, bounds, results)

    def _final_ones(self, at: Moments, number: Int64s, keys: tuple[pa.Array, ...], results: Groups) -> Flow:
        sent, failed = self._sent(at, number, keys, results)
        return sent.select(self._site.kept(sent, failed, self._site.node.schema, waited=True))

    def _sent(self, at: Moments, number: Int64s, keys: tuple[pa.Array, ...], results: Groups) -> tuple[Flow, Failed]:
        found, present = self._folding.results(keys, results), np.ones(len(at), dtype=np.bool_)
        present[list(found.failed)] = False
        return Flow(at, number, self._space, results.time, present, keys, found.columns), found.failed

    def _numbers(self, kbs: Sequence[bytes], start: Int64s) -> Int64s:
        """The numbers of the keys of windows."""
        return self._space.encoded(names_of(kbs, start, self._ends(start)))

    def _forget(self, flow: Flow, windows: _Windows, limits: Int64s, forgotten: int) -> None:
        """Removes the results of windows that no record can reach, each after the record that made it unreachable."""
        kbs, starts = zip(*self._gone, strict=True) if self._gone else ((), ())  # these the store has
        before = np.array(starts, dtype=np.int64)
        passed = np.flatnonzero(windows.fresh & (windows.start <= forgotten))
        start = np.concatenate([before, windows.start[passed]])
        numbers = np.concatenate([self._numbers(kbs, before), windows.number[passed]])
        stored = np.arange(len(start)) < len(before)
        self._results.removed(flow, numbers, np.searchsorted(limits, start), stored)
