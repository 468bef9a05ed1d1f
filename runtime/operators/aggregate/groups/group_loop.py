"""The groups of a stream, record by record: for those in which a record fails.

A record whose result cannot be computed is not part of its group, so the group's later results depend on it. Each group
is read once and written once a batch; the accumulators' entries are written at the end of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.aggregate.functions.calls import Calls, Group
from vsc.runtime.operators.aggregate.functions.entries import At
from vsc.runtime.operators.aggregate.groups.state import AggregateState
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.rows import columns_of, rows_of
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.tables.store import VersionedColumns
from vsc.runtime.records import Int64s
from vsc.runtime.state.kv_overlay import OverlayKV

__all__ = ["GroupLoop"]


class GroupLoop:
    """The groups of one aggregate in one batch."""

    def __init__(self, site: Site, calls: Calls, state: AggregateState) -> None:
        self._site, self._calls, self._state = site, calls, state
        self._entries = OverlayKV(state.below)
        self._table = site.table if isinstance(site.table, VersionedColumns) else None
        self._clock = -1 if self._table is None else self._table.stream_time
        self._groups: dict[bytes, Group] = {}

    def changes(self, flow: Flow, args: Sequence[pa.Array], arrivals: Int64s) -> Flow:
        """The results of the records of a flow, given the calls' arguments and the records' arrivals."""
        keys = [flow.space.keys[number] for number in flow.key.tolist()]
        touched = list(dict.fromkeys(keys))
        stored = zip(touched, self._state.get_many(touched), strict=True)
        self._groups = {kb: self._calls.decode(data) for kb, data in stored if data is not None}
        sent: list[int] = []
        news: list[Row] = []
        times: list[int] = []
        given = self._calls.rows(args, len(flow))
        failed: dict[int, NodeFailure] = {}
        expired: list[int] = []
        places = map(At, flow.time.tolist(), arrivals.tolist())
        moving = self._site.moving(flow).tolist()
        for row, record in enumerate(
            zip(keys, rows_of(flow.keys, self._site.node.schema.key, len(flow)), given, places, moving, strict=True)
        ):
            try:
                result = self._taken(*record)
            except NodeFailure as failure:
                failed[row] = failure
                continue
            if result is None:
                expired.append(row)
            else:
                sent.append(row)
                news.append(result)
                times.append(self._groups[record[0]].time)
        self._site.kept(flow, failed)
        self._site.lose(Dropped.EXPIRED, flow, np.array(expired, dtype=np.int64))
        schema = self._site.node.schema.value
        changed = flow.select(np.isin(np.arange(len(flow)), sent))
        values = columns_of(news, schema)
        return replace(changed, time=np.array(times, dtype=np.int64), values=values)

    def writes(self) -> list[tuple[bytes, bytes]]:
        """The rows of the groups; writes their entries."""
        self._entries.commit()
        groups, encode = self._state.groups, self._calls.encode
        return [(groups + kb, encode(group)) for kb, group in self._groups.items()]

    def _taken(self, kb: bytes, key: Row, args: Sequence[tuple[object, ...]], at: At, moved: int) -> Row | None:
        """Adds a record that moves the clock to `moved`: its group's result; None if the table would refuse it."""
        calls, prefix, known = self._calls, self._state.entries + kb, self._groups.get(kb)
        kv = OverlayKV(self._entries) if calls.has_entries else self._entries
        group = calls.empty() if known is None else known.copy()
        calls.add(group, args, at, kv, prefix)
        group.time = max(group.time, at.time)
        new = calls.result(group, key, kv, prefix)
        table = self._table
        clock = max(self._clock, moved)
        if table is not None and group.time < max(clock - table.grace, table.floor):
            return None
        self._clock = clock if self._site.batch.clock is not None else max(clock, group.time)
        if calls.has_entries:
            kv.commit()
        self._groups[kb] = group
        return new
