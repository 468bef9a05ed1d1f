"""Puts a table's change into the node's own store and sends on what became of it: refused, superseded, or newest."""

from __future__ import annotations

from tests.oracle.records.consumer import Before, ChangeConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import Row
from tests.oracle.records.tables import TableStore
from vsc.runtime.metrics import Dropped

__all__ = ["TablePut"]


class TablePut:
    """The store of one node, as an operator. A refused write is counted and nothing is sent on.

    `intervals`: a reader takes changes with the intervals on which they are valid.
    """

    __slots__ = ("_as_of", "_context", "_forward", "_name", "_put", "_timed", "newest")

    def __init__(
        self, name: str, store: TableStore, context: Context, forward: ChangeConsumer, intervals: bool = False
    ) -> None:
        self._name = name
        self._put, self._timed = store.put, store.timed
        self._context = context
        self._forward = forward
        self.newest = store.newest
        self._as_of = store.before if intervals else None

    def before(self, key: Row, time: int) -> Before | None:
        """The row before a change: the key's newest, or the one that is valid at the time of the change."""
        return self.newest(key) if self._as_of is None else self._as_of(key, time)

    def forget(self, key: Row) -> None:
        """Removes a row of an unversioned store and tells nobody: its key will not be asked for again."""
        self._put(key, None, 0)

    def process(self, key: Row, new: Row | None, old: Before | None, time: int, silent: bool = False) -> None:
        """Writes `new`; `old` is what goes on as the change's old row. `silent`: nothing goes on."""
        kept = self._timed(key, time)
        outcome = self._put(key, new, kept)
        time = kept if self._context.by_input else time  # that is recorded: the store alone goes by D33
        if outcome == "expired":
            self._context.dropped(self._name, Dropped.EXPIRED)
        elif not silent:
            self._forward(key, new, old, outcome == "latest", time)
