"""`aggregate` of a table: a change takes the old row back and adds the new one, with one result.

A group that has lost its last row is a tombstone (D13). A change that finds nothing to take back still sends the
group's result again, as in Kafka Streams. A row on which an expression fails is not part of its group.

A change is two events: the old row is taken back, the new one is added; either may be missing. A group that loses its
last row ends, and its next row begins an empty group. So the events of a group are cut into *lives*, which are folded
like groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.runtime.expressions import true_rows
from vsc.runtime.operators.aggregate.functions.states import EntryRanges, Rows
from vsc.runtime.operators.aggregate.groups.folding import Folding, Groups
from vsc.runtime.operators.aggregate.groups.state import AggregateState
from vsc.runtime.operators.aggregate.groups.stream_groups import numbered
from vsc.runtime.operators.aggregate.groups.travelled import Travelled
from vsc.runtime.operators.columns.flow import Flow, stacked
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.operators.site import Site
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.kv_base import prefix_end

__all__ = ["TableGroupColumns"]


@dataclass(frozen=True, slots=True)
class _Lives:
    """The lives of groups, ascending by group, then by time. `sign` says what each event does (0: nothing).

    `group` is the group of each life; `first` marks the life that continues the group from before the batch, `last` the
    one that it ends with.
    """

    segments: Segments
    sign: Int64s
    group: Int64s
    first: Mask
    last: Mask

    @staticmethod
    def of(group: Int64s, steps: Int64s, rows: Int64s) -> _Lives:
        """The lives of alternating old and new events, each of its `group`; `rows`: each group's rows at first."""
        events = Segments(group, len(rows))
        running = events.counts(steps[events.order], rows)
        # A life begins where a change finds no rows, so only with the first event of one: a change that takes the last
        # row back and adds another is one result of one life.
        before, firsts = events.before(running, rows), events.firsts
        begins = firsts | ((before == 0) & (events.order % 2 == 0))
        sign, life = np.empty_like(steps), np.empty_like(group)
        sign[events.order] = running - before  # what an event did: one that finds nothing to take back did nothing
        life[events.order] = np.cumsum(begins) - 1
        first, of = firsts[begins], events.group[begins]
        last = np.append(first[1:], True) if len(first) else first
        return _Lives(Segments(life, len(of)), sign, of, first, last)


class TableGroupColumns:
    """The groups of a table, for one batch."""

    def __init__(self, site: Site, folding: Folding, travelled: Travelled, state: AggregateState) -> None:
        self._site, self._folding, self._travelled, self._state = site, folding, travelled, state
        self._touched: list[bytes] = []
        self._start, self._known = folding.load([]), np.zeros(0, dtype=np.bool_)
        self._numbers, self._unseen = np.zeros(0, dtype=np.int64), self._known
        self._ended: tuple[_Lives, Groups, Mask] | None = None

    def process(self, flow: Flow) -> Flow:
        """One result for each change."""
        group = self._open(flow)
        args, steps = self._events(flow)
        times = np.repeat(flow.time, 2)
        return self._sent(flow, *self._fold(np.repeat(group, 2), steps, args, times, None, self._idents(flow)))

    def commit(self) -> None:
        """Writes the changed groups, and removes those that have lost their last row."""
        if self._ended is None:
            return
        lives, ended, known = self._ended
        state, names = self._state, [self._touched[g] for g in lives.group.tolist()]
        there = lives.last & ((ended.rows > 0) | self._unseen[lives.group])
        puts, deletes = self._folding.writes(there)
        kept = np.flatnonzero(there)
        rows = self._folding.store(ended.take(kept))
        puts += [(state.groups + names[life], row) for life, row in zip(kept.tolist(), rows, strict=True)]
        gone = np.flatnonzero(lives.last & ~there & known[lives.group])
        deletes += [state.groups + names[life] for life in gone.tolist()]
        # The stored entries are those of a group's first life. Unless that lasts to the end, with rows, they go as a
        # whole; what a later life keeps is written once the range is gone.
        ranges = []
        if self._folding.keeps:
            over = np.flatnonzero(known[lives.group] & lives.first & ~(lives.last & there))
            prefixes = [state.entries + names[life] for life in over.tolist()]
            ranges = [(prefix, prefix_end(prefix) or b"") for prefix in prefixes]
        state.write(puts, deletes, ranges)

    def _open(self, flow: Flow) -> Int64s:
        """Reads the groups of changes; returns which of these each change belongs to."""
        keys = flow.space.keys
        touched, group = numbered(flow.key, len(keys))
        self._numbers, self._touched = touched, [keys[number] for number in touched.tolist()]
        data = self._state.get_many(self._touched)
        self._known = np.array([row is not None for row in data], dtype=np.bool_)
        self._unseen = np.zeros(len(data), dtype=np.bool_)
        self._start = self._folding.load([*data, None])  # the last one is the empty group
        return group

    def _fold(
        self, group: Int64s, steps: Int64s, args: tuple[pa.Array, ...], times: Int64s, arrivals: Int64s | None,
        idents: npt.NDArray[np.object_],
    ) -> tuple[Segments, Groups]:  # fmt: skip
        """The groups' states at alternating old and new events, and where each event stands among them.

        `arrivals`: those of the new rows; None: in the order of the events.
        """
        folding, start = self._folding, self._start
        lives = _Lives.of(group, steps, start.rows[:-1])
        stored = lives.first & self._known[lives.group]
        begun = start.take(np.where(stored, lives.group, len(self._touched)))
        prefixes = [self._state.entries + self._touched[g] for g in lives.group.tolist()]
        begun = folding.open(EntryRanges(self._state.below, prefixes, stored), begun)
        arrivals = self._arrivals(lives.sign) if arrivals is None else arrivals
        running, ended = folding.fold(begun, lives.segments, Rows(args, times, arrivals, lives.sign, idents))
        self._ended = lives, ended, self._known
        return lives.segments, running

    def _events(self, flow: Flow, since: Int64s | None = None) -> tuple[tuple[pa.Array, ...], Int64s]:
        """The calls' arguments for the two events of each change, and what they do to the number of rows. `since`: when
        the row to take back has begun, where that is known."""
        taken, added = true_rows(flow.values[0]), true_rows(flow.values[1])
        before, after = self._travelled.columns(flow.values)
        old = self._folding.arguments(before, flow.time if since is None else since, taken)
        new = self._folding.arguments(after, flow.time, added)
        steps = np.zeros(2 * len(flow), dtype=np.int64)
        steps[::2], steps[1::2] = -taken.astype(np.int64), added & self._site.kept(flow, new.failed)
        steps[[2 * row for row in old.failed]] = 0  # its failure was handled when the row was to be added
        turn = pa.array(np.arange(2 * len(flow)).reshape(2, -1).T.reshape(-1))
        return tuple(column.take(turn) for column in stacked(old.columns, new.columns)), steps

    def _idents(self, flow: Flow) -> npt.NDArray[np.object_]:
        """For each event the identity of its row in the table; empty where the event has no row."""
        found = np.full(2 * len(flow), b"", dtype=object)
        for side, columns in enumerate(self._travelled.columns(flow.values)):
            there = true_rows(flow.values[side])
            names, numbers = self._travelled.idents([column.filter(pa.array(there)) for column in columns])
            found[np.flatnonzero(there) * 2 + side] = [names[number] for number in numbers.tolist()]
        return found

    def _arrivals(self, sign: Int64s) -> Int64s:
        arrival = np.zeros(len(sign), dtype=np.int64)
        numbers = np.flatnonzero(sign)
        arrival[numbers] = self._state.arrive_many(len(numbers))
        return arrival

    def _sent(self, flow: Flow, segments: Segments, running: Groups) -> Flow:
        """The results, each as of the second event of its change."""
        now = self._folding.timed(running.take(segments.unsorted()[1::2]))
        there = now.rows > 0
        found = self._folding.results(flow.keys, now, there)
        changed = replace(flow, time=now.time, present=there, values=found.columns)
        return self._site.stored(changed.select(self._site.kept(flow, found.failed)))
