"""`filter`: the records for which a condition is true; on a table, the other rows become tombstones.

The condition is also evaluated on a stream's record without value, whose value columns are null. A table's filter
computes its rows from those of its input, so a look-up into it continues in the input; a row that fails the condition
counts as a tombstone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from vsc.plan.nodes import Filter
from vsc.runtime.operators.columns.evaluation import Evaluation
from vsc.runtime.operators.columns.flow import Flow, blanked
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.table import TableStep
from vsc.runtime.operators.tables.lookups import TOMBSTONE, Lookup, TableRows

__all__ = ["OPERATOR"]


def _build(site: Site, operation: Filter) -> Step:
    holds = site.evaluation([operation.predicate])
    if site.node.kind == "table":
        return TableStep(site, predicate=holds, dedupe=operation.dedupe)
    return _StreamFilter(holds, site)


@dataclass(frozen=True, slots=True)
class _StreamFilter(Step):
    holds: Evaluation
    site: Site

    def process(self, flow: Flow) -> Flow:
        true, failed = self.holds.true(flow.columns, flow.time, np.ones(len(flow), dtype=np.bool_))
        return flow.select(self.site.kept(flow, failed) & true)


def _look_up(site: Site, operation: Filter, as_of: bool) -> Lookup:
    holds, behind = site.evaluation([operation.predicate]), site.look_up(site.node.inputs[0], as_of)

    def find(flow: Flow) -> TableRows:
        rows = behind(flow)
        there = rows.present
        kept, failed = holds.true(flow.keys + rows.values, rows.time, there)
        missed = np.where(there & ~kept, TOMBSTONE, rows.missed).astype(np.uint8)
        return replace(rows, missed=missed, values=blanked(rows.values, kept), failed={**rows.failed, **failed})

    return find


OPERATOR = Operator(_build, _look_up)
