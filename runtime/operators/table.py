"""Base of the operators that compute a table row by row: a function, then a store, if the table has one.

What a reader needs besides the changes (the rows before them, which of them are the newest) comes from the store, or
without a store from the input's changes.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from vsc.runtime.operators.columns.evaluation import Evaluation
from vsc.runtime.operators.columns.flow import Flow, Old, blanked
from vsc.runtime.operators.operator import Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.tables.lookups import TableRows
from vsc.runtime.records import Mask

__all__ = ["TableStep"]


class TableStep(Step):
    """The changes of one batch.

    `rows` computes the changed rows; None leaves them as they are. `predicate` makes rows tombstones where it is not
    true, or with `deletes` where it is. `dedupe` is D7's: a tombstone of a key without a row is not sent on.
    """

    def __init__(
        self,
        site: Site,
        predicate: Evaluation | None = None,
        deletes: bool = False,
        rows: Evaluation | None = None,
        dedupe: bool = False,
    ) -> None:
        self._site = site
        self._predicate, self._deletes, self._rows, self._dedupe = predicate, deletes, rows, dedupe

    def process(self, flow: Flow) -> Flow:
        """The changes of this table for those of its input (or for a stream's records)."""
        found = self._apply(flow, flow.present, flow.values)
        kept = self._site.kept(flow, found.failed)
        flow, found = flow.select(kept), found.select(kept)
        changed = flow.with_rows(found.present, found.values)
        store, dedupe = self._site.table, self._dedupe
        if store is None:
            changed = replace(changed, old=self._old(flow) if self._site.old or dedupe else None)
        else:
            needed = changed.select(store.needed(changed)) if dedupe else changed
            changed = self._site.stored(needed, old=dedupe)
        if not dedupe or changed.old is None:
            return changed
        return changed.select(changed.present | changed.old.present)

    def _apply(self, flow: Flow, present: Mask, values: tuple[pa.Array, ...]) -> TableRows:
        if self._rows is not None:
            found = self._rows.where(flow.keys + values, flow.time, present)
            return TableRows.of(present, flow.time, found.columns, found.failed)
        if self._predicate is None:
            return TableRows.of(present, flow.time, values)
        true, failed = self._predicate.true(flow.keys + values, flow.time, present)
        kept = present & ~true if self._deletes else true
        return TableRows.of(kept, flow.time, blanked(values, kept), failed)

    def _old(self, flow: Flow) -> Old | None:
        """This table's function on the rows before the changes."""
        if flow.old is None:
            return None
        found = self._apply(flow, flow.old.present, flow.old.values)
        present = found.present.copy()
        present[list(found.failed)] = False  # the failure was handled when this was the new row
        return Old(present, found.values)
