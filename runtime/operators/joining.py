"""A stream's records joined with a table's rows: the results have the records' own keys and times."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import StreamGlobalJoin, StreamTableJoin
from vsc.runtime.metrics import RETENTION_NEEDED
from vsc.runtime.operators.columns.evaluation import Side
from vsc.runtime.operators.columns.flow import Flow, chosen
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.tables.lookups import Reasons, TableRows
from vsc.runtime.records import Mask
from vsc.runtime.state.api import LOOKUP_MISSES
from vsc.runtime.values import arrow_type

__all__ = ["Joining"]


class Joining:
    """A stream's join at one node. `as_of`: with the row valid at the record's time, otherwise with the newest."""

    def __init__(self, site: Site, operation: StreamTableJoin | StreamGlobalJoin, as_of: bool) -> None:
        self._site, self._left, self._max_age = site, operation.left, operation.max_age
        self._drops_older = isinstance(operation, StreamTableJoin) and operation.drop_older
        self._look_up = site.look_up(site.node.inputs[1], as_of)
        self._waited = bool(site.node.operation.waits)  # records have waited for the record at whose moment they come
        self._table = site.inputs[1]
        self._items = site.evaluation(operation.items, 2)

    def joined(self, flow: Flow, asking: Flow) -> Flow:
        """The results of records; `asking` are the same records with the key and the time to look up."""
        rows = self._look_up(asking)
        if self._max_age is not None:
            rows = rows.since(flow.time - self._max_age)
        kept = self._site.kept(flow, rows.failed, waited=self._waited)
        self._miss(flow, np.where(kept, rows.missed, 0), rows.needed)
        if not self._left:
            kept &= rows.present
        elif self._drops_older:
            kept &= ~rows.forgotten
        flow, rows = flow.select(kept), rows.select(kept)
        return self._made(flow, chosen(asking.keys, kept), rows)

    def with_alone(self, joined: Flow, flow: Flow, keys: tuple[pa.Array, ...], null: Mask) -> Flow:
        """The results `joined`, and those of the records of `flow` that ask with a `null` among their `keys`."""
        if not null.any():
            return joined
        flow, keys = flow.select(null), chosen(keys, null)
        values = tuple(pa.nulls(len(flow), arrow_type(c.type)) for c in self._table.value)
        alone = self._made(flow, keys, TableRows.of(np.zeros(len(flow), dtype=np.bool_), flow.time, values))
        return Flow.merged([joined, alone])

    def _made(self, flow: Flow, keys: tuple[pa.Array, ...], partners: TableRows) -> Flow:
        """The results of records; `keys` are those by which the partners were looked up."""
        stream, table = self._items.wanted
        columns = flow.columns
        results = self._items.run(Side([columns[i] for i in stream], flow.time), partners.side(keys, table))
        kept = self._site.kept(flow, results.failed, waited=self._waited)
        return flow.with_rows(flow.present, results.columns).select(kept)

    def _miss(self, flow: Flow, missed: Reasons, needed: int) -> None:
        counts = np.bincount(missed, minlength=len(LOOKUP_MISSES)).tolist()
        for number, reason in enumerate(LOOKUP_MISSES):
            if reason is not None and counts[number]:
                self._site.lose(reason, flow, missed == number, waited=self._waited)
        if needed >= 0:
            self._site.peak(RETENTION_NEEDED, needed)
