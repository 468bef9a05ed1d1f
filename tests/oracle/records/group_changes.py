"""First step of an aggregate over a table: its changes become records keyed by the group that each row belongs to.

A record says which row the group is to take back and which one it is to add. A change within one group is one record;
one from a group to another is two, the old group's first.
"""

from __future__ import annotations

from typing import Any

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row, Values
from tests.oracle.records.tables import TableStore
from vsc.plan.nodes import Node, Schema, Window
from vsc.runtime.metrics import Dropped

__all__ = ["NEW", "OLD", "GroupChanges", "travelling"]

OLD, NEW = "old#", "new#"
"""What the names of the columns of the row to take back, and of the row to add, begin with."""


def travelling(table: Schema, changes: Schema) -> tuple[tuple[bool, int], ...]:
    """For each value column of a row in the changes: is it of the new row, and its place in the table."""
    names = [c.name for c in (*table.key, *table.value)]
    return tuple(
        (c.name.startswith(NEW), names.index(c.name.split("#", 1)[1]))
        for c in changes.value
        if c.name.startswith((OLD, NEW))
    )


class GroupChanges:
    """`versioned`: the table's status; then a change that is not its key's newest is dropped, as Kafka does, and
    counted. A row with a null in its group's key belongs to no group: it is dropped and counted (D5). `store`: the one
    behind the table, if the aggregate's history is complete: it says until when changes are valid."""

    __slots__ = (
        "_columns",
        "_context",
        "_forward",
        "_group",
        "_name",
        "_node",
        "_steady",
        "_store",
        "_validity",
        "_versioned",
        "_window",
    )

    def __init__(
        self,
        node: Node,
        group: Values,
        columns: tuple[tuple[bool, int], ...],
        versioned: bool,
        window: Window | None,
        steady: bool,
        context: Context,
        forward: RecordConsumer,
        store: TableStore | None = None,
    ) -> None:
        self._store = store
        self._node, self._name, self._window = node.name, node.owner, window
        self._group, self._steady = group, steady
        self._columns = columns
        self._versioned = versioned
        self._context = context
        self._forward = forward

    def process(self, key: Row, new: Row | None, old: Row | None, latest: bool, time: int) -> None:
        """Takes a table's change."""
        if self._versioned and not latest:
            self._context.dropped(self._name, Dropped.OUT_OF_ORDER)
            return
        added = None if new is None else self._added(key + new, time)
        before = getattr(old, "time", time)
        taken = None if old is None else self._taken(key + old, before)
        self._validity = () if self._store is None else (before, self._store.until(key, time))
        if self._window is not None:
            self._in_windows(taken, added, before, time)
            return
        before = before if self._steady else time
        if taken is not None and added is not None and taken[0] == added[0] and before == time:
            self._send(taken[1], added[1], added[0], time)
            return
        if taken is not None:
            self._send(taken[1], None, taken[0], before)
        if added is not None:
            self._send(None, added[1], added[0], time)

    def _in_windows(self, taken: tuple[Row, Row] | None, added: tuple[Row, Row] | None, before: int, time: int) -> None:
        """The same for each window that is open: the old group's first, by ascending start."""
        left = [] if taken is None else self._windows(before)
        joined = [] if added is None else self._windows(time)
        late = {window for window in (*left, *joined) if self._closed(window)}
        for _ in late:
            self._context.dropped(self._name, Dropped.WINDOW_CLOSED)
        left, joined = ([window for window in some if window not in late] for some in (left, joined))
        same = taken is not None and added is not None and taken[0] == added[0] and before == time
        for window in left:
            if taken is not None and not (same and window in joined):
                self._send(taken[1], None, taken[0] + window, before)
        for window in joined:
            if added is not None:
                old = taken[1] if taken is not None and same and window in left else None
                self._send(old, added[1], added[0] + window, time)

    def _windows(self, time: int) -> list[Row]:
        """The bounds of the windows that hold a time."""
        window = self._window
        assert window is not None and not window.zone and not window.months
        start = (time - window.offset) // window.advance * window.advance + window.offset
        lowest = -window.offset // window.advance * window.advance + window.offset
        found: list[Row] = []
        while start + window.size > time and start >= lowest:
            found.append((max(start, 0) * 1000, (start + window.size) * 1000))
            start -= window.advance
        return found[::-1]

    def _closed(self, window: Row) -> bool:
        clock = self._context.clock
        assert clock is not None and self._window is not None and isinstance(window[1], int)
        return window[1] // 1000 + self._window.grace <= clock.asked(self._node)

    def _added(self, row: Row, time: int) -> tuple[Row, Row] | None:
        try:
            group = self._group(row, None, time, None)
        except NodeFailure as failure:
            self._context.failed(failure)
            return None
        if None in group:
            self._context.dropped(self._name, Dropped.NULL_JOIN_KEY)
            return None
        return group, row

    def _taken(self, row: Row, time: int) -> tuple[Row, Row] | None:
        """The group that the row was added to, if it was."""
        try:
            group = self._group(row, None, time, None)
        except NodeFailure:
            return None
        return None if None in group else (group, row)

    def _send(self, old: Row | None, new: Row | None, group: Row, time: int) -> None:
        rows = (old, new)
        columns = [_column(rows[is_new], place) for is_new, place in self._columns]
        self._forward(group, (old is not None, new is not None, *columns, *self._validity), time)


def _column(row: Row | None, place: int) -> Any:
    return None if row is None else row[place]
