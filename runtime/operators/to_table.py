"""`to_table`: a stream's records as the rows of a table; a record without value, or one to delete, is a tombstone."""

from __future__ import annotations

import pyarrow as pa

from vsc.plan.nodes import ToTable
from vsc.runtime.operators.columns.flow import blanked
from vsc.runtime.operators.complete.answers import CompleteAnswers
from vsc.runtime.operators.operator import Operator, Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.table import TableStep
from vsc.runtime.operators.tables.lookups import TableRows

__all__ = ["OPERATOR"]


def _build(site: Site, operation: ToTable) -> Step:
    if site.node.complete:
        return CompleteAnswers(site)
    if operation.delete_when is None:
        return TableStep(site)
    deletes = site.evaluation([operation.delete_when])

    def rows(keys: tuple[pa.Array, ...], before: TableRows) -> TableRows:
        deleted, failed = deletes.true(keys + before.values, before.time, before.present)
        present = before.present & ~deleted
        return TableRows.of(present, before.time, blanked(before.values, present), failed)

    return TableStep(site, rows)


OPERATOR = Operator(_build)
