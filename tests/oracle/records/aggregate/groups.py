"""Aggregates without window: the groups of a stream, and those of a table, whose rows are also taken back."""

from __future__ import annotations

from tests.oracle.records.aggregate.results import Result, Results
from tests.oracle.records.aggregate.taking_back import RecordCalls, RecordState
from tests.oracle.records.context import Context
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.aggregate.calls import Group
from vsc.runtime.operators.aggregate.entries import At
from vsc.runtime.operators.aggregate.travelled import Travelled
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.evaluate import Row

__all__ = ["StreamGroups", "TableGroups"]


class StreamGroups:
    """The groups of a stream: each record gives its group a new result, at the highest time of its records.

    A record without value (D14) or key (D26) is dropped and counted; so is one on which an expression fails, if the
    options say so, and one whose result a versioned store refuses (it is not part of its group then, as in Kafka
    Streams).
    """

    __slots__ = ("_calls", "_context", "_name", "_results", "_state")

    def __init__(self, name: str, calls: RecordCalls, state: RecordState, results: Results, context: Context) -> None:
        self._name = name
        self._calls = calls
        self._state = state
        self._results = results
        self._context = context

    def process(self, kb: bytes, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record."""
        if value is None:
            self._context.dropped(self._name, Dropped.NO_VALUE)
            return
        if None in key:
            self._context.dropped(self._name, Dropped.NULL_JOIN_KEY)
            return
        calls, state = self._calls, self._state
        prefix = state.entries + kb
        try:
            args = calls.args(key + value, time)
        except NodeFailure as failure:
            self._context.failed(failure)
            return
        at = state.arrive(time)
        try:
            data = state.get(kb)
            group = calls.empty() if data is None else calls.decode(data)
            old = None
            if data is not None and self._results.old_wanted:
                old = calls.result(group, key, state.kv, prefix)
            calls.add(group, args, at, state.kv, prefix)
            group.time = max(group.time, time)
            new = calls.result(group, key, state.kv, prefix)
        except NodeFailure as failure:
            self._leave_out(at)
            self._context.failed(failure)
            return
        if self._results.refuses(group.time):
            self._leave_out(at)
            self._context.dropped(self._name, Dropped.EXPIRED)
            return
        state.put(kb, calls.encode(group))
        state.commit()
        self._results.send(Result(kb, key, new, old, group.time))

    def _leave_out(self, at: At) -> None:
        """The record is not part of its group, but it has arrived."""
        self._state.discard()
        self._state.arrivals = at.arrival
        self._state.commit()


class TravelledRows(Travelled):
    """Splits one grouped change into its two rows of the table."""

    __slots__ = ()

    def rows(self, change: Row) -> tuple[Row | None, Row | None]:
        """The row to take back and the row to add; each may be None."""
        old = tuple([change[i] for i in self.old]) if change[0] else None
        return old, tuple([change[i] for i in self.new]) if change[1] else None

    def of(self, row: Row) -> bytes:
        """The row's identity: its key in its table."""
        return self.keys.encode([row[i] for i in self.ident])


class TableGroups:
    """The groups of a table. A change takes the old row back and adds the new one, and gives one result.

    A group that has lost its last row is a tombstone (D13). A change that finds nothing to take back still gives the
    group's result again, as in Kafka Streams. A row on which an expression fails is not part of its group, if the
    options say that it is to be dropped.
    """

    __slots__ = ("_calls", "_context", "_name", "_results", "_state", "_travelled")

    def __init__(
        self,
        name: str,
        calls: RecordCalls,
        travelled: TravelledRows,
        state: RecordState,
        results: Results,
        context: Context,
    ) -> None:
        self._name = name
        self._calls = calls
        self._travelled = travelled
        self._state = state
        self._results = results
        self._context = context

    def process(self, kb: bytes, key: Row, value: Row | None, time: int) -> None:
        """Takes a grouped change."""
        assert value is not None
        try:
            result = self._changed(kb, key, value, time)
        except Exception:
            self._state.discard()
            raise
        if result is not None:
            self._results.send(result)

    def _changed(self, kb: bytes, key: Row, value: Row, time: int) -> Result | None:
        calls, state = self._calls, self._state
        prefix = state.entries + kb
        taken, added = self._travelled.rows(value)
        data = state.get(kb)
        group = calls.empty() if data is None else calls.decode(data)
        before = self._result(group, key, prefix) if data is not None and self._results.old_wanted else None
        known, group.time = group.time, time
        if taken is not None and data is not None:
            self._take(group, taken, time, prefix)
            group.time = max(time, known)
        if added is not None:
            self._add(group, added, time, prefix)
            group.time = max(time, known)
        if group.rows > 0:
            state.put(kb, calls.encode(group))
        elif data is not None:
            state.remove(kb, calls.has_entries)
        try:
            new = calls.result(group, key, state.kv, prefix) if group.rows > 0 else None
        except NodeFailure as failure:
            state.commit()  # what the group holds is right, only that it has no result
            self._context.failed(failure)
            return None
        state.commit()
        return Result(kb, key, new, before, group.time)

    def _result(self, group: Group, key: Row, prefix: bytes) -> Row | None:
        try:
            return self._calls.result(group, key, self._state.kv, prefix)
        except NodeFailure:
            return None  # there was none: it failed, and was dealt with, when it was the new result

    def _take(self, group: Group, row: Row, time: int, prefix: bytes) -> None:
        state = self._state
        try:
            args = self._calls.args(row, time)
        except NodeFailure:
            return  # it failed, and was dealt with, when it was to be added
        at = state.arrive(time, self._travelled.of(row))
        self._calls.remove(group, args, at, state.kv, prefix)

    def _add(self, group: Group, row: Row, time: int, prefix: bytes) -> None:
        state = self._state
        try:
            args = self._calls.args(row, time)
        except NodeFailure as failure:
            self._context.failed(failure)
            return
        at = state.arrive(time, self._travelled.of(row))
        self._calls.add(group, args, at, state.kv, prefix)
