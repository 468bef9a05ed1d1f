"""Stage 0: what the rows of a source become before any shuffle; and a source table in the stages that keep it."""

from __future__ import annotations

from vsc.plan.nodes import Source
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.table import TableStep

__all__ = ["OPERATOR"]


def _build(site: Site, operation: Source) -> Step:
    return TableStep(site)


OPERATOR = Operator(_build)
