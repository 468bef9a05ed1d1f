"""`map`: recomputes the value columns; the key stays. A stream's may give its records an event time that is not later.

A record without value stays without, at its time. A table's map computes its rows from those of its input, so a look-up
into it continues in the input.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Map
from vsc.plan.types import DataType
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.columns.evaluation import Evaluation
from vsc.runtime.operators.columns.flow import Flow, chosen
from vsc.runtime.operators.columns.times import event_times
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.table import Rows, TableStep, looked_up
from vsc.runtime.operators.tables.lookups import TableRows, missing

__all__ = ["OPERATOR"]


def _rows(site: Site, operation: Map) -> Rows:
    items = site.evaluation(operation.items)

    def rows(keys: tuple[pa.Array, ...], before: TableRows) -> TableRows:
        found = items.where(keys + before.values, before.time, before.present)
        failed = {**before.failed, **found.failed}
        return replace(before, missed=missing(before.missed, found.failed), values=found.columns, failed=failed)

    return rows


def _build(site: Site, operation: Map) -> Step:
    if site.node.kind == "table":
        return TableStep(site, _rows(site, operation))
    if operation.timestamp is None:
        return _StreamMap(site.evaluation(operation.items), site)
    return _Timed(site.evaluation([*operation.items, operation.timestamp]), site, operation.timestamp.expr.type)


@dataclass(frozen=True, slots=True)
class _StreamMap(Step):
    items: Evaluation
    site: Site

    def process(self, flow: Flow) -> Flow:
        found = self.items.where(flow.columns, flow.time, flow.present)
        return flow.with_rows(flow.present, found.columns).select(self.site.kept(flow, found.failed))


@dataclass(frozen=True, slots=True)
class _Timed(Step):
    """Of a stream, with an event time of `type`, the last of `items`."""

    items: Evaluation
    site: Site
    type: DataType

    def process(self, flow: Flow) -> Flow:
        found = self.items.where(flow.columns, flow.time, flow.present)
        kept = self.site.kept(flow, found.failed)
        flow, (*values, given) = flow.select(kept), chosen(found.columns, kept)
        times, null = event_times(given, self.type)
        wrong = {
            Dropped.NULL_TIMESTAMP: flow.present & null,
            Dropped.NEGATIVE_TIMESTAMP: flow.present & ~null & (times < 0),
            Dropped.AHEAD_OF_RECORD: flow.present & ~null & (times > flow.time),
        }
        for reason, rows in wrong.items():
            self.site.lose(reason, flow, rows)
        timed = replace(flow.with_rows(flow.present, values), time=np.where(flow.present, times, flow.time))
        return timed.select(~np.logical_or.reduce(list(wrong.values())))


OPERATOR = Operator(_build, looked_up(_rows))
