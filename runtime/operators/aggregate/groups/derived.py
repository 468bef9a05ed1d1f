"""Groups of which a loop only notes how they come about: what they hold is computed later, for all of them at once.

The loops of `windows` decide which windows a record changes, and that depends on times alone. So each state of a group
is a number here: it was stored, or it is another state and one more record, or two states merged. Two windows may come
from the same state.

States that come from each other, record by record, are a chain, which is folded as a group of its own; a chain that
begins at a state of another chain is folded after it. So every sum has its additions in the order of the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.aggregate.functions.calls import Calls, Group
from vsc.runtime.operators.aggregate.functions.entries import At
from vsc.runtime.operators.aggregate.functions.states import Rows
from vsc.runtime.operators.aggregate.groups.folding import Folding, Groups, joined
from vsc.runtime.operators.aggregate.groups.state import AggregateState
from vsc.runtime.operators.columns.evaluation import Computed
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.records import Int64s

__all__ = ["AtOnce", "Derivations", "GroupCalls"]

_EMPTY = 0
_STORED, _MERGED = -1, -2
"""In place of the record by which a state comes about."""


class GroupCalls(Protocol):
    """What a loop does with groups: `AtOnce`, or `Derivations` later.

    A state is what a group holds, without its time; it never changes. A group is that of a window: of the group `kb`,
    from `start`.
    """

    def empty(self) -> Any:
        """A group without rows."""

    def load(self, rows: Sequence[bytes]) -> tuple[Sequence[int], Sequence[Any]]:
        """The times and the states of groups, from their rows in the store."""

    def add(self, state: Any, record: int, kb: bytes, start: int) -> Any:
        """The state and one more record, given by its number."""

    def merge(self, state: Any, other: Any, kb: bytes, start: int, other_start: int) -> Any:
        """The state and the rows of another window's."""

    def encode(self, times: Sequence[int], states: Sequence[Any]) -> list[bytes]:
        """The rows of groups in the store."""


class AtOnce:
    """The groups of calls that keep entries: each record is added at once, to them, too.

    `arrivals` are those of the records, filled in before each is added. A state is a `Group`.
    """

    def __init__(
        self, calls: Calls, state: AggregateState, args: Sequence[pa.Array], time: Int64s, arrivals: Sequence[int]
    ) -> None:
        self._calls, self._kv, self._scope, self._arrivals = calls, state.kv, state.scope, arrivals
        self._args, self._time = calls.rows(args, len(time)) if len(time) else (), time.tolist()
        self.empty = calls.empty

    def load(self, rows: Sequence[bytes]) -> tuple[Sequence[int], Sequence[Group]]:
        """See `GroupCalls`."""
        groups = [self._calls.decode(row) for row in rows]
        return [group.time for group in groups], groups

    def add(self, state: Group, record: int, kb: bytes, start: int) -> Group:
        """See `GroupCalls`."""
        group, at = state.copy(), At(self._time[record], self._arrivals[record])
        self._calls.add(group, self._args[record], at, self._kv, self._scope(kb, start))
        return group

    def merge(self, state: Group, other: Group, kb: bytes, start: int, other_start: int) -> Group:
        """See `GroupCalls`."""
        group = state.copy()
        self._calls.merge(group, other, self._kv, self._scope(kb, start), self._scope(kb, other_start))
        return group

    def encode(self, times: Sequence[int], states: Sequence[Group]) -> list[bytes]:
        """See `GroupCalls`."""
        return self._calls.encode_many([Group(t, s.rows, s.cells) for t, s in zip(times, states, strict=True)])


class Derivations:
    """The groups of one aggregate whose calls keep no entries, in one batch. A state is a number.

    `args` are the arguments of all calls for the batch's records, `time` their event times, `arrivals` as in `AtOnce`.
    """

    def __init__(self, folding: Folding, args: Sequence[pa.Array], time: Int64s, arrivals: Sequence[int]) -> None:
        self._folding = folding
        self._stored = [folding.load([None])]
        self._origin, self._by = [_EMPTY], [_STORED]
        self._others: dict[int, int] = {}
        self._args, self._time, self._arrivals = tuple(args), time, arrivals

    def empty(self) -> int:
        """See `GroupCalls`."""
        return _EMPTY

    def load(self, rows: Sequence[bytes]) -> tuple[Sequence[int], Sequence[int]]:
        """See `GroupCalls`."""
        loaded, first, more = self._folding.load(rows), len(self._by), len(rows)
        self._stored.append(loaded)
        self._origin += [_EMPTY] * more
        self._by += [_STORED] * more
        return loaded.time.tolist(), range(first, first + more)

    def add(self, state: int, record: int, kb: bytes, start: int) -> int:
        """See `GroupCalls`."""
        by = self._by
        self._origin.append(state)
        by.append(record)
        return len(by) - 1

    def merge(self, state: int, other: int, kb: bytes, start: int, other_start: int) -> int:
        """See `GroupCalls`."""
        if state == _EMPTY:
            return other
        merged = self.add(state, _MERGED, kb, start)
        self._others[merged] = other
        return merged

    def encode(self, times: Sequence[int], states: Sequence[int]) -> list[bytes]:
        """See `GroupCalls`."""
        return self._folding.store(self.groups(np.array(times, dtype=np.int64), np.array(states, dtype=np.int64)))

    def groups(self, times: Int64s, states: Int64s) -> Groups:
        """Groups with these times and states, as columns."""
        return self._all.take(states).at(times)

    def results(self, keys: Sequence[pa.Array], times: Int64s, states: Int64s) -> Computed:
        """The value columns of groups' results, whose key columns are `keys`; null where a state is negative."""
        there = states >= 0
        return self._folding.results(keys, self.groups(times, np.where(there, states, _EMPTY)), there)

    # ------------------------------------------------------------------------------------------- what the groups hold

    @cached_property
    def _all(self) -> Groups:
        """All states, by their numbers."""
        origin, by = np.array(self._origin, dtype=np.int64), np.array(self._by, dtype=np.int64)
        known, place = reduce(joined, self._stored), np.cumsum(by == _STORED) - 1
        added = Rows(self._args, self._time, np.array(self._arrivals, dtype=np.int64))
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
