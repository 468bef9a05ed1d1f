"""`map`: recomputes the value columns; the key stays.

A record without value stays without. A table's map computes its rows from those of its input, so a look-up into it
continues in the input.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from vsc.plan.nodes import Map
from vsc.runtime.operators.columns.evaluation import Evaluation
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.table import TableStep
from vsc.runtime.operators.tables.lookups import Lookup, TableRows, missing

__all__ = ["OPERATOR"]


def _build(site: Site, operation: Map) -> Step:
    items = site.evaluation(operation.items)
    return TableStep(site, rows=items) if site.node.kind == "table" else _StreamMap(items, site)


@dataclass(frozen=True, slots=True)
class _StreamMap(Step):
    items: Evaluation
    site: Site

    def process(self, flow: Flow) -> Flow:
        found = self.items.where(flow.columns, flow.time, flow.present)
        return flow.with_rows(flow.present, found.columns).select(self.site.kept(flow, found.failed))


def _look_up(site: Site, operation: Map, as_of: bool) -> Lookup:
    items, behind = site.evaluation(operation.items), site.look_up(site.node.inputs[0], as_of)

    def find(flow: Flow) -> TableRows:
        rows = behind(flow)
        found = items.where(flow.keys + rows.values, rows.time, rows.present)
        failed = {**rows.failed, **found.failed}
        return replace(rows, missed=missing(rows.missed, found.failed), values=found.columns, failed=failed)

    return find


OPERATOR = Operator(_build, _look_up)
