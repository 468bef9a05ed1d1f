"""`aggregate` of a stream without window, on whole columns: see `aggregate.records.groups.StreamGroups`.

Each group is read once a batch and written once; what a group had come to at each of its records is computed for all
records together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.aggregate.folding import Folding, Groups
from vsc.runtime.operators.aggregate.state import AggregateState
from vsc.runtime.operators.aggregate.states import Beside
from vsc.runtime.operators.columns.failures import Failures
from vsc.runtime.operators.columns.flow import Flow, chosen
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.operators.counting import count
from vsc.runtime.operators.tables.store import TableColumns
from vsc.runtime.records import Int64s

__all__ = ["GroupColumns", "numbered"]


class GroupColumns:
    """The groups of a stream, for one batch. `store` is the result table's, if it has one, and unversioned.

    `old`: somebody asks for the rows before the changes.
    """

    def __init__(
        self,
        name: str,
        folding: Folding,
        state: AggregateState,
        store: TableColumns | None,
        old: bool,
        failures: Failures,
    ) -> None:
        self._name, self._state, self._store = name, state, store
        self._folding, self._old, self._failures, self._metrics = folding, old, failures, failures.metrics
        self._touched: list[bytes] = []
        self._ended: Groups | None = None

    def process(self, flow: Flow) -> Flow:
        """One result for each record that has a value."""
        count(self._metrics, self._name, Dropped.NO_VALUE, ~flow.present)
        flow = flow.select(flow.present)
        arguments = self._folding.arguments(flow)
        kept = self._failures.kept(flow.at, arguments.failed)
        flow, args = flow.select(kept), chosen(arguments.columns, kept)
        keys = flow.space.keys
        touched, group = numbered(flow.key, len(keys))
        self._touched = [keys[number] for number in touched.tolist()]
        data = self._state.get_many(self._touched)
        start, segments = self._folding.load(data), Segments(group, len(touched))
        known = np.array([row is not None for row in data], dtype=np.bool_)
        entries = self._state.entries
        start = self._folding.open(Beside(self._state.below, [entries + kb for kb in self._touched], known), start)
        running, self._ended = self._folding.fold(start, segments, self._folding.arriving(flow, args, self._state))
        places = segments.unsorted()
        now = running.take(places)
        changed = replace(flow, time=now.time, values=self._folding.results(flow.keys, now))
        if self._store is not None:
            self._store.put(changed)
            return replace(changed, old=self._store.before(changed)) if self._old else changed
        if not self._old:
            return changed
        return replace(changed, old=self._folding.before(flow.keys, known, start, running, segments))

    def commit(self) -> None:
        """Writes the groups that have changed."""
        if self._ended is not None:
            groups, rows = self._state.groups, self._folding.store(self._ended)
            puts, deletes = self._folding.writes(np.ones(len(rows), dtype=np.bool_))
            puts += [(groups + kb, row) for kb, row in zip(self._touched, rows, strict=True)]
            self._state.write(puts, deletes)


def numbered(key: Int64s, keys: int) -> tuple[Int64s, Int64s]:
    """The key numbers that there are, ascending, and for each record the place of its own among them."""
    there = np.bincount(key, minlength=keys) > 0
    return np.flatnonzero(there), (np.cumsum(there) - 1)[key]
