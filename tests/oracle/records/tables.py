"""The tables of a stage as plain dictionaries: one face for versioned and unversioned stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tests.oracle.records.consumer import Before
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import Row
from tests.oracle.records.order import rows_in_order
from tests.runtime.state.model import INFINITE, Model, Outcome
from vsc.plan.nodes import Aggregate, Node
from vsc.runtime.metrics import Missed

__all__ = ["Content", "Found", "TableStore", "open_table"]

Found = tuple[Row, int, int | None]
"""A row that a look-up found: its value columns, valid from, valid to (None: it is the newest)."""

Content = tuple[int | None, int, list[Any]]
"""What a store holds: its clock (None: it has none, or has seen nothing), how much waits in it, and its rows."""


class TableStore(Protocol):
    """A table's store. Rows are tuples of internal values, times are in ms.

    `watching` take the time of each version that it accepts; `until` says when one ends, `history` has all versions of
    a key, by time, and `before` is the one that is valid at a time. A `grace` is how late a version may be.
    """

    watching: Any
    until: Any
    history: Any
    before: Any
    grace: Any

    @property
    def versioned(self) -> bool:
        """Whether it can be read as of a time."""

    @property
    def stream_time(self) -> int:
        """The highest time it has accepted; -1 at first, and always for an unversioned store."""

    def put(self, key: Row, row: Row | None, time: int) -> Outcome:
        """Writes a row, or a tombstone."""

    def timed(self, key: Row, time: int) -> int:
        """The time at which it takes a change of `time`."""

    def newest(self, key: Row) -> Before | None:
        """The row that is the key's newest; None without one."""

    def lookup(self, key: Row, as_of: int | None) -> Found | Missed:
        """The row valid at `as_of`, or the newest for None."""

    def content(self) -> Content:
        """What it holds: (key, row, valid from, valid to), the versions of one key newest first."""


class _VersionedTable:
    """A versioned store: the flat model that the shipped one is tested with, too."""

    versioned = True

    def __init__(self, node: Node, context: Context, results: bool) -> None:
        assert node.store is not None and node.store.retention is not None
        self._node, self._context, self._results = node.name, context, results
        retention, grace = node.store.retention, node.store.grace
        self.grace = retention if grace is None else grace
        self._model: Model[Row, Row] = Model(retention, self.grace)
        self._order = rows_in_order([c.type for c in node.schema.key])
        self.watching: list[Callable[[int], None]] = []

    @property
    def stream_time(self) -> int:
        return self._context.stream_time_after(self._node, self._model.time, -1)

    def put(self, key: Row, row: Row | None, time: int) -> Outcome:
        shown = self._model.time = self.stream_time
        outcome = self._model.put(key, row, time)[0]
        if self._context.by_input:
            self._model.time = shown  # the record itself moves nothing
        for watch in self.watching if outcome != "expired" else ():
            watch(time)
        return outcome

    def timed(self, key: Row, time: int) -> int:
        if not self._results or key not in self._model.rows:
            return time
        refused = not self._context.by_input and time < self.stream_time - self.grace
        return time if refused else max(time, *self._model.rows[key])  # D33

    def newest(self, key: Row) -> Before | None:
        found = self._model.lookup(key, None)
        return None if isinstance(found, str) else Before.of(found[0], found[1])

    def lookup(self, key: Row, as_of: int | None) -> Found | Missed:
        if self._context.clock is not None:
            self._model.time = self._context.clock.asked(self._context.asker)
        found = self._model.lookup(key, as_of)
        return Missed(found) if isinstance(found, str) else found

    def until(self, key: Row, time: int) -> int:
        """When the version that begins at `time` ends."""
        return min((start for start in self._model.rows[key] if start > time), default=INFINITE)

    def history(self, key: Row) -> dict[int, Row | None]:
        """All versions of a key, also those that are forgotten."""
        return self._model.rows.get(key, {})

    def before(self, key: Row, time: int) -> Before | None:
        """The row that is valid at a time."""
        begin = max((start for start in self.history(key) if start <= time), default=None)
        row = None if begin is None else self.history(key)[begin]
        return None if row is None or begin is None else Before.of(row, begin)

    def content(self) -> Content:
        model, found = self._model, []
        for key in sorted(model.rows, key=self._order):
            for start, end, row in reversed(model.known(key, model.time - model.retention, INFINITE - 1)):
                found.append((key, row, start, None if end == INFINITE else end))
        return None if model.time < 0 else model.time, 0, found


class _UnversionedTable:
    """A store that keeps one row a key, the one that came last."""

    versioned = False
    stream_time = -1
    until = history = before = grace = None
    watching: Sequence[Callable[[int], None]] = ()

    def __init__(self, node: Node, context: Context, results: bool) -> None:
        self._window = node.operation.window if isinstance(node.operation, Aggregate) else None
        self._context, self._node = context, node.name
        self._forget = None if node.store is None else node.store.forget
        self._rows: dict[Row, tuple[Row, int]] = {}
        self._order = rows_in_order([c.type for c in node.schema.key])

    def put(self, key: Row, row: Row | None, time: int) -> Outcome:
        if row is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = row, time
        return "latest"

    def timed(self, key: Row, time: int) -> int:
        return time

    def newest(self, key: Row) -> Before | None:
        found = self._rows.get(key)
        clock = self._context.clock
        if found is None or (clock is not None and self._forgotten(found[1], clock.asked(self._node))):
            return None
        return Before.of(*found)

    def lookup(self, key: Row, as_of: int | None) -> Found | Missed:
        if as_of is not None:
            raise ValueError("an unversioned table cannot be read as of a time")
        found = self._rows.get(key)
        return Missed.NO_RECORD if found is None or self._has_closed(key) else (*found, None)

    def _has_closed(self, key: Row) -> bool:
        """Whether the row is of a window that is over, by the input's clock of the node that asks."""
        if self._context.clock is None or self._window is None:
            return False
        end, window = key[-1] // 1000, self._window
        after = window.grace + {"session": window.size + 1, "sliding": 1}.get(window.kind, 0)
        return bool(end + after < self._context.clock.asked(self._context.asker))

    def _forgotten(self, time: int, now: int) -> bool:
        return self._forget is not None and time + self._forget <= now

    def content(self) -> Content:
        clock = self._context.clock
        now = -1 if clock is None else clock.kept(self._node)
        kept = [key for key in sorted(self._rows, key=self._order) if not self._forgotten(self._rows[key][1], now)]
        return None, 0, [(key, *self._rows[key], None) for key in kept]


def open_table(node: Node, context: Context, results: bool) -> TableStore:
    """A store for `node`, which must have one. `results`: its rows are those of a join of tables or of an aggregate."""
    assert node.store is not None
    found: Any = _UnversionedTable if node.store.kind == "unversioned" else _VersionedTable
    opened: TableStore = found(node, context, results)
    return opened
