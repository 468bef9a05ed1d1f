"""Sliding windows and sessions over a table whose row times never change.

A row that goes may shrink a session, divide it or end it, so results are computed from rows, not from what was computed
before: the rows of a group are kept, in the order of (time, key), and each window that a change concerns is aggregated
again; a session that only gets rows at its end, once for all of them. Many windows are aggregated at once, on columns;
only where they lie (`layouts`) is found in a loop.

A row that comes too late for one of its windows is counted once. It is kept as long as a window with it is open.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.plan.nodes import Aggregate
from vsc.runtime.expressions import true_rows
from vsc.runtime.metrics import LONGEST_SESSION, Dropped
from vsc.runtime.operators.aggregate.functions.states import EntryRanges, Rows
from vsc.runtime.operators.aggregate.groups.folding import Folding
from vsc.runtime.operators.aggregate.groups.state import SUFFIX
from vsc.runtime.operators.aggregate.groups.travelled import Travelled
from vsc.runtime.operators.aggregate.windows.kept_rows import KeptRows
from vsc.runtime.operators.aggregate.windows.layouts import Bounds, layout_of
from vsc.runtime.operators.aggregate.windows.results import WindowResults, names_of
from vsc.runtime.operators.columns.evaluation import Computed
from vsc.runtime.operators.columns.flow import Flow, stacked, taken
from vsc.runtime.operators.columns.moments import turns
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.operators.site import Site
from vsc.runtime.records import Int64s, Mask

__all__ = ["TableWindows"]

_AT_ONCE = 1 << 20
"""About so many rows are aggregated at once."""


@dataclass(slots=True)
class _Group:
    """The rows of one group, by time, then by their keys in the table; `refs` are their places in the batch's columns.
    `units` follow from the times. `stored` are the rows from before the batch, `before` their units."""

    kb: bytes
    stored: list[tuple[int, bytes]]
    times: list[int]
    names: list[tuple[int, bytes]]
    refs: list[int]
    units: list[Bounds]
    before: list[Bounds]
    grows: tuple[int, int, int] | None = None
    """Of the session that was sent last: its start, the run of its rows, how many they are."""


class _Sent(NamedTuple):
    """What is sent: the change that causes it, the group, the window, and its highest time. The window has the first
    `rows` rows of a run (-1: it is gone)."""

    record: int
    kb: bytes
    window: Bounds
    time: int
    run: int
    rows: int


class TableWindows:
    """The windows of one aggregate, for one batch."""

    def __init__(self, site: Site, operation: Aggregate, folding: Folding, travelled: Travelled) -> None:
        assert operation.window is not None
        self._site, self._folding, self._travelled = site, folding, travelled
        self._window, self._layout = operation.window, layout_of(operation.window)
        self._state = KeptRows(site.kv, site.prefix + SUFFIX, operation)
        self._results = WindowResults(site)
        self._groups: dict[int, _Group] = {}
        self._sent, self._late = list[_Sent](), list[int]()
        self._runs, self._rows, self._parts = list[list[int]](), 0, list[Computed]()
        self._args, self._at = tuple[pa.Array, ...](), np.zeros(0, dtype=np.int64)
        self._closed, self._columns = self._state.closed, tuple[pa.Array, ...]()
        self._first, self._now = 0, self._state.stream_time

    def process(self, flow: Flow) -> Flow:
        """The changes of windows for those of the table's rows."""
        site = self._site
        taken_back, added = true_rows(flow.values[0]), true_rows(flow.values[1])
        before, after = self._travelled.columns(flow.values)
        stored = self._load(flow)
        self._first = len(stored[0]) if stored else 0
        self._columns = stacked(stored, after) if stored else tuple(after)
        times = np.concatenate([self._times(), flow.time])
        asked = np.concatenate([np.ones(self._first, dtype=np.bool_), added])
        found = self._folding.arguments(self._columns, times, asked)
        failed = {row - self._first: why for row, why in found.failed.items() if row >= self._first}
        added = added & site.kept(flow, failed)
        self._args, self._at = found.columns, times
        self._loop(flow, self._names(before, taken_back), self._names(after, added))
        self._now = site.timing(flow, self._state.stream_time).kept
        self._closed = max(self._closed, self._now - self._window.held)
        site.lose(Dropped.WINDOW_CLOSED, flow, np.array(self._late, dtype=np.int64))
        return self._given(flow)

    def commit(self) -> None:
        """Writes the rows that came, and removes those that go, or that no open window has."""
        state, closed = self._state, self._closed
        fresh: list[int] = []
        for group in self._groups.values():
            self._pass(group, closed)
            gone = [name for name in group.stored if not self._has(group, name)]
            new = [(name, ref) for name, ref in zip(group.names, group.refs, strict=True) if ref >= self._first]
            fresh += [ref for _, ref in new]
            state.change(group.kb, gone, [name for name, _ in new], group.before, group.units)
        state.write(taken(self._columns, np.array(fresh, dtype=np.int64)), closed, self._now)

    # ---------------------------------------------------------------------------------------------------- what there is

    def _load(self, flow: Flow) -> tuple[pa.Array, ...]:
        """Reads the rows of the groups that changes may concern; returns their columns."""
        order = np.argsort(flow.key, kind="stable")
        number, time = flow.key[order], flow.time[order]
        begins = np.flatnonzero(np.append(True, number[1:] != number[:-1])[: len(number)])
        found: list[bytes] = []
        if not len(begins):
            return ()
        lows, highs = (of.reduceat(time, begins).tolist() for of in (np.minimum, np.maximum))
        for key, low, high in zip(number[begins].tolist(), lows, highs, strict=True):
            kb = flow.space.keys[key]
            names, rows = self._state.around(kb, low, high)
            refs = list(range(len(found), len(found) + len(rows)))
            times = [at for at, _ in names]
            units = self._layout.units(times)
            self._groups[key] = _Group(kb, list(names), times, list(names), refs, units, list(units))
            found += rows
        return self._state.decoded(found)

    def _times(self) -> Int64s:
        """The times of the stored rows."""
        return np.array([at for group in self._groups.values() for at, _ in group.stored], dtype=np.int64)

    def _names(self, columns: Sequence[pa.Array], there: Mask) -> npt.NDArray[np.object_]:
        """The keys that rows have in the table; None where there is no row."""
        found = np.full(len(there), None, dtype=object)
        names, numbers = self._travelled.idents([column.filter(pa.array(there)) for column in columns])
        found[there] = [names[number] for number in numbers.tolist()]
        return found

    @staticmethod
    def _has(group: _Group, name: tuple[int, bytes]) -> bool:
        at = bisect_left(group.names, name)
        return at < len(group.names) and group.names[at] == name

    # -------------------------------------------------------------------------------------------------------- the loop

    def _loop(self, flow: Flow, old: npt.NDArray[np.object_], new: npt.NDArray[np.object_]) -> None:
        closed = np.maximum.accumulate(np.append(self._closed, self._site.moving(flow) - self._window.held))[1:]
        changes = zip(flow.key.tolist(), flow.time.tolist(), closed.tolist(), old.tolist(), new.tolist(), strict=True)
        for row, (key, time, passed, was, now) in enumerate(changes):
            if was is not None or now is not None:
                self._pass(self._groups[key], passed)
                self._change(row, self._groups[key], time, passed, was, now)
                if self._rows >= _AT_ONCE:
                    self._compute(flow)

    def _pass(self, group: _Group, closed: int) -> None:
        """Leaves out the rows that are in no open window any more."""
        passed = bisect_left(group.units, self._layout.gone(closed), key=lambda unit: unit[1])
        if passed:
            count = bisect_right(group.times, group.units[passed - 1][1])
            del group.units[:passed], group.times[:count], group.names[:count], group.refs[:count]

    def _change(self, row: int, group: _Group, time: int, closed: int, was: bytes | None, now: bytes | None) -> None:
        layout, times, units = self._layout, group.times, group.units
        if layout.over(time, closed):
            self._late.append(row)
            return
        before = {window: self._last(times, window) for window in layout.found(times, units, time)}
        went = was is not None and self._take_out(group, time, was)
        if now is not None:
            self._put_in(group, time, now, self._first + row)
        after, late = layout.found(times, units, time), layout.partly(time, closed)
        if now is not None and layout.late(after, time, closed):
            self._take_out(group, time, now)
            late, after = True, layout.found(times, units, time)
        elif now is None:
            late = not went and time <= closed
        self._late += [row] * late
        if now is None and not went:
            return
        for window, last in before.items():
            if window not in after and not layout.fixed(window, closed):
                self._sent.append(_Sent(row, group.kb, window, last, -1, 0))
        for window in after:
            concerned = window[0] <= time <= window[1]
            if not layout.fixed(window, closed) and (concerned or window not in before):
                low, high = bisect_left(times, window[0]), bisect_right(times, window[1])
                run = self._run(group, window[0], low, high, self._first + row)
                self._sent.append(_Sent(row, group.kb, window, times[high - 1], run, high - low))

    def _run(self, group: _Group, start: int, low: int, high: int, ref: int) -> int:
        """The run that has the rows of a window: the last one of a session to which the row `ref` is appended."""
        grows, count = group.grows, high - low
        if grows is not None and grows[0] == start and grows[2] == count - 1 and group.refs[high - 1] == ref:
            run = grows[1]
            self._runs[run].append(ref)
            self._rows += 1
        else:
            run = len(self._runs)
            self._runs.append(group.refs[low:high])
            self._rows += count
        group.grows = (start, run, count) if self._window.kind == "session" else None
        return run

    def _take_out(self, group: _Group, time: int, name: bytes) -> bool:
        """Whether a row is there, which is then no longer."""
        at = bisect_left(group.names, (time, name))
        if not self._has(group, (time, name)):
            return False
        del group.times[at], group.names[at], group.refs[at]
        self._layout.removed(group.units, group.times, time)
        return True

    def _put_in(self, group: _Group, time: int, name: bytes, ref: int) -> None:
        self._take_out(group, time, name)
        at = bisect_left(group.names, (time, name))
        group.times.insert(at, time)
        group.names.insert(at, (time, name))
        group.refs.insert(at, ref)
        self._layout.added(group.units, time)

    @staticmethod
    def _last(times: Sequence[int], window: Bounds) -> int:
        return times[bisect_right(times, window[1]) - 1]

    # ---------------------------------------------------------------------------------------------------- what is sent

    def _given(self, flow: Flow) -> Flow:
        """The changes that were sent, put into the table."""
        site, sent, results = self._site, self._sent, self._results
        self._compute(flow)
        record, time = (np.array([one[place] for one in sent], dtype=np.int64) for place in (0, 3))
        start, end = _bounds(sent)
        kbs, present = [one.kb for one in sent], np.array([one.run >= 0 for one in sent], dtype=np.bool_)
        if self._window.kind == "session" and present.any():
            site.peak(LONGEST_SESSION, int((end - start)[present].max()))
        failed = {row: why for part in self._parts for row, why in part.failed.items()}
        present[list(failed)] = False
        at = site.give(flow.at.take(record), turns(record))
        keys = results.bounded(results.group_keys(flow, kbs), start, end)
        key = site.space.encoded(names_of(kbs, start, end))
        values = tuple(pa.concat_arrays(column) for column in zip(*(part.columns for part in self._parts), strict=True))
        found = Flow(at, key, site.space, time, present, keys, values)
        return site.stored(found.select(results.kept(flow, record, failed)))

    def _compute(self, flow: Flow) -> None:
        """The results of the windows that were sent since the last time; null for those that are gone."""
        begin = sum(len(part.columns[0]) for part in self._parts)
        sent, sizes = self._sent[begin:], [len(run) for run in self._runs]
        there = np.array([one.run >= 0 for one in sent], dtype=np.bool_)
        of = [one for one in sent if one.run >= 0]
        refs = np.array([ref for run in self._runs for ref in run], dtype=np.int64)
        segments = Segments(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
        nowhere = EntryRanges(self._state.kv, [b""] * len(sizes), np.zeros(len(sizes), dtype=np.bool_))
        empty = self._folding.open(nowhere, self._folding.load([None] * len(sizes)))
        rows = Rows(taken(self._args, refs), self._at[refs], np.arange(len(refs), dtype=np.int64))
        running, _ = self._folding.fold(empty, segments, rows)
        run, count, time = (np.array([one[place] for one in of], dtype=np.int64) for place in (4, 5, 3))
        now = replace(running.take(segments.starts[run] + count - 1), time=time)
        keys = self._results.bounded(self._results.group_keys(flow, [one.kb for one in of]), *_bounds(of))
        found, back = self._folding.results(keys, now), begin + np.flatnonzero(there)
        columns = taken(found.columns, np.where(there, np.cumsum(there) - 1, -1))
        self._parts.append(Computed(tuple(columns), {int(back[row]): why for row, why in found.failed.items()}))
        self._runs, self._rows = [], 0
        for group in self._groups.values():
            group.grows = None


def _bounds(sent: Sequence[_Sent]) -> tuple[Int64s, Int64s]:
    """The starts and the ends of windows."""
    start, end = (np.array([one.window[side] for one in sent], dtype=np.int64) for side in (0, 1))
    return start, end
