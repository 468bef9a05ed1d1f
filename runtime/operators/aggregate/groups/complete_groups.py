"""`aggregate` of a table with a complete history: as of every time, a group's result is that of the rows valid then.

A change is valid on an interval. If it comes last in its group, it is one step from the group's newest rows, as in
`table_groups`. If rows of the group have begun or ended after it, these are undone first; then the change is made, and
they are done again (`past`): so the group is as of each later moment in turn, and its results are read there. All steps
of a batch are folded together.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.aggregate.groups.folding import Folding
from vsc.runtime.operators.aggregate.groups.past import NOWHERE, Changed, Entry, Past, Row
from vsc.runtime.operators.aggregate.groups.state import AggregateState
from vsc.runtime.operators.aggregate.groups.table_groups import TableGroupColumns
from vsc.runtime.operators.aggregate.groups.travelled import Travelled
from vsc.runtime.operators.columns.flow import Flow, taken
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.operators.complete.pieces import Pieces, sent
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.tables.store import VersionedColumns
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.api import NEVER

__all__ = ["CompleteGroups"]

_Entries = dict[tuple[int, int, bytes], Entry]


@dataclass(frozen=True, slots=True)
class _Changes:
    """The changes of a batch. `old` and `new` are the places of their rows (`NOWHERE`: none); `since` and `came` say
    since when the old row is valid and its arrival, `arrival` is that of the new one. `begin`: from when on results are
    asked."""

    group: Int64s
    time: Int64s
    until: Int64s
    begin: Int64s
    ident: list[bytes]
    old: Int64s
    since: Int64s
    came: Int64s
    new: Int64s
    arrival: Int64s

    def rows(self, change: int, came: int | None) -> Entry:
        """The rows of a change; `came`: the arrival of the old one, if it is known from elsewhere."""
        old, new = int(self.old[change]), int(self.new[change])
        arrival = int(self.came[change]) if came is None else came
        before = None if old == NOWHERE else Row(old, int(self.since[change]), arrival)
        return Entry(before, None if new == NOWHERE else Row(new, int(self.time[change]), int(self.arrival[change])))


@dataclass(slots=True)
class _Steps:
    """Steps of groups: `(group, place of the row to take back, place of the row to add, its time, its arrival, when it
    happens)`, and the results that are asked behind them: `(step, change, time)`."""

    steps: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    idents: list[bytes] = field(default_factory=list)
    asked: list[tuple[int, int, int]] = field(default_factory=list)

    def take(self, group: int, ident: bytes, at: int, old: Row | None, new: Row | None) -> None:
        """One step, of the row `ident`, at a time."""
        to_add = (NOWHERE, at, 0) if new is None else new
        self.steps.append((group, NOWHERE if old is None else old.place, *to_add, at))
        self.idents.append(ident)

    def ask(self, change: int, time: int) -> None:
        """The result behind the last step, as of a time, for a change."""
        self.asked.append((len(self.steps) - 1, change, time))


class CompleteGroups(TableGroupColumns):
    """The groups of a table with a complete history, for one batch."""

    def __init__(self, site: Site, folding: Folding, travelled: Travelled, state: AggregateState, past: Past) -> None:
        super().__init__(site, folding, travelled, state)
        assert isinstance(site.table, VersionedColumns)
        self._table, self._past = site.table, past
        self._written = Changed.of((), {}), Changed.of((), {})
        self._args: tuple[pa.Array, ...] = ()
        self._arrived: dict[tuple[bytes, bytes], int | None] = {}
        self._highest = np.zeros(0, dtype=np.int64)
        self._forgotten = (-1, -1)

    def process(self, flow: Flow) -> Flow:
        """The results at every moment from which a change makes them others."""
        earliest = self._table.earliest(self._site.moving(flow))
        self._forgotten = int(self._table.earliest(np.array([-1]))[0]), int(earliest.max(initial=-1))
        since, until = (column.to_numpy() for column in flow.values[-2:])
        kept = until > earliest
        flow, since, until, earliest = flow.select(kept), since[kept], until[kept], earliest[kept]
        if not len(flow):
            return self._site.stored(Flow.empty(self._site.node.schema, flow.space))
        group = self._open(flow)
        args, signs = self._events(flow, since)
        changes = self._changes(flow, group, since, until, earliest, signs)
        late = self._late(changes)
        in_order = np.flatnonzero(~late[group])
        loop = _Steps()
        entries: _Entries = {}
        places = 2 * len(flow)
        for number in np.flatnonzero(late).tolist():
            mine = np.flatnonzero(group == number)
            since = int(changes.begin[mine].min())
            known = self._past.of(self._touched[number], since, int(self._highest[number]), places)
            places += 2 * len(known)
            entries |= _again(number, mine.tolist(), changes, known, loop)
        self._written = self._plain(changes, in_order), Changed.of(self._touched, entries)
        self._args = tuple(pa.concat_arrays(list(c)) for c in zip(args, *self._past.rows, strict=True))
        return self._results(flow, changes, in_order, loop)

    def commit(self) -> None:
        """Writes the changed groups and entries."""
        super().commit()
        self._past.write(*self._written, self._args, self._arrived, self._forgotten)

    def _changes(
        self, flow: Flow, group: Int64s, since: Int64s, until: Int64s, earliest: Int64s, signs: Int64s
    ) -> _Changes:
        rows = np.arange(len(flow), dtype=np.int64)
        there = signs.reshape(-1, 2) != 0
        old, new = np.where(there[:, 0], 2 * rows, NOWHERE), np.where(there[:, 1], 2 * rows + 1, NOWHERE)
        idents = self._idents(flow)
        ident = [a or b for a, b in zip(idents[::2].tolist(), idents[1::2].tolist(), strict=True)]
        arrival = self._state.arrive_many(len(flow))
        came = self._came(group, ident, old, new, until, arrival)
        begin = np.maximum(flow.time, earliest)
        return _Changes(group, flow.time, until, begin, ident, old, since, came, new, arrival)

    def _came(
        self, group: Int64s, ident: list[bytes], old: Int64s, new: Int64s, until: Int64s, arrival: Int64s
    ) -> Int64s:
        """The arrivals of the newest rows that are taken back, if arrivals matter; notes those of the rows added."""
        came = np.zeros(len(group), dtype=np.int64)
        if not self._folding.calls.numbered:
            return came
        ends = np.flatnonzero(until == NEVER)  # the others are not about the newest row
        pairs = [(self._touched[g], i) for g, i in zip(group.tolist(), ident, strict=True)]
        asked = list(dict.fromkeys(pairs[row] for row in ends.tolist() if old[row] != NOWHERE))
        known: dict[tuple[bytes, bytes], int | None] = dict(zip(asked, self._past.arrivals(asked), strict=True))
        for row in ends.tolist():
            came[row] = known.get(pairs[row]) or 0
            known[pairs[row]] = int(arrival[row]) if new[row] != NOWHERE else None
            self._arrived[pairs[row]] = known[pairs[row]]
        return came

    def _late(self, changes: _Changes) -> Mask:
        """Which groups have a change that is not the last thing that has happened in them."""
        start, groups = self._start, len(self._touched)
        highest = start.time[:groups].copy()
        ended = np.flatnonzero(start.rows[:groups] == 0)
        highest[ended] = np.maximum(highest[ended], self._table.newest_times(self._numbers[ended]))
        self._highest = highest
        by_group = Segments(changes.group, groups)
        time, firsts = changes.time[by_group.order], by_group.firsts
        before = np.append(-1, time[:-1])
        back = np.where(firsts, time <= highest[by_group.group], time < before)
        back |= changes.until[by_group.order] < NEVER
        late = np.zeros(groups, dtype=np.bool_)
        late[by_group.group[back]] = True
        seen: set[tuple[int, int, bytes]] = set()
        tied = np.zeros(groups, dtype=np.bool_)
        tied[by_group.group[~firsts & (time == before)]] = True
        for row in np.flatnonzero((tied & ~late)[changes.group]).tolist():
            entry = int(changes.group[row]), int(changes.time[row]), changes.ident[row]
            late[entry[0]] |= entry in seen
            seen.add(entry)
        return late

    def _plain(self, changes: _Changes, rows: Int64s) -> Changed:
        """The entries of changes that come in order."""
        return Changed(
            self._touched, changes.group[rows], changes.time[rows],
            [changes.ident[row] for row in rows.tolist()], changes.old[rows], changes.since[rows], changes.came[rows],
            changes.new[rows], changes.arrival[rows],
        )  # fmt: skip

    def _results(self, flow: Flow, changes: _Changes, in_order: Int64s, loop: _Steps) -> Flow:
        """Folds all steps, and sends the results that are asked."""
        c, begun = changes, len(in_order)
        steps = np.array(loop.steps, dtype=np.int64).reshape(-1, 6)
        plain = np.stack([x[in_order] for x in (c.group, c.old, c.new, c.time, c.arrival, c.time)], axis=1)
        group, old, new, since, arrival, at = np.concatenate([plain, steps]).T
        idents = np.array([*(c.ident[row] for row in in_order.tolist()), *loop.idents, None], dtype=object)[:-1]
        place = np.stack([old, new], axis=1).reshape(-1)
        signs = np.where(place == NOWHERE, 0, np.tile([-1, 1], len(group)))
        times = np.stack([at, since], axis=1).reshape(-1)
        segments, running = self._fold(
            np.repeat(group, 2), signs, taken(self._args, place), times, np.repeat(arrival, 2), np.repeat(idents, 2)
        )
        asked = np.array(loop.asked, dtype=np.int64).reshape(-1, 3)
        step = np.concatenate([np.arange(begun), asked[:, 0] + begun])
        event, time = np.concatenate([in_order, asked[:, 1]]), np.concatenate([c.begin[in_order], asked[:, 2]])
        order = np.argsort(event, kind="stable")  # those of one change are ascending by time already
        step, event, time = step[order], event[order], time[order]

        now = running.take(segments.unsorted()[1::2][step])
        there, keys = now.rows > 0, taken(flow.keys, event)
        found = self._folding.results(keys, replace(now, time=time), there)
        self._site.kept(replace(flow.take(event), time=time), found.failed)
        there[list(found.failed)] = False
        ends = np.append(event[1:] != event[:-1], True)
        until = np.where(ends, c.until[event], np.append(time[1:], 0))
        pieces = Pieces(event, flow.key[event], time, until, ends, there, keys, found.columns)
        result = sent(self._site, flow.at, flow.space, pieces)
        self._lasting(flow, result)
        self._settle(changes)
        return result

    def _lasting(self, flow: Flow, result: Flow) -> None:
        """Keeps a group without rows whose last result is not in the table, so that it is known when it ended."""
        assert self._ended is not None
        lives, ended, _ = self._ended
        over = np.flatnonzero(lives.last & (ended.rows == 0))
        newest = np.full(len(flow.space.keys), -1, dtype=np.int64)
        keys = self._numbers[lives.group[over]]
        newest[keys] = self._table.newest_times(keys)
        np.maximum.at(newest, result.key, result.time)
        self._unseen[lives.group[over[newest[keys] < ended.time[over]]]] = True

    def _settle(self, changes: _Changes) -> None:
        """What happened in a group before its history begins has happened when it begins: an entry of that time is
        known within a batch alone, so the group's time would depend on how the input is cut."""
        assert self._ended is not None
        lives, ended, known = self._ended
        begun = np.full(len(self._touched), -1, dtype=np.int64)
        np.maximum.at(begun, changes.group, changes.begin)
        time = np.where(ended.rows > 0, np.maximum(ended.time, begun[lives.group]), ended.time)
        self._ended = lives, replace(ended, time=time), known


def _again(
    group: int,
    rows: Iterable[int],
    changes: _Changes,
    known: dict[tuple[int, bytes], Entry],
    steps: _Steps,
) -> _Entries:
    """The steps of a group's changes, one change after the other; returns the entries that they leave changed.

    `known` are the group's entries from the time of the earliest change on.
    """
    times = sorted(known)
    changed: _Entries = {}

    def note(time: int, ident: bytes, entry: Entry) -> None:
        at = bisect_right(times, (time, ident))
        there = at > 0 and times[at - 1] == (time, ident)
        changed[group, time, ident] = known[time, ident] = entry
        if entry == Entry(None, None):
            del known[time, ident]
            if there:
                del times[at - 1]
        elif not there:
            times.insert(at, (time, ident))

    for row in rows:
        ident, time, until = changes.ident[row], int(changes.time[row]), int(changes.until[row])
        following = known.get((until, ident))
        came = following.before.arrival if following is not None and following.before is not None else None
        old, new = changes.rows(row, came)
        later = times[bisect_left(times, (time + 1, b"")) :]
        for key in reversed(later):
            steps.take(group, key[1], key[0], known[key].after, known[key].before)
        steps.take(group, ident, time, old, new)
        here = known.get((time, ident))
        note(time, ident, Entry(old if here is None else here.before, new))
        if until < NEVER:
            note(until, ident, Entry(new, None if following is None else following.after))
        later = times[bisect_left(times, (time + 1, b"")) :]
        begin, at = int(changes.begin[row]), 0
        while at < len(later) and later[at][0] <= begin:
            steps.take(group, later[at][1], later[at][0], *known[later[at]])
            at += 1
        steps.ask(row, begin)
        while at < len(later):
            moment = later[at][0]
            while at < len(later) and later[at][0] == moment:
                steps.take(group, later[at][1], moment, *known[later[at]])
                at += 1
            if moment < until:
                steps.ask(row, moment)
    return changed
