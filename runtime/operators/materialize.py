"""`materialize`: a table as it is, with a store of its own."""

from __future__ import annotations

from vsc.plan.nodes import Materialize
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.table import TableStep

__all__ = ["OPERATOR"]


def _build(site: Site, operation: Materialize) -> Step:
    return TableStep(site)


OPERATOR = Operator(_build)
