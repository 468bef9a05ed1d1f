"""The groups of an aggregate on whole columns: read with their cells, changed by a batch's records, written back.

A group's row in the store has the layout of the loops (`aggregate.functions.calls`), so each continues with what the
other wrote. Which groups a record belongs to is decided beside (without windows) and in `windows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Aggregate, Column, Item, Node, Schema
from vsc.runtime.operators.aggregate.functions.accumulators import column_accumulator
from vsc.runtime.operators.aggregate.functions.calls import Calls
from vsc.runtime.operators.aggregate.functions.states import (
    EntryRanges,
    Rows,
    State,
    Writes,
    after,
    part,
)
from vsc.runtime.operators.columns.evaluation import Computed, Evaluation
from vsc.runtime.operators.columns.flow import blanked
from vsc.runtime.operators.columns.segments import Segments
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.records import Int64s, Mask

__all__ = ["Folding", "Groups", "arguments_of", "joined"]

_NONE: Any = None
"""The store of calls that keep no entries: never used."""
_MILLISECOND = 1000
"""In the unit of timestamps."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups, or the state of a group at each of several records: result time, number of rows, states of the calls."""

    time: Int64s
    rows: Int64s
    states: tuple[State, ...]

    def take(self, places: Int64s) -> Groups:
        """The elements at `places`."""
        return Groups(self.time[places], self.rows[places], tuple(part(state, places) for state in self.states))

    def at(self, time: Int64s) -> Groups:
        """The groups with other times."""
        return replace(self, time=time)


def joined(first: Groups, second: Groups) -> Groups:
    """The groups of both, one after the other."""
    return Groups(
        np.concatenate([first.time, second.time]),
        np.concatenate([first.rows, second.rows]),
        tuple(after(*states) for states in zip(first.states, second.states, strict=True)),
    )


def arguments_of(node: Node, operation: Aggregate) -> Evaluation:
    """The arguments of all calls of an aggregate, one call after the other."""
    args = [Item(call.text, arg, call.text) for call in operation.calls for arg in call.args]
    return Evaluation(node.name, args, [operation.row])


class Folding:
    """The calls and items of an aggregate, for many groups at once. `calls`: the same for one group."""

    def __init__(self, node: Node, operation: Aggregate) -> None:
        calls, self._timed = Calls(node, operation), operation.timed
        self.calls, self._name = calls, node.name
        self._texts = [call.text for call in operation.calls]
        self._accumulators = [column_accumulator(call, operation.over == "table") for call in operation.calls]
        self._keeping = [(number, found) for number, found in enumerate(self._accumulators) if found.keeps]
        self._cells = _slices([len(accumulator.types) for accumulator in calls.accumulators])
        self._args = _slices([len(call.args) for call in operation.calls])
        self._evaluated = arguments_of(node, operation)
        results = tuple(Column(f"#{i}", call.type) for i, call in enumerate(operation.calls))
        self._items = (
            None if calls.plain else Evaluation(node.name, operation.items, [Schema(node.schema.key, results)])
        )

    def load(self, rows: Sequence[bytes | None]) -> Groups:
        """Decodes groups from their rows in the store; None is an empty group."""
        return self._loaded(self.calls.row.decode_columns(pa.array(rows, pa.binary())))

    def time_of(self, row: bytes) -> int:
        """The time of a group's row in the store."""
        return self.calls.row.first(row)

    def merged(self, groups: Groups, others: Groups) -> Groups:
        """Each group merged with another one, of calls that keep no entries. One by one: windows seldom merge."""
        calls, found = self.calls, []
        for row, other in zip(self.store(groups), self.store(others), strict=True):
            group = calls.decode(row)
            calls.merge(group, calls.decode(other), _NONE, b"", b"")
            found.append(group)
        return self._loaded(calls.columns(found))

    def _loaded(self, columns: Sequence[pa.Array]) -> Groups:
        time, count, *cells = columns
        states = tuple(a.load(cells[own]) for a, own in zip(self._accumulators, self._cells, strict=True))
        return Groups(time.fill_null(-1).to_numpy(), count.fill_null(0).to_numpy(), states)

    def store(self, groups: Groups) -> list[bytes]:
        """The groups' rows in the store."""
        cells = [c for a, state in zip(self._accumulators, groups.states, strict=True) for c in a.store(state)]
        rows: list[bytes] = self.calls.row.encode_columns(
            [pa.array(groups.time), pa.array(groups.rows), *cells], len(groups.time)
        ).to_pylist()
        return rows

    def arguments(self, columns: Sequence[pa.Array], times: Int64s, asked: Mask) -> Computed:
        """The arguments of all calls for the rows where `asked`, null elsewhere."""
        return self._evaluated.where(columns, times, asked)

    def open(self, ranges: EntryRanges, start: Groups) -> Groups:
        """The groups, with what they keep beside their cells, at the places that `ranges` name."""
        states = list(start.states)
        for number, accumulator in self._keeping:
            states[number] = accumulator.open(ranges.of(number), states[number])
        return replace(start, states=tuple(states))

    def writes(self, chosen: Mask) -> Writes:
        """The changed entries of the `chosen` groups."""
        puts: list[tuple[bytes, bytes]] = []
        deletes: list[bytes] = []
        for _, accumulator in self._keeping:
            put, deleted = accumulator.writes(chosen)
            puts += put
            deletes += deleted
        return puts, deletes

    @property
    def keeps(self) -> bool:
        """Whether any call keeps entries."""
        return bool(self._keeping)

    def fold(self, start: Groups, segments: Segments, added: Rows) -> tuple[Groups, Groups]:
        """The groups' states at each record, in sorted order, and at the end."""
        added = added.take(segments.order)
        times, newest = segments.highest(added.time, start.time)
        counts, rows = segments.sums(added.signed(np.ones(len(segments), dtype=np.int64)), start.rows)
        folded = [
            accumulator.fold(state, segments, added.of(args))
            for accumulator, state, args in zip(self._accumulators, start.states, self._args, strict=True)
        ]
        return (
            Groups(times, counts, tuple(running for running, _ in folded)),
            Groups(newest, rows, tuple(ended for _, ended in folded)),
        )

    def timed(self, groups: Groups) -> Groups:
        """The groups with the times that their results have."""
        if not self._timed:
            return groups
        newest = self._accumulators[-1].results(groups.states[-1]).cast(pa.int64()).fill_null(0)
        return replace(groups, time=np.where(groups.rows > 0, newest.to_numpy() // _MILLISECOND, groups.time))

    def results(self, keys: Sequence[pa.Array], groups: Groups, asked: Mask | None = None) -> Computed:
        """The value columns of the groups' results, whose key columns are `keys`; null where not `asked`."""
        values = tuple(a.results(state) for a, state in zip(self._accumulators, groups.states, strict=True))
        there = np.ones(len(groups.time), dtype=np.bool_) if asked is None else asked.copy()
        failed = {row: failure for row, failure in self._refused(groups).items() if there[row]}
        there[list(failed)] = False
        if self._items is None:
            return Computed(blanked(values, there), failed)
        found = self._items.where((*keys, *values), groups.time, there)
        return Computed(found.columns, {**found.failed, **failed})

    def _refused(self, groups: Groups) -> dict[int, NodeFailure]:
        """The states without a result."""
        failed: dict[int, NodeFailure] = {}
        for accumulator, state, text in zip(self._accumulators, groups.states, self._texts, strict=True):
            for row, reason in accumulator.refused(state).items():
                failed.setdefault(row, NodeFailure(self._name, text, reason))
        return failed


def _slices(widths: Sequence[int]) -> list[slice]:
    """Adjacent slices of these widths."""
    return [slice(end - width, end) for width, end in zip(widths, accumulate(widths), strict=True)]
