"""A primary-key join of two tables whose own history is complete (KIP-914, "Attempt 2").

A change of a side, valid on an interval, is joined with each version of the other side in that interval: as of every
time, the result is the join of the rows that are valid then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.moments import Moments
from vsc.runtime.operators.complete.intervals import cut, divided
from vsc.runtime.operators.complete.pieces import Pieces, sent
from vsc.runtime.operators.operator import Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.tables.lookups import TableRows
from vsc.runtime.operators.tables.store import VersionedColumns

__all__ = ["CompleteJoin"]

Pairs = Callable[[tuple[pa.Array, ...], TableRows, TableRows], TableRows]
"""The rows that the join makes from those of its two sides, given the records' keys."""


class CompleteJoin(Step):
    """The changes of the join for those of its sides, which say until when each is valid."""

    def __init__(self, site: Site, pairs: Pairs) -> None:
        self._site, self._pairs = site, pairs

    def fed(self, feeding: Sequence[Flow | None]) -> Flow:
        """The changes of both sides, in the order of processing."""
        parts = [self._side(flow, port) for port, flow in enumerate(feeding) if flow is not None]
        at, pieces = Pieces.merged(parts)
        return sent(self._site, at, self._site.space, pieces)

    def _side(self, flow: Flow, port: int) -> tuple[Moments, Pieces]:
        """The results on the parts of each change's interval in which the other side has one row."""
        site, table = self._site, self._site.table
        assert isinstance(table, VersionedColumns)
        other = site.node.inputs[1 - port]
        changed = cut(flow, table.earliest(site.moving(flow)))
        event, asking, ends = divided(changed, *site.version_times(other)(changed))
        found = site.look_up(other, as_of=True)(asking)
        site.kept(asking, found.failed, site.inputs[port])
        own = TableRows.of(asking.present, flow.time[event], asking.values)
        result = self._pairs(asking.keys, *((found, own) if port else (own, found)))
        site.kept(asking, {row: f for row, f in result.failed.items() if row not in found.failed}, site.inputs[port])
        assert asking.until is not None
        return flow.at, Pieces(
            event, asking.key, asking.time, asking.until, ends, result.present, asking.keys, result.values
        )
