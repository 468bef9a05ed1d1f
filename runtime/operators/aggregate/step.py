"""The operator of an aggregate: array code for what it can compute, a loop over its records for the rest."""

from __future__ import annotations

from typing import Any

from vsc.plan.nodes import Aggregate
from vsc.runtime.operators.aggregate.calls import Calls
from vsc.runtime.operators.aggregate.folding import Folding, can_be_folded
from vsc.runtime.operators.aggregate.groups import GroupColumns
from vsc.runtime.operators.aggregate.loop import AggregateLoop
from vsc.runtime.operators.aggregate.moving_windows import MovingWindows
from vsc.runtime.operators.aggregate.records.build import travelled
from vsc.runtime.operators.aggregate.session_windows import SessionColumns
from vsc.runtime.operators.aggregate.sliding_windows import SlidingColumns
from vsc.runtime.operators.aggregate.state import open_aggregate
from vsc.runtime.operators.aggregate.table_groups import TableGroupColumns
from vsc.runtime.operators.aggregate.view import GROUPS
from vsc.runtime.operators.aggregate.window_results import WindowResults
from vsc.runtime.operators.aggregate.windows import WindowColumns
from vsc.runtime.operators.columns.failures import Failures
from vsc.runtime.operators.columns.flow import Flow, NotColumnar
from vsc.runtime.operators.columns.moments import Moments
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site

__all__ = ["OPERATOR"]

MOVING: dict[str, type[MovingWindows]] = {"session": SessionColumns, "sliding": SlidingColumns}
"""The windows whose bounds depend on their records."""

_Way = GroupColumns | TableGroupColumns | WindowColumns | MovingWindows | AggregateLoop


class _Aggregate(Step):
    def __init__(self, site: Site, operation: Aggregate) -> None:
        self._site, self._operation = site, operation
        self._taken: _Way | None = None

    def process(self, flow: Flow) -> Flow:
        site, operation = self._site, self._operation
        if can_be_folded(site.node, operation):
            attempt = site.failures.attempt()
            folded = self._folded(attempt)
            try:
                found = folded.process(flow)
            except NotColumnar:
                pass  # a result of some record cannot be computed, so the record is no part of its group
            else:
                site.failures.take(attempt)
                self._taken = folded
                return found
        moving = operation.window is not None and operation.window.kind in MOVING
        self._taken = self._moving() if moving else self._loop()
        return self._taken.process(flow)

    def commit(self) -> None:
        if self._taken is not None:
            self._taken.commit()

    def waiting(self) -> list[tuple[int, Any]]:
        loop = self._taken = self._loop()
        return loop.waiting()

    def release(self, waiting: list[tuple[int, Any]], at: Moments) -> Flow:
        assert isinstance(self._taken, AggregateLoop)
        return self._taken.release(waiting, at)

    def _loop(self) -> AggregateLoop:
        site = self._site
        return AggregateLoop(site.plan, site.stage, site.node, site.kv, site.loop(), site.old)

    def _moving(self) -> MovingWindows:
        site, operation = self._site, self._operation
        assert operation.window is not None
        kind, calls = MOVING[operation.window.kind], Calls(site.node, operation)
        state = open_aggregate(site.kv, site.stage, site.node, calls.numbered)
        results = WindowResults(site.node, site.space, site.old, site.give, site.loop())
        return kind(site.node, operation, calls, state, results, site.failures)

    def _folded(self, failures: Failures) -> GroupColumns | TableGroupColumns | WindowColumns:
        site, operation = self._site, self._operation
        node, folding = site.node, Folding(site.node, operation)
        state = open_aggregate(site.kv, site.stage, node, folding.numbered)
        if operation.over == "table":
            rows = travelled(site.plan, node, operation)
            return TableGroupColumns(node.name, folding, rows, state, site.table, site.old, site.latest, failures)
        if operation.window is None:
            return GroupColumns(node.name, folding, state, site.table, site.old, failures)
        return WindowColumns(
            node, operation, folding, state, site.table, site.space, site.old, site.give, failures
        )  # fmt: skip


OPERATOR = Operator(_Aggregate, beside=GROUPS)
