"""`to_table`: a stream's records as the rows of a table; a record without value, or one to delete, is a tombstone."""

from __future__ import annotations

from vsc.plan.nodes import ToTable
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.table import TableStep

__all__ = ["OPERATOR"]


def _build(site: Site, operation: ToTable) -> Step:
    when = operation.delete_when
    return TableStep(site, predicate=None if when is None else site.evaluation([when]), deletes=True)


OPERATOR = Operator(_build)
