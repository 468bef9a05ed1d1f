"""`merge`: the records of several streams of one key, as they come. Value columns are matched by name, not position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site

__all__ = ["OPERATOR"]


@dataclass(frozen=True, slots=True)
class _Merge(Step):
    site: Site

    def fed(self, feeding: Sequence[Flow | None]) -> Flow:
        parts = []
        for schema, flow in zip(self.site.inputs, feeding, strict=True):
            if flow is not None:
                values = dict(zip((c.name for c in schema.value), flow.values, strict=True))
                parts.append(replace(flow, values=tuple(values[c.name] for c in self.site.node.schema.value)))
        return self.site.opened(Flow.merged(parts))


OPERATOR = Operator(lambda site, operation: _Merge(site))
