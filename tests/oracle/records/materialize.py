"""`materialize`: an identity with a store of its own, which refuses and flags as that store says."""

from __future__ import annotations

from tests.oracle.records.expressions import Row
from tests.oracle.records.put import TablePut

__all__ = ["Materialize"]


class Materialize:
    """Puts every change into its store; what was the newest in the table before says nothing here."""

    __slots__ = ("_old", "_put")

    def __init__(self, put: TablePut, old_wanted: bool) -> None:
        self._put = put
        self._old = old_wanted

    def process(self, key: Row, new: Row | None, old: Row | None, latest: bool, time: int) -> None:
        """Takes a table's change."""
        put = self._put
        put.process(key, new, put.before(key, time) if self._old else None, time)
