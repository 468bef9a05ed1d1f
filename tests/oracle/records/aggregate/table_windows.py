"""Sliding windows and sessions over a table whose row times never change: what there is follows from the rows alone."""

from __future__ import annotations

from dataclasses import replace

from tests.oracle.records.aggregate.groups import Calls, Group, Member
from tests.oracle.records.aggregate.results import Result, Results
from tests.oracle.records.aggregate.unwindowed import TravelledRows
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row
from tests.oracle.records.order import rows_in_order
from tests.oracle.records.tables import Content
from vsc.plan.nodes import Aggregate, Node, Plan, Window
from vsc.runtime.metrics import LONGEST_SESSION, Dropped

__all__ = ["TableWindows"]

_Windows = dict[tuple[int, int], list[Member]]
"""By start and end, the rows in it, by time."""


class TableWindows:
    """All windows of a group are found before and after each change; what differs is sent.

    A window that is gone is taken back, at the time of its last row. A window that the row is in has a new result.
    """

    def __init__(
        self, plan: Plan, node: Node, window: Window, calls: Calls, results: Results, context: Context
    ) -> None:
        self._node, self._name, self._window, self._calls = node.name, node.owner, window, calls
        self._results, self._context = results, context
        assert isinstance(node.operation, Aggregate)
        self._travelled = TravelledRows(plan, node, node.operation)
        table = plan.node(plan.node(node.inputs[0]).inputs[0])
        self._in_table = rows_in_order([c.type for c in table.schema.key])
        self._order = rows_in_order([c.type for c in node.schema.key[:-2]])
        self._rows: dict[Row, dict[Row, Member]] = {}
        self._arrivals, self._stream_time = 0, -1

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a grouped change."""
        assert value is not None
        self._stream_time = self._context.stream_time_after(self._node, self._stream_time, time)
        was, now = self._travelled.rows(value)
        added = None if now is None else self._member(now, time)
        if was is None and added is None:
            return
        sliding = self._window.kind == "sliding"
        if sliding and time <= self._closed:
            self._context.dropped(self._name, Dropped.WINDOW_CLOSED)
            return
        rows = self._rows.setdefault(key, {})
        self._pass(rows)
        before = self._windows(rows)
        went = was is not None and self._take_out(rows, self._travelled.ident(was), time)
        if added is not None:
            rows[added.ident] = added
        after = self._windows(rows)
        late = sliding and max(time - self._window.size, 0) <= self._closed
        if added is not None and self._late(after, time):
            del rows[added.ident]
            late, after = True, self._windows(rows)
        elif added is None:
            late = not went and time <= self._closed
        if late:
            self._context.dropped(self._name, Dropped.WINDOW_CLOSED)
        if went or added is not None:
            self._send(key, before, after, time)

    def content(self) -> Content:
        """The windows: (key and bounds, result or None if it fails, its time, number of rows, what it is)."""
        found = []
        for key in sorted(self._rows, key=self._order):
            self._pass(self._rows[key])
            for bounds, members in sorted(self._windows(self._rows[key]).items()):
                row, place = self._result(key, bounds, members), bounds[self._window.kind == "session"]
                status = "closed" if place <= self._closed else "open"
                whole = (*key, *(bound * 1000 for bound in bounds))
                found.append((whole, row, members[-1].time, len(members), status if row else "expression_failed"))
        return None if self._stream_time < 0 else self._stream_time, 0, found

    @property
    def _closed(self) -> int:
        size = self._window.size
        return self._stream_time - size - self._window.grace - 1

    def _pass(self, rows: dict[Row, Member]) -> None:
        """Leaves out closed sessions: another one may begin beside them."""
        if self._window.kind == "session":
            for (_, end), members in self._windows(rows).items():
                for ident in [one for one, member in rows.items() if member in members and end <= self._closed]:
                    del rows[ident]

    def _take_out(self, rows: dict[Row, Member], ident: Row, time: int) -> bool:
        there = ident in rows and rows[ident].time == time
        if there:
            del rows[ident]
        return there

    def _member(self, row: Row, time: int) -> Member | None:
        try:
            return Member(self._calls.args(row, time), time, 0, self._travelled.ident(row))
        except NodeFailure as failure:
            self._context.failed(failure)
            return None

    def _windows(self, rows: dict[Row, Member]) -> _Windows:
        size = self._window.size
        members = sorted(rows.values(), key=lambda one: (one.time, self._in_table(one.ident)))
        times = [one.time for one in members]
        if self._window.kind == "sliding":
            starts = {max(at - size, 0) for at in times}
            starts |= {at + 1 for at in times if any(at < other <= at + 1 + size for other in times)}
            bounds = [(start, start + size) for start in starts]
        else:
            begins = [at for n, at in enumerate(times) if not n or at - times[n - 1] > size]
            behind = [*begins[1:], 2**63][: len(begins)]
            bounds = [(at, max(t for t in times if t < end)) for at, end in zip(begins, behind, strict=True)]
        return {(low, high): [one for one in members if low <= one.time <= high] for low, high in bounds}

    def _late(self, windows: _Windows, time: int) -> bool:
        return self._window.kind == "session" and any(low <= time <= high <= self._closed for low, high in windows)

    def _send(self, key: Row, before: _Windows, after: _Windows, time: int) -> None:
        def fixed(bounds: tuple[int, int]) -> bool:
            return self._window.kind == "sliding" and bounds[0] <= self._closed

        for bounds in sorted(before.keys() - after.keys()):
            if not fixed(bounds):
                whole = (*key, *(bound * 1000 for bound in bounds))
                self._results.send(Result(whole, None, before[bounds][-1].time))
        for bounds in sorted(after):
            concerned = bounds[0] <= time <= bounds[1]
            if not fixed(bounds) and (concerned or bounds not in before):
                self._changed(key, bounds, after[bounds])

    def _changed(self, key: Row, bounds: tuple[int, int], members: list[Member]) -> None:
        whole = (*key, *(bound * 1000 for bound in bounds))
        if self._window.kind == "session":
            self._context.metrics.peak(self._name, LONGEST_SESSION, bounds[1] - bounds[0])
        try:
            new = self._calls.result(self._group(members), whole)
        except NodeFailure as failure:
            self._context.failed(failure)
            return
        self._results.send(Result(whole, new, members[-1].time))

    def _group(self, members: list[Member]) -> Group:
        numbered = tuple(one._replace(arrival=number) for number, one in enumerate(members))
        return replace(Group(members[-1].time), own=numbered)

    def _result(self, key: Row, bounds: tuple[int, int], members: list[Member]) -> Row | None:
        try:
            return self._calls.result(self._group(members), (*key, *(bound * 1000 for bound in bounds)))
        except NodeFailure:
            return None
