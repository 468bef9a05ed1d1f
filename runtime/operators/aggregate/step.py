"""The operator of an aggregate, and what it is made of for a stream, a table, and each kind of window."""

from __future__ import annotations

from typing import Any

from vsc.plan.nodes import Aggregate
from vsc.runtime.operators.aggregate.calls import Calls
from vsc.runtime.operators.aggregate.folding import Folding
from vsc.runtime.operators.aggregate.group_loop import GroupLoop
from vsc.runtime.operators.aggregate.groups import GroupColumns
from vsc.runtime.operators.aggregate.moving_windows import MovingWindows
from vsc.runtime.operators.aggregate.session_windows import SessionColumns
from vsc.runtime.operators.aggregate.sliding_windows import SlidingColumns
from vsc.runtime.operators.aggregate.state import AggregateState, open_aggregate
from vsc.runtime.operators.aggregate.table_groups import TableGroupColumns
from vsc.runtime.operators.aggregate.time_windows import TimeWindows
from vsc.runtime.operators.aggregate.travelled import travelled
from vsc.runtime.operators.aggregate.view import GROUPS
from vsc.runtime.operators.aggregate.window_results import WindowResults
from vsc.runtime.operators.aggregate.windows import WindowColumns
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.moments import Moments
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.kv_overlay import OverlayKV

__all__ = ["OPERATOR"]

_LOOPS: dict[str, type[MovingWindows]] = {
    "tumbling": TimeWindows,
    "hopping": TimeWindows,
    "session": SessionColumns,
    "sliding": SlidingColumns,
}


class _Aggregate(Step):
    def __init__(self, site: Site, operation: Aggregate) -> None:
        self._site, self._operation = site, operation
        self._taken: GroupColumns | TableGroupColumns | WindowColumns | MovingWindows | None = None

    def process(self, flow: Flow) -> Flow:
        window = self._operation.window
        if window is None:
            self._taken = self._table() if self._operation.over == "table" else self._stream()
        else:
            self._taken = self._windows() if window.kind in ("tumbling", "hopping") else self._loop()
        return self._taken.process(flow)

    def commit(self) -> None:
        if self._taken is not None:
            self._taken.commit()

    def waiting(self) -> list[tuple[int, Any]]:
        self._taken = self._loop()
        return self._taken.waiting()

    def release(self, waiting: list[tuple[int, Any]], at: Moments) -> Flow:
        assert isinstance(self._taken, MovingWindows)
        return self._taken.release(waiting, at)

    def _table(self) -> TableGroupColumns:
        site, folding, results = self._site, Folding(self._site.node, self._operation), self._site.loop()
        rows, state = travelled(site.plan, site.node, self._operation), self._state(site.kv, folding.numbered)
        old = site.old and site.table is None
        return TableGroupColumns(site.name, folding, rows, state, results, old, site.failures)

    def _stream(self) -> GroupColumns:
        site, folding, results = self._site, Folding(self._site.node, self._operation), self._site.loop()
        state, schema = self._state(site.kv, folding.numbered), site.node.schema
        old, calls = site.old and site.table is None, Calls(site.node, self._operation)
        loop = GroupLoop(site.name, schema.key, schema.value, calls, state, results, old, site.failures)
        return GroupColumns(site.name, folding, loop, state, results, old, site.failures)

    def _windows(self) -> WindowColumns:
        site, folding = self._site, Folding(self._site.node, self._operation)
        return WindowColumns(
            site.node, self._operation, folding, self._loop, self._state(site.kv, folding.numbered), site.loop(),
            site.space, site.old, site.give, site.failures,
        )  # fmt: skip

    def _loop(self) -> MovingWindows:
        site, calls, pending = self._site, Calls(self._site.node, self._operation), OverlayKV(self._site.kv)
        assert self._operation.window is not None
        results = WindowResults(site.node, site.space, site.old, site.give, site.loop())
        state, kind = self._state(pending, calls.numbered), _LOOPS[self._operation.window.kind]
        return kind(site.node, self._operation, calls, state, results, site.failures, pending)

    def _state(self, kv: OrderedKV, numbered: bool) -> AggregateState:
        return open_aggregate(kv, self._site.stage, self._site.node, numbered)


OPERATOR = Operator(_Aggregate, beside=GROUPS)
