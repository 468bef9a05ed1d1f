"""The operator of an aggregate, and its parts for a stream, a table, and each kind of window."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from vsc.plan.nodes import Aggregate
from vsc.runtime.operators.aggregate.groups.complete_groups import CompleteGroups
from vsc.runtime.operators.aggregate.groups.folding import Folding, arguments_of
from vsc.runtime.operators.aggregate.groups.past import Past
from vsc.runtime.operators.aggregate.groups.state import SUFFIX, AggregateState
from vsc.runtime.operators.aggregate.groups.stream_groups import GroupColumns
from vsc.runtime.operators.aggregate.groups.table_groups import TableGroupColumns
from vsc.runtime.operators.aggregate.groups.travelled import Travelled
from vsc.runtime.operators.aggregate.view import GROUPS
from vsc.runtime.operators.aggregate.windows.columns import WindowColumns
from vsc.runtime.operators.aggregate.windows.moving import MovingWindows
from vsc.runtime.operators.aggregate.windows.of_table import TableWindows
from vsc.runtime.operators.aggregate.windows.sessions import SessionColumns
from vsc.runtime.operators.aggregate.windows.sliding import SlidingColumns
from vsc.runtime.operators.columns.flow import Flow, chosen
from vsc.runtime.operators.columns.moments import Moments
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.kv_overlay import OverlayKV

__all__ = ["OPERATOR"]

_LOOPS: dict[str, type[MovingWindows]] = {
    "session": SessionColumns,
    "sliding": SlidingColumns,
}


class _Aggregate(Step):
    def __init__(self, site: Site, operation: Aggregate) -> None:
        self._site, self._operation = site, operation
        self._taken: GroupColumns | TableGroupColumns | TableWindows | WindowColumns | MovingWindows | None = None

    def process(self, flow: Flow) -> Flow:
        site, operation = self._site, self._operation
        if operation.over == "table":
            table = self._taken = self._table()
            return table.process(flow)
        flow = site.with_value(flow)
        arguments = arguments_of(site.node, operation).rows(flow.columns, flow.time)
        kept = site.kept(flow, arguments.failed)
        return self._changes(flow.select(kept), chosen(arguments.columns, kept))

    def _changes(self, flow: Flow, arguments: tuple[pa.Array, ...]) -> Flow:
        """The changes, given the arguments of a stream's records."""
        if self._operation.window is None:
            stream = self._taken = self._stream()
            return stream.changes(flow, arguments)
        windows = self._taken = self._windows()
        return windows.changes(flow, arguments)

    def commit(self) -> None:
        if self._taken is not None:
            self._taken.commit()

    def closing(self, most: int) -> Flow:
        """See `WindowColumns.closing`."""
        windows = self._taken = self._windows()
        assert isinstance(windows, WindowColumns)
        return windows.closing(most)

    def waiting(self) -> list[tuple[int, Any]]:
        windows = self._taken = self._windows()
        return windows.waiting()

    def release(self, waiting: list[tuple[int, Any]], at: Moments) -> Flow:
        assert isinstance(self._taken, WindowColumns | MovingWindows)
        return self._taken.release(waiting, at)

    def _table(self) -> TableGroupColumns | TableWindows:
        site, operation = self._site, self._operation
        rows = Travelled(site.plan, site.node, operation)
        if operation.window is not None:  # all rows of a window are added again, like those of a stream
            return TableWindows(site, operation, Folding(site.node, replace(operation, over="stream")), rows)
        folding = Folding(site.node, operation)
        if site.node.complete:
            return CompleteGroups(site, folding, rows, self._state(site.kv, folding.calls.numbered), self._past())
        return TableGroupColumns(site, folding, rows, self._state(site.kv, folding.calls.numbered))

    def _past(self) -> Past:
        site, store = self._site, self._site.node.store
        assert store is not None and store.retention is not None
        return Past(site.kv, site.prefix + SUFFIX, self._operation, store.retention)

    def _stream(self) -> GroupColumns:
        site, folding = self._site, Folding(self._site.node, self._operation)
        state = self._state(site.kv, folding.calls.numbered)
        return GroupColumns(site, folding, state)

    def _windows(self) -> WindowColumns | MovingWindows:
        site, operation = self._site, self._operation
        folding = Folding(site.node, operation)
        assert operation.window is not None
        kind = _LOOPS.get(operation.window.kind)
        if kind is None:
            return WindowColumns(site, operation, folding, self._state(site.kv, folding.calls.numbered))
        pending = OverlayKV(site.kv) if folding.calls.has_entries else None
        state = self._state(site.kv if pending is None else pending, folding.calls.numbered)
        return kind(site, operation, folding, state, pending)

    def _state(self, kv: OrderedKV, numbered: bool) -> AggregateState:
        return AggregateState(kv, self._site.prefix + SUFFIX, numbered)


OPERATOR = Operator(_Aggregate, side_store=GROUPS)
