"""A join of a stream with a table (KIP-914): the row valid at the record's time, or the newest of an unversioned table.

The record has the table's key. With `grace` the record waits first (see `grace`). A record without a key reaches only a
left join, and finds nothing there (D26).
"""

from __future__ import annotations

from vsc.plan.nodes import StreamTableJoin
from vsc.runtime.expressions import null_rows
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.grace import WAITING, Grace
from vsc.runtime.operators.joining import Joining
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site

__all__ = ["OPERATOR"]


class _StreamTableJoin(Step):
    def __init__(self, site: Site, operation: StreamTableJoin) -> None:
        self._site = site
        self._join = Joining(site, operation.left, operation.as_of, operation.items)

    def process(self, flow: Flow) -> Flow:
        flow = self._site.with_value(flow)
        keyless = null_rows(flow.keys, len(flow))
        asking = flow.select(~keyless)
        return self._join.with_alone(self._join.joined(asking, asking), flow, flow.keys, keyless)


def _build(site: Site, operation: StreamTableJoin) -> Step:
    join = _StreamTableJoin(site, operation)
    return join if operation.grace is None else Grace(site, operation.grace, join)


OPERATOR = Operator(_build, beside=WAITING)
