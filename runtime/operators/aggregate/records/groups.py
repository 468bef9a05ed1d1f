"""Aggregates without window: the groups of a stream, and those of a table, whose rows are also taken back."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from vsc.plan.nodes import Schema
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.aggregate.calls import Calls, Group
from vsc.runtime.operators.aggregate.records.results import Result, Results
from vsc.runtime.operators.aggregate.state import AggregateState
from vsc.runtime.operators.context import Context, NodeFailure
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.records import Int64s
from vsc.runtime.state.keys import KeyCodec

__all__ = ["StreamGroups", "TableGroups", "Travelled"]


class StreamGroups:
    """The groups of a stream: each record gives its group a new result, at the highest time of its records.

    A record without value is dropped and counted (D14); so is one on which an expression fails, if the options say so,
    and one whose result a versioned store refuses (it is no part of its group then, as in Kafka Streams).
    """

    __slots__ = ("_calls", "_context", "_name", "_results", "_state")

    def __init__(self, name: str, calls: Calls, state: AggregateState, results: Results, context: Context) -> None:
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
        calls, state = self._calls, self._state
        prefix = state.entries + kb
        try:
            args = calls.args(key + value, time)
            data = state.get(kb)
            group = calls.empty() if data is None else calls.decode(data)
            old = None
            if data is not None and self._results.old_wanted:
                old = calls.result(group, key, state.kv, prefix)
            calls.add(group, args, state.arrive(time), state.kv, prefix)
            group.time = max(group.time, time)
            new = calls.result(group, key, state.kv, prefix)
        except NodeFailure as failure:
            state.discard()
            self._context.failed(failure)
            return
        if self._results.refuses(group.time):
            state.discard()
            self._context.dropped(self._name, Dropped.EXPIRED)
            return
        state.put(kb, calls.encode(group))
        state.commit()
        self._results.send(Result(kb, key, new, old, group.time))


class Travelled:
    """Takes the rows of a table apart that came with a grouped change."""

    __slots__ = ("_ident", "_keys", "_new", "_old")

    def __init__(self, changes: Schema, row: Schema, table: Schema) -> None:
        places = {c.name: i for i, c in enumerate(changes.value)}
        names = [c.name for c in row.key + row.value]
        self._old = [places[f"old#{name}"] for name in names]
        self._new = [places[f"new#{name}"] for name in names]
        self._ident = [names.index(c.name) for c in table.key]
        self._keys = KeyCodec([c.type for c in table.key])

    def rows(self, change: Row) -> tuple[Row | None, Row | None]:
        """The row to take back and the row to add, each None if there is none."""
        old = tuple([change[i] for i in self._old]) if change[0] else None
        return old, tuple([change[i] for i in self._new]) if change[1] else None

    def columns(self, changes: Sequence[pa.Array]) -> tuple[list[pa.Array], list[pa.Array]]:
        """The columns of the rows to take back, and of those to add, which are there where the change says so."""
        return [changes[i] for i in self._old], [changes[i] for i in self._new]

    def idents(self, rows: Sequence[pa.Array]) -> tuple[Sequence[bytes], Int64s]:
        """What tells rows apart: each once, and which one is that of each row."""
        return self._keys.encode_columns([rows[i] for i in self._ident])

    def ident(self, row: Row) -> bytes:
        """What tells the row from all others of its table: its key there."""
        return self._keys.encode([row[i] for i in self._ident])


class TableGroups:
    """The groups of a table. A change takes the old row back and adds the new one, and gives one result.

    A group that has lost its last row is a tombstone (D13). A change that finds nothing to take back still gives the
    group's result again, as in Kafka Streams. A row on which an expression fails is no part of its group, if the
    options say that it is to be dropped.
    """

    __slots__ = ("_calls", "_context", "_name", "_results", "_state", "_travelled")

    def __init__(
        self,
        name: str,
        calls: Calls,
        travelled: Travelled,
        state: AggregateState,
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
        at = state.arrive(time, self._travelled.ident(row))
        self._calls.remove(group, args, at, state.kv, prefix)

    def _add(self, group: Group, row: Row, time: int, prefix: bytes) -> None:
        state = self._state
        try:
            args = self._calls.args(row, time)
        except NodeFailure as failure:
            self._context.failed(failure)
            return
        at = state.arrive(time, self._travelled.ident(row))
        self._calls.add(group, args, at, state.kv, prefix)
