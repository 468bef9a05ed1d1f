"""`rekey`: a stream under another key. Its records leave the stage.

Records without value are dropped and counted; so are those with a null in the new key, if that is needed at once.
"""

from __future__ import annotations

from dataclasses import replace

from vsc.plan.keyless import keeps_keyless
from vsc.plan.nodes import Rekey
from vsc.runtime.expressions import null_rows
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site

__all__ = ["OPERATOR"]


class _Rekey(Step):
    def __init__(self, site: Site, operation: Rekey) -> None:
        self._site, self._items = site, site.evaluation(operation.items)
        names = [c.name for c in (*site.inputs[0].key, *site.inputs[0].value)]
        self._keeps_keyless = keeps_keyless(site.plan, site.node)
        self._kept = [names.index(c.name) for c in site.node.schema.value]

    def process(self, flow: Flow) -> Flow:
        flow = self._site.with_value(flow)
        found = self._items.over(flow)
        kept = self._site.kept(flow, found.failed)
        if not self._keeps_keyless:
            null = null_rows(found.columns, len(flow)) & kept
            self._site.lose(Dropped.NULL_JOIN_KEY, flow, null)
            kept &= ~null
        columns = flow.columns
        return replace(flow, keys=found.columns, values=tuple(columns[i] for i in self._kept)).select(kept)


OPERATOR = Operator(_Rekey)
