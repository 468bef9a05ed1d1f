"""`explode`: one record for each element of an array.

A null or empty array gives no records; a record without value is dropped and counted.
"""

from __future__ import annotations

import numpy as np
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
        names = [c.name for c in site.inputs[0].value]
        # the element's column: that of its name, or after all
        self._place = names.index(operation.item.name) if operation.item.name in names else len(names)

    def process(self, flow: Flow) -> Flow:
        site = self._site
        flow = site.with_value(flow)
        found = self._array.over(flow)
        kept = site.kept(flow, found.failed)
        flow, (arrays,) = flow.select(kept), chosen(found.columns, kept)
        causes = pc.list_parent_indices(arrays).to_numpy(zero_copy_only=False).astype(np.int64)
        many, keys = taken(flow.values, causes), taken(flow.keys, causes)
        values = (*many[: self._place], pc.list_flatten(arrays), *many[self._place + 1 :])
        at, there = site.give(flow.at.take(causes), turns(causes)), np.ones(len(causes), dtype=np.bool_)
        return Flow(at, flow.key[causes], flow.space, flow.time[causes], there, keys, values)


OPERATOR = Operator(_Explode)
