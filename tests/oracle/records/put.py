"""Puts a table's change into the node's own store and sends on what became of it: refused, superseded, or newest."""

from __future__ import annotations

from tests.oracle.records.consumer import ChangeConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.tables import TableStore
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.state.api import OutcomeKind

__all__ = ["TablePut"]

_EXPIRED, _LATEST = OutcomeKind.EXPIRED, OutcomeKind.LATEST


class TablePut:
    """The store of one node, as an operator. A refused write is counted and nothing is sent on."""

    __slots__ = ("_context", "_forward", "_name", "_put", "newest")

    def __init__(self, name: str, store: TableStore, context: Context, forward: ChangeConsumer) -> None:
        self._name = name
        self._put = store.put
        self._context = context
        self._forward = forward
        self.newest = store.newest

    def forget(self, kb: bytes) -> None:
        """Removes a row of an unversioned store and tells nobody: its key will not be asked for again."""
        self._put(kb, None, 0)

    def process(self, kb: bytes, key: Row, new: Row | None, old: Row | None, time: int) -> None:
        """Writes `new`; `old` is what goes on as the change's old row."""
        outcome = self._put(kb, new, time)
        if outcome is _EXPIRED:
            self._context.dropped(self._name, Dropped.EXPIRED)
        else:
            self._forward(kb, key, new, old, outcome is _LATEST, time)
