"""Stream time: what the clock of a node shows at its records, and when it releases what is held (D25).

Two rules, behind one interface; operators do not ask which of them holds. ``records``, that of Kafka Streams: the clock
is the highest event time that has reached the node in its partition. ``input``: it is the highest event time of the
node's sources at a record's place in the order, in all partitions alike, less what the node's records may have been
held back above it; where they were held back by fewer sources than the node has, the lowest of several such clocks
(`vsc.plan.clocks`). D12 sorts by the highest time so far in a source partition, so a record's own
place tells the clock of the input, together with what that was when the epoch began.

What is due comes out by the first rule right after the record that moved the clock. By the second it comes out before
the record of the input, in any partition, that moves it to the moment or beyond: that place is known from the *steps*
of the input's clock, which enter a stage as causes without records. The clock there is the moment itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Protocol

import numpy as np
import pyarrow as pa

from vsc.plan.clocks import Branch, NodeClock, node_clocks, shortest_holds
from vsc.plan.nodes import Plan, Stage
from vsc.runtime.operators.columns.keyspace import ranks
from vsc.runtime.operators.columns.moments import Moments, Routes, arrivals, processing, turns
from vsc.runtime.operators.layout import askers
from vsc.runtime.records import DRAIN, END_OF_TIME, NO_WORD, QUIET, STEP, Int64s, Mask, Order, Origin

__all__ = ["InputClock", "StageClocks", "Timing", "by_records"]

_WORD = 8
_COMPARED = 32 * _WORD
"""How much of a key decides what comes first: few keys are longer."""
_SIGN = np.uint64(1 << 63)
_UNMOVED = -1
"""Before all times. By their own clock, no record, nothing comes out: not even what is due already, where a partition
has taken over what another one held (``vsc upgrade --partitions``). That comes out at the next record."""


class Timing(Protocol):
    """The clock of one node through one batch of its records.

    `clock` is what it shows at each record, `now` at the end of the batch, `kept` what the node's state keeps of it.
    Events at which something comes out are numbers, ascending; `never` is beyond the batch. From `ended` on, it is the
    end of the input alone that releases what is held.
    """

    clock: Int64s
    now: int
    kept: int
    never: int
    ended: int

    def passes(self, due: Int64s, own: Int64s | None = None) -> Int64s:
        """The events at which the clock passes these times; not before the records at `own`, if those begin to wait."""

    def seen(self, event: Int64s, due: Int64s) -> Int64s:
        """How many records of the batch come before what is due then and comes out at these events."""

    def sent(
        self, event: Int64s, due: Int64s, keys: Sequence[bytes], place: Int64s | None = None, whole: bool = False
    ) -> tuple[Int64s, Moments]:
        """The order in which this comes out, by (due, key) at an event, and the moment of each, in that order.

        `place`: what takes the place of `due` where all of an event comes out together, whenever it was due. `whole`:
        very long keys are compared to their ends, too.
        """

    def given(self, event: Int64s, turn: Int64s) -> Moments:
        """The moments of what the node gives at these records, `turn` by turn."""


class _ByRecords:
    """The clock moves with the records: the running maximum of their times, which `moving` are."""

    def __init__(self, routes: Routes, name: str, at: Moments, moving: Int64s, before: int) -> None:
        self._routes, self._name, self._at = routes, name, at
        self.clock: Int64s = np.maximum.accumulate(np.append(before, moving))[1:]
        self.now, self.kept = (int(self.clock[-1]),) * 2 if len(self.clock) else (_UNMOVED, before)
        self.never = self.ended = len(self.clock)

    def passes(self, due: Int64s, own: Int64s | None = None) -> Int64s:
        event = np.searchsorted(self.clock, due)
        return event if own is None else np.maximum(event, own)

    def seen(self, event: Int64s, due: Int64s) -> Int64s:
        return np.minimum(event + 1, self.never)

    def sent(
        self, event: Int64s, due: Int64s, keys: Sequence[bytes], place: Int64s | None = None, whole: bool = False
    ) -> tuple[Int64s, Moments]:
        order = np.lexsort((ranks(pa.array(keys, pa.binary())), due if place is None else place, event))
        event = event[order]
        return order, self.given(event, turns(event))

    def given(self, event: Int64s, turn: Int64s) -> Moments:
        return self._routes.given(self._at.take(event), self._name, turn)


def by_records(routes: Routes, name: str, at: Moments, moving: Int64s, before: int) -> Timing:
    """The clock of node `name` that the times `moving` move; `before`: what it showed before the batch."""
    return _ByRecords(routes, name, at, moving, before)


@dataclass(frozen=True, slots=True)
class StageClocks:
    """What the input's clock has to know of a stage, whatever its batches hold.

    By node: its clock, its place in the plan, and those that look into its table. `ending`: the nodes of which what
    comes out at the end of the input is final. `soonest`: see `shortest_holds`.
    """

    nodes: Mapping[str, NodeClock]
    places: Mapping[str, int]
    askers: Mapping[str, frozenset[str]]
    ending: frozenset[str]
    soonest: Mapping[str, int]

    @staticmethod
    def of(plan: Plan, stage: Stage) -> StageClocks:
        """The clocks of a stage."""
        places = {node.name: place for place, node in enumerate(plan.nodes)}
        waiting = (node for node in plan.nodes if node.operation.waits)
        ending = frozenset(node.name for node in waiting if node.kind == "table" or node.operation.in_order)
        return StageClocks(node_clocks(plan), places, askers(plan, stage), ending, shortest_holds(plan))


class InputClock:
    """The clocks of all nodes of one stage in one batch, by the input.

    `order` is that of the causes, in the order of processing, the steps among them. `starts`: by source, its clock when
    the epoch began; `quiet`: by source, the time to which it has gone on at last while the source brought nothing.
    """

    def __init__(
        self,
        stage: StageClocks,
        starts: Mapping[str, int],
        routes: Routes,
        origins: Sequence[Origin],
        order: Order,
        quiet: Mapping[str, int],
    ) -> None:
        self.nodes, self.places, self.routes, self.order = stage.nodes, stage.places, routes, order
        self._stage, self._starts = stage, starts
        self._sources = [origin.source for origin in origins]
        self._before, self._steps = quiet, [n for n, origin in enumerate(origins) if origin.part == QUIET]
        self._shown: dict[frozenset[str], Int64s] = {}
        self._keys: dict[str, list[Int64s]] = {}
        self._drained = bool(len(order)) and DRAIN in (self._sources[i] for i in np.unique(order.origin).tolist())

    def quiet(self, name: str, moments: Moments) -> Mask:
        """At which of these events the clock of node `name` shows what no row has moved it to, but a step of quiet."""
        found, shown = np.zeros(len(moments), dtype=np.bool_), self.at(name, moments)
        for branch in self.nodes[name].branches:
            steps = [time for source, time in self._before.items() if source in branch.sources]
            for number in (number for number in self._steps if self._sources[number] in branch.sources):
                steps += self.order.time[self.order.origin == number].tolist()
            here = self._at(branch.sources, moments)
            found |= (here - branch.hold == shown) & np.isin(here, steps)
        return found

    def at(self, name: str, moments: Moments) -> Int64s:
        """What the clock of node `name` shows at these events.

        At what was released that is its moment, unless another source of the node has gone beyond that before. An event
        that other sources have caused does not move it.
        """
        return _lowest(self._at(branch.sources, moments) - branch.hold for branch in self.nodes[name].branches)

    def of_input(self, name: str, moments: Moments) -> Int64s:
        """The clock of all sources of node `name` at these events, whatever has been held back above it."""
        return self._at(self.nodes[name].sources, moments)

    def _at(self, sources: frozenset[str], moments: Moments) -> Int64s:
        cause = self.routes.cause(moments)
        clock = self.order.clock[cause]
        if (released := self.routes.is_released(moments)).any():
            clock = np.where(released, moments.levels[1], clock)
        if not (moves := self._moves(sources)).all():
            clock = np.where(moves[self.order.origin[cause]], clock, -1)
        shown: Int64s = np.maximum(clock, self._input(sources)[cause])
        return shown

    def ahead_of(self, name: str, moments: Moments) -> Int64s:
        """What the clock of node `name` shows at events of any node: before the record that causes them moves it.

        At what a source of the node has released by moving its clock, that is the moment at which it was due.
        """
        return self._ahead_of(self.nodes[name].branches, moments)

    def soonest_ahead_of(self, name: str, table: str, moments: Moments) -> Int64s:
        """As `ahead_of`, by what has been held back for the shortest time: no record that has come is beyond it. Where
        the rows of `table` have been held back as well, as `ahead_of`."""
        node, held = self.nodes[name], self.nodes[table].hold
        branches = node.branches if held else (Branch(node.sources, self._stage.soonest[name]),)
        return self._ahead_of(branches, moments)

    def _ahead_of(self, branches: Sequence[Branch], moments: Moments) -> Int64s:
        order = self.order
        cause, released = self.routes.cause(moments), self.routes.is_released(moments)
        places = np.arange(len(order), dtype=np.int64)
        at = np.maximum.accumulate(np.where(_begins(order), places, 0))
        if order.moment is not None:
            at = np.where(order.moment[:, 0] < STEP, places + 1, at)
        found = []
        for branch in branches:
            shown = self._input(branch.sources)[at[cause]]
            if released.any():
                moved = released & self._moves(branch.sources)[order.origin[cause]]
                shown = np.where(moved, np.maximum(shown, moments.levels[1]), shown)
            found.append(shown - branch.hold)
        return _lowest(found)

    def horizon(self, name: str) -> int:
        """The lowest clock by which the table of node `name` is still asked, in this batch or later."""
        return min(self.nodes[one].shown(self._starts) for one in (name, *self._stage.askers.get(name, ())))

    def horizon_after(self, name: str) -> int:
        """The lowest clock by which the table is asked after this batch: not for a window that closes earlier."""
        return self.horizon(name) if name in self._stage.askers else self.end(name)[1] + 1

    def timing(self, name: str, at: Moments, before: int) -> Timing:
        """The clock of node `name` through these events; never below what it showed `before`."""
        return _ByInput(self, name, at, before)

    def end(self, name: str) -> tuple[int, int]:
        """What the clock of node `name` shows at the end of the batch, and what is kept of it.

        Where what came out is final, the end of the input leaves behind a clock at which nothing that has come waits
        any more: so no window gets a second final row, and nothing goes on behind a later record.
        """
        node = self.nodes[name]
        if not self._drained:
            last = min(int(self._input(branch.sources)[-1]) - branch.hold for branch in node.branches)
            return last, last
        before = np.count_nonzero(self.order.time < END_OF_TIME)
        if name in self._stage.ending:
            kept = int(self._input(node.sources)[before]) + node.holds
        else:
            kept = min(int(self._input(branch.sources)[before]) - branch.hold for branch in node.branches)
        return END_OF_TIME - node.hold, kept

    def moments(self, name: str, due: Int64s) -> Int64s:
        """What the clock of the input shows when the clock of node `name` gets to these times."""
        (branch, *others) = self.nodes[name].branches
        return self._passing(name, due)[1] if others else due + branch.hold

    def passing(self, name: str, due: Int64s) -> Int64s:
        """The first causes before which the clock of node `name` releases what is due at these times of it."""
        first, _, beyond = self._passing(name, due)
        moment = self.order.moment
        if moment is None or not len(moment):
            return first
        # What an earlier node has released at the very same moment comes before.
        earlier = (moment[:, 0] < STEP) & (moment[:, 1] < self.places[name])
        # From each cause on, the first one that is not such a release: a minimum from behind. The clock does not go
        # back, so what is due comes out at the latest before the first cause beyond that moment.
        later = np.append(np.where(earlier, len(earlier), np.arange(len(earlier))), len(earlier))
        later = np.minimum.accumulate(later[::-1])[::-1]
        passing: Int64s = np.minimum(later[first], beyond)
        return passing

    def _passing(self, name: str, due: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """The first causes at which all branches of node `name` have got to these times; the moment of the last one of
        them; and the first causes beyond that moment."""
        found = []
        for branch in self.nodes[name].branches:
            # What a branch shows before all causes counts: what it has passed before the batch, no cause passes again.
            shown, moment = self._input(branch.sources), due + branch.hold
            found.append((np.searchsorted(shown, moment), moment, np.searchsorted(shown, moment, side="right")))
        if len(found) == 1:
            ((reached, moment, passed),) = found
        else:
            every, moments, beyond = (np.stack(columns) for columns in zip(*found, strict=True))
            reached = every.max(axis=0)
            moment = np.where(every == reached, moments, -1).max(axis=0)
            last = (every == reached) & (moments == moment)
            passed = np.where(last, beyond, len(self.order) + 1).min(axis=0)
        return np.maximum(reached - 1, 0), moment, np.maximum(passed - 1, 0)

    def released(self, name: str, cause: Int64s, clock: Int64s, keys: Sequence[bytes], whole: bool = False) -> Moments:
        """The moments of what node `name` releases before these causes, in that order; `keys`: of each.

        `whole`: see `Timing.sent`.
        """
        known = self._keys.setdefault(name, [])
        begun, columns = sum(map(len, known)), _columns(clock, keys, whole)
        known.append(columns)
        turn = np.arange(begun, begun + len(cause), dtype=np.int64)
        cause = self._beside_copy(name, cause, clock, columns)
        return self.routes.released_at(name, cause, clock, self.places[name], turn)

    def _beside_copy(self, name: str, cause: Int64s, clock: Int64s, columns: Int64s) -> Int64s:
        """The causes, behind what the same node has released in an earlier stage, where a copy of it is, for keys that
        come before these."""
        moment, place = self.order.moment, self.places[name]
        if moment is None or not ((moment[:, 0] < STEP) & (moment[:, 1] == place)).any():
            return cause
        moved = cause.copy()
        for row, (at, when, own) in enumerate(zip(cause.tolist(), clock.tolist(), columns.tolist(), strict=True)):
            while at < len(moment) and tuple(moment[at, :2].tolist()) == (when, place):
                there = moment[at, 2:].tolist()
                if _compared(there, own) >= _compared(own, there):
                    break
                at += 1
            moved[row] = at
        return moved

    def order_of(self, at: Moments) -> tuple[Order, Int64s]:
        """The places of events in the order of records, and a number for each: the same for those of one record, or of
        one thing that was released."""
        cause, released = self.routes.cause(at), self.routes.is_released(at)
        order = self.order.take(cause)
        if order.moment is not None and (order.moment[:, 0] >= STEP).all():
            order = replace(order, moment=None)
        if not released.any():
            return order, cause
        widest = max(part.shape[1] for known in self._keys.values() for part in known)
        moments, path, number = np.array(order.moments(2 + widest)), order.path.copy(), cause.copy()
        path[released] = 0
        beyond = len(self.order)
        for name, known in self._keys.items():
            rows = np.flatnonzero(released & (at.levels[2] == self.places[name]))
            if len(rows):
                turn = self.routes.turn(at.take(rows), name)
                moments[rows] = NO_WORD
                moments[rows, 0], moments[rows, 1] = at.levels[1][rows], self.places[name]
                for begun, columns in _numbered(known):
                    these = (turn >= begun) & (turn < begun + len(columns))
                    moments[rows[these], 2 : 2 + columns.shape[1]] = columns[turn[these] - begun]
                number[rows] = beyond + turn
            beyond += sum(map(len, known))
        return replace(order, moment=moments, path=path), number

    def _moves(self, sources: frozenset[str]) -> Mask:
        """By origin, whether it moves the clock of these sources."""
        return np.array([source in sources or source == DRAIN for source in self._sources], dtype=np.bool_)

    def _input(self, sources: frozenset[str]) -> Int64s:
        """What the clock of these sources shows before all causes, then at each."""
        if sources not in self._shown:
            moves = self._moves(sources)
            start = Branch(sources, 0).of_input(self._starts)
            clock = np.where(moves[self.order.origin], self.order.clock, start)
            self._shown[sources] = np.maximum.accumulate(np.append(start, clock))
        return self._shown[sources]


class _ByInput:
    def __init__(self, clock: InputClock, name: str, at: Moments, before: int) -> None:
        self._clock, self._name, self._at, self._before = clock, name, at, before
        self.clock: Int64s = np.maximum.accumulate(np.maximum(clock.at(name, at), before))
        now, kept = clock.end(name)
        self.now, self.kept = max(now, before), max(kept, before)
        self.never = len(at) + len(clock.order)
        self.ended = len(at) + int(np.count_nonzero(clock.order.time < END_OF_TIME))

    def passes(self, due: Int64s, own: Int64s | None = None) -> Int64s:
        # Events up to `len(at)` are records of the node; those behind stand for the causes before which time releases.
        # What is due already when it begins to wait comes out at its own record.
        cause = np.where(due <= self._before, 0, self._clock.passing(self._name, due))
        event = len(self._at) + cause
        return event if own is None else np.where(due <= self.clock[own], own, event)

    def seen(self, event: Int64s, due: Int64s) -> Int64s:
        records = len(self._at)
        counts = np.minimum(event + 1, records)
        out = np.flatnonzero((event >= records) & (event < self.never))
        if len(out):
            cause, clock = event[out] - records, self._clock.moments(self._name, due[out])
            place = self._clock.places[self._name]
            turn = np.zeros(len(out), dtype=np.int64)
            released = self._clock.routes.released_at(self._name, cause, clock, place, turn)
            mine, others = arrivals(released, self._at)
            counts[out] = np.searchsorted(others, mine)
        return counts

    def sent(
        self, event: Int64s, due: Int64s, keys: Sequence[bytes], place: Int64s | None = None, whole: bool = False
    ) -> tuple[Int64s, Moments]:
        order = np.lexsort((ranks(pa.array(keys, pa.binary())), due, event))
        event, records = event[order], len(self._at)
        own, out = event[event < records], order[event >= records]
        mine = self.given(own, turns(own))
        cause, moments = event[len(own) :] - records, self._clock.moments(self._name, due[out])
        released = self._clock.released(self._name, cause, moments, [keys[at] for at in out.tolist()], whole)
        at = Moments.concat([mine, released])
        sorting = processing(at)
        return order[sorting], at.take(sorting)

    def given(self, event: Int64s, turn: Int64s) -> Moments:
        return self._clock.routes.beside(self._at.take(event), self._name, turn)


def _lowest(shown: Iterable[Int64s]) -> Int64s:
    lowest: Int64s = reduce(np.minimum, shown)
    return lowest


def _begins(order: Order) -> Mask:
    """Where another place in the input begins: a record has one place with its step and with what that releases."""
    same = np.zeros(len(order), dtype=np.bool_)
    same[1:] = True
    for level in (order.time, order.origin, order.offset):
        same[1:] &= level[1:] == level[:-1]
    return ~same


def _columns(clock: Int64s, keys: Sequence[bytes], whole: bool) -> Int64s:
    """The columns of moments from the third on; for very long keys, unless `whole`, a hash instead of their length."""
    lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    longest = int(lengths.max(initial=0))
    compared = longest if whole else min(longest, _COMPARED)
    words = -(-compared // _WORD)
    text = b"".join([key[: words * _WORD].ljust(words * _WORD, b"\0") for key in keys])
    key = (np.frombuffer(text, dtype=">u8").astype(np.uint64) ^ _SIGN).view(np.int64).reshape(len(keys), words)
    for row in np.flatnonzero(lengths > compared).tolist():
        lengths[row] = _hashed(keys[row])
    columns = np.column_stack([lengths, np.zeros(len(keys), dtype=np.int64), key])
    if len(keys):
        begins = (clock[1:] != clock[:-1]) | (columns[1:] != columns[:-1]).any(axis=1)
        columns[:, 1] = turns(np.cumsum(np.append(True, begins))) - 1
    return columns


def _numbered(parts: Sequence[Int64s]) -> Iterator[tuple[int, Int64s]]:
    """The parts, each with the number of its first row among all rows."""
    begun = 0
    for part in parts:
        yield begun, part
        begun += len(part)


def _compared(columns: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    """The columns of one moment from the third on, as they are compared with those of another one."""
    return (*columns[2:], *[NO_WORD] * (len(other) - len(columns)), *columns[:2])


def _hashed(key: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big", signed=True)
