"""`merge`: the records of several streams of one key, as they come. Value columns are matched by name, not position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.places import value_order
from vsc.runtime.operators.site import Site

__all__ = ["OPERATOR"]


@dataclass(frozen=True, slots=True)
class _Merge(Step):
    site: Site

    def fed(self, feeding: Sequence[Flow | None]) -> Flow:
        parts = []
        for schema, flow in zip(self.site.inputs, feeding, strict=True):
            if flow is not None:
                order = value_order(schema, self.site.node.schema)
                parts.append(replace(flow, values=tuple(flow.values[i] for i in order)))
        return self.site.opened(Flow.merged(parts))


OPERATOR = Operator(lambda site, operation: _Merge(site))
