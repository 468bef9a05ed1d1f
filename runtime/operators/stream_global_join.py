"""A join of a stream with a global table: the newest row by the key that `on` computes (KIP-99).

A null in that key finds nothing: an inner join drops and counts the record, a left join keeps it without partner.
"""

from __future__ import annotations

from dataclasses import replace

from vsc.plan.nodes import StreamGlobalJoin
from vsc.runtime.expressions import null_rows
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.columns.flow import Flow, chosen
from vsc.runtime.operators.joining import Joining
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site

__all__ = ["OPERATOR"]


class _StreamGlobalJoin(Step):
    def __init__(self, site: Site, operation: StreamGlobalJoin) -> None:
        self._site, self._left, self._on = site, operation.left, site.evaluation(operation.on)
        self._join = Joining(site, operation, False)

    def process(self, flow: Flow) -> Flow:
        site, flow = self._site, self._site.with_value(flow)
        by = self._on.over(flow)
        kept = site.kept(flow, by.failed)
        null = null_rows(by.columns, len(flow)) & kept
        there = kept & ~null
        keys, asking = chosen(by.columns, there), flow.select(there)
        number = site.spaces.of(site.inputs[1]).columns(keys, len(asking))
        joined = self._join.joined(asking, replace(asking, key=number, keys=keys))
        if not self._left:
            site.lose(Dropped.NULL_JOIN_KEY, flow, null)
            return joined
        return self._join.with_alone(joined, flow, by.columns, null)


OPERATOR = Operator(_StreamGlobalJoin)
