"""`explode`: one record for each element of an array, which may have its position in it.

A null or empty array gives no records; a record without value is dropped and counted.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vsc.plan.nodes import Explode
from vsc.runtime.operators.columns.flow import Flow, chosen, taken
from vsc.runtime.operators.columns.moments import turns
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site

__all__ = ["OPERATOR"]


class _Explode(Step):
    def __init__(self, site: Site, operation: Explode) -> None:
        self._site, self._array = site, site.evaluation([operation.item])
        self._operation, self._names = operation, [c.name for c in site.inputs[0].value]

    def process(self, flow: Flow) -> Flow:
        site = self._site
        flow = site.with_value(flow)
        found = self._array.over(flow)
        kept = site.kept(flow, found.failed)
        flow, (arrays,) = flow.select(kept), chosen(found.columns, kept)
        causes = pc.list_parent_indices(arrays).to_numpy(zero_copy_only=False).astype(np.int64)
        keys, turn = taken(flow.keys, causes), turns(causes)
        columns = dict(zip(self._names, taken(flow.values, causes), strict=True))
        columns[self._operation.item.name] = pc.list_flatten(arrays)
        if self._operation.position is not None:
            columns[self._operation.position] = pa.array((turn - 1).astype(np.int32))
        values = tuple(columns[column.name] for column in site.node.schema.value)
        at, there = site.give(flow.at.take(causes), turn), np.ones(len(causes), dtype=np.bool_)
        return Flow(at, flow.key[causes], flow.space, flow.time[causes], there, keys, values)


OPERATOR = Operator(_Explode)
