"""`filter`: the records for which a condition is true; on a table, the other rows become tombstones.

The condition is also evaluated on a stream's record without value, whose value columns are null. A table's filter
computes its rows from those of its input, so a look-up into it continues in the input; a row that fails the condition
counts as a tombstone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from vsc.plan.nodes import Filter
from vsc.runtime.operators.columns.evaluation import Evaluation
from vsc.runtime.operators.columns.flow import Flow, blanked
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.table import Rows, TableStep, looked_up
from vsc.runtime.operators.tables.lookups import TOMBSTONE, TableRows

__all__ = ["OPERATOR"]


def _rows(site: Site, operation: Filter) -> Rows:
    holds = site.evaluation([operation.predicate])

    def rows(keys: tuple[pa.Array, ...], before: TableRows) -> TableRows:
        there = before.present
        kept, failed = holds.true(keys + before.values, before.time, there)
        missed = np.where(there & ~kept, TOMBSTONE, before.missed).astype(np.uint8)
        return replace(before, missed=missed, values=blanked(before.values, kept), failed={**before.failed, **failed})

    return rows


def _build(site: Site, operation: Filter) -> Step:
    if site.node.kind == "table":
        return TableStep(site, _rows(site, operation), operation.dedupe)
    return _StreamFilter(site.evaluation([operation.predicate]), site)


@dataclass(frozen=True, slots=True)
class _StreamFilter(Step):
    holds: Evaluation
    site: Site

    def process(self, flow: Flow) -> Flow:
        true, failed = self.holds.true(flow.columns, flow.time, np.ones(len(flow), dtype=np.bool_))
        return flow.select(self.site.kept(flow, failed) & true)


OPERATOR = Operator(_build, looked_up(_rows))
