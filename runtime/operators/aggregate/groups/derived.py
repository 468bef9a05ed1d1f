"""Groups of which a loop only notes how they come about: what they hold is computed later, for all of them at once.

The loops of `windows` decide which windows a record changes, and that depends on times alone. So each state of a group
is a number here: it was stored, or it is another state and one more record, or two states merged. Two windows may come
from the same state.

States that come from each other, record by record, are a chain, which is folded as a group of its own; a chain that
begins at a state of another chain is folded after it. So every sum has its additions in the order of the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.aggregate.functions.calls import Group
from vsc.runtime.operators.aggregate.functions.entries import At
from vsc.runtime.operators.aggregate.functions.states import Rows
from vsc.runtime.operators.aggregate.groups.folding import Folding, Groups, joined
from vsc.runtime.operators.columns.evaluation import Computed
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.records import Int64s
from vsc.runtime.state.kv_base import OrderedKV

__all__ = ["AnyGroup", "Derivations", "Derived", "GroupCalls"]

_EMPTY = 0
_STORED, _MERGED = -1, -2
"""In place of the record by which a state comes about."""


class Derived:
    """A group: the time of its result, and the number of its state."""

    __slots__ = ("state", "time")

    def __init__(self, time: int, state: int) -> None:
        self.time, self.state = time, state

    def copy(self) -> Derived:
        """An independent copy."""
        return Derived(self.time, self.state)


AnyGroup = Group | Derived


class GroupCalls(Protocol):
    """What a loop does with groups: `Calls` at once, `Derivations` later."""

    def empty(self) -> Any:
        """A group without rows."""

    def decode(self, data: bytes) -> Any:
        """The group of a row in the store."""

    def add(self, group: Any, args: Any, at: At, kv: OrderedKV, prefix: bytes) -> None:
        """Adds a row; the group's time stays as it is."""

    def merge(self, group: Any, other: Any, kv: OrderedKV, prefix: bytes, others: bytes) -> None:
        """Merges in the rows of another group, whose entries are under `others`."""

    def encode_many(self, groups: Any) -> list[bytes]:
        """The rows of groups in the store."""


class Derivations:
    """The groups of one aggregate whose calls keep no entries, in one batch. A record is given by its number."""

    def __init__(self, folding: Folding) -> None:
        self._folding = folding
        self._stored: list[bytes | None] = [None]
        self._origin, self._by = [_EMPTY], [_STORED]
        self._others: dict[int, int] = {}
        self._added = Rows((), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        self._arrivals: list[int] = []

    def rows(self, args: Sequence[pa.Array], time: Int64s) -> Sequence[int]:
        """The numbers of the records that will be added, given the arguments of all calls and their event times."""
        self._added = Rows(tuple(args), time, time)
        self._arrivals = [0] * len(time)
        return range(len(time))

    def empty(self) -> Derived:
        """A group without rows."""
        return Derived(-1, _EMPTY)

    def decode(self, data: bytes) -> Derived:
        """The group of a row in the store."""
        self._stored.append(data)
        return Derived(self._folding.time_of(data), self._new(_EMPTY, _STORED))

    def add(self, group: Derived, record: int, at: At, kv: OrderedKV, prefix: bytes) -> None:
        """Adds a record; the group's time stays as it is."""
        self._arrivals[record] = at.arrival
        self._origin.append(group.state)
        group.state = len(self._by)
        self._by.append(record)

    def merge(self, group: Derived, other: Derived, kv: OrderedKV, prefix: bytes, others: bytes) -> None:
        """Merges in the rows of another group."""
        if group.state == _EMPTY:
            group.state = other.state
            return
        group.state = self._new(group.state, _MERGED)
        self._others[group.state] = other.state

    def groups(self, found: Sequence[Derived | None]) -> Groups:
        """The groups as columns; None is an empty one."""
        states = np.array([_EMPTY if group is None else group.state for group in found], dtype=np.int64)
        times = np.array([-1 if group is None else group.time for group in found], dtype=np.int64)
        return self._all.take(states).at(times)

    def results(self, keys: Sequence[pa.Array], found: Sequence[Derived | None]) -> Computed:
        """The value columns of the groups' results, whose key columns are `keys`; null for None."""
        there = np.fromiter((group is not None for group in found), dtype=np.bool_, count=len(found))
        return self._folding.results(keys, self.groups(found), there)

    def encode_many(self, groups: Sequence[Derived]) -> list[bytes]:
        """The rows of groups in the store."""
        return self._folding.store(self.groups(groups))

    def _new(self, origin: int, by: int) -> int:
        self._origin.append(origin)
        self._by.append(by)
        return len(self._by) - 1

    # ------------------------------------------------------------------------------------------- what the groups hold

    @cached_property
    def _all(self) -> Groups:
        """All states, by their numbers."""
        origin, by = np.array(self._origin, dtype=np.int64), np.array(self._by, dtype=np.int64)
        known, place = self._folding.load(self._stored), np.cumsum(by == _STORED) - 1
        added = Rows(self._added.args, self._added.time, np.array(self._arrivals, dtype=np.int64))
        head = _heads(origin, by)
        for states in self._steps(origin, by, head):
            if by[states[0]] == _MERGED:
                others = np.array([self._others[state] for state in states.tolist()], dtype=np.int64)
                new, order = self._folding.merged(*(known.take(place[o]) for o in (origin[states], others))), states
            else:
                new, order = self._folded(states, origin, by, head, known, place, added)
            place[order] = len(known.time) + np.arange(len(order))
            known = joined(known, new)
        return known.take(place)

    def _folded(
        self, states: Int64s, origin: Int64s, by: Int64s, head: Int64s, known: Groups, place: Int64s, added: Rows
    ) -> tuple[Groups, Int64s]:
        """The states of whole chains, and the order in which they come."""
        own = head[states]
        heads = states[own == states]
        segments = Segments(np.searchsorted(heads, own), len(heads))
        running, _ = self._folding.fold(known.take(place[origin[heads]]), segments, added.take(by[states]))
        return running, states[segments.order]

    def _steps(self, origin: Int64s, by: Int64s, head: Int64s) -> Iterator[Int64s]:
        """The states that are not stored: those of one step come from states of steps before, or from each other in a
        chain. A step only has added records, or only merged states."""
        starts = np.flatnonzero((head == np.arange(len(by))) & (by != _STORED))
        later = starts[(by[origin[starts]] != _STORED) | (by[starts] == _MERGED)]
        level = (by != _STORED).astype(np.int64).tolist()
        for state, source in zip(later.tolist(), head[origin[later]].tolist(), strict=True):
            other = self._others.get(state)
            level[state] = 1 + max(level[source], 0 if other is None else level[head[other]])
        steps = 2 * np.array(level, dtype=np.int64)[head] + (by == _MERGED)
        order = np.argsort(steps, kind="stable")
        bounds = np.flatnonzero(np.diff(steps[order])) + 1
        return iter(step for step in np.split(order, bounds) if steps[step[0]])


def _heads(origin: Int64s, by: Int64s) -> Int64s:
    """The first state of each state's chain: the first record that is added to a state continues its chain."""
    added = np.flatnonzero(by >= 0)
    first = added[np.unique(origin[added], return_index=True)[1]]
    first = first[by[origin[first]] >= 0]
    head = np.arange(len(by))
    head[first] = origin[first]
    while not np.array_equal(head, nearer := head[head]):
        head = nearer
    return head
