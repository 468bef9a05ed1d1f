"""`map`: recomputes the value columns; the key stays.

A record without value stays without. A table's map computes its rows from those of its input, so a look-up into it
continues in the input.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from vsc.plan.nodes import Map
from vsc.runtime.operators.columns.evaluation import Evaluation
from vsc.runtime.operators.columns.flow import Flow
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
    return _StreamMap(site.evaluation(operation.items), site)


@dataclass(frozen=True, slots=True)
class _StreamMap(Step):
    items: Evaluation
    site: Site

    def process(self, flow: Flow) -> Flow:
        found = self.items.where(flow.columns, flow.time, flow.present)
        return flow.with_rows(flow.present, found.columns).select(self.site.kept(flow, found.failed))


OPERATOR = Operator(_build, looked_up(_rows))
