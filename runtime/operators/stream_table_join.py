"""A join of a stream with a table (KIP-914): the row valid at the record's time, or the newest of an unversioned table.

The record has the table's key. With `grace` the record waits first (see `grace`). What still waits when a changed
topology no longer has the `grace` is joined before everything else. A record without a key reaches only a left join,
and finds nothing there (D26).
"""

from __future__ import annotations

from dataclasses import replace

from vsc.plan.nodes import StreamTableJoin
from vsc.runtime.expressions import null_rows
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.moments import Moments
from vsc.runtime.operators.grace import WAITING, Grace
from vsc.runtime.operators.joining import Joining
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.state.grace_buffer import Buffered, TimeOrderedBuffer
from vsc.runtime.state.kv import OrderedKV

__all__ = ["OPERATOR"]


class _StreamTableJoin(Step):
    def __init__(self, site: Site, operation: StreamTableJoin) -> None:
        self._site = site
        self._join = Joining(site, operation, operation.as_of)
        self._before = int(operation.strictly_before)  # times are whole milliseconds

    def process(self, flow: Flow) -> Flow:
        flow = self._site.with_value(flow)
        keyless = null_rows(flow.keys, len(flow))
        asking = flow.select(~keyless)
        joined = self._join.joined(asking, replace(asking, time=asking.time - self._before))
        return self._join.with_alone(joined, flow, flow.keys, keyless)

    def waiting(self) -> list[tuple[int, Buffered]]:
        """Takes out what a former `grace` has left."""
        return Grace(self._site, 0, self).waiting()

    def release(self, waiting: list[tuple[int, Buffered]], at: Moments) -> Flow:
        """Joins it."""
        return self.process(Grace(self._site, 0, self).taken(waiting, at))


def _build(site: Site, operation: StreamTableJoin) -> Step:
    join = _StreamTableJoin(site, operation)
    return join if operation.grace is None else Grace(site, operation.grace, join)


def _left(kv: OrderedKV, prefix: bytes) -> int:
    return len(TimeOrderedBuffer(kv, prefix))


OPERATOR = Operator(_build, side_store=WAITING, left=_left)
