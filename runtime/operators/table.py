"""What all operators have in common that make a table of rows one by one: a function, then a store, if there is one.

Whatever a reader asks for beside the changes (the rows before them, which of them are the newest) comes from the store,
or without one from what the input's changes bring along.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.columns.evaluation import Evaluation
from vsc.runtime.operators.columns.flow import Flow, Old, blanked
from vsc.runtime.operators.counting import count
from vsc.runtime.operators.operator import Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.tables.lookups import TableRows
from vsc.runtime.records import Mask

__all__ = ["TableStep"]


class TableStep(Step):
    """The changes of one batch.

    `rows` computes the changed rows, None leaves them; `predicate` makes rows tombstones where it is not true, or with
    `deletes` where it is. `dedupe` is D7's: what was a tombstone and stays one is not sent on.
    """

    def __init__(
        self,
        site: Site,
        predicate: Evaluation | None = None,
        deletes: bool = False,
        rows: Evaluation | None = None,
        dedupe: bool = False,
    ) -> None:
        self._name, self._failures, self._store = site.name, site.failures, site.table
        self._predicate, self._deletes, self._rows, self._dedupe = predicate, deletes, rows, dedupe
        self._asked, self._latest = site.old or dedupe, site.latest

    def process(self, flow: Flow) -> Flow:
        """The changes of this table that those of its input (or a stream's records) give."""
        found = self._apply(flow, flow.present, flow.values)
        kept = self._failures.kept(flow.at, found.failed)
        flow, found = flow.select(kept), found.select(kept)
        present = found.present
        changed = flow.with_rows(present, found.values)
        if self._store is None:
            old = self._old(flow) if self._asked else None
            changed = replace(changed, old=old)
            return changed.select(self._sent_on(present, old)) if self._dedupe else changed
        if self._dedupe:
            changed = changed.select(self._store.needed(changed))
        accepted = self._store.put(changed)
        changed = replace(changed, old=None, latest=self._store.latest(changed) if self._latest else None)
        if self._asked:
            changed = replace(changed, old=self._store.before(changed))
        count(self._failures.metrics, self._name, Dropped.EXPIRED, ~accepted)
        return changed.select(accepted & self._sent_on(changed.present, changed.old) if self._dedupe else accepted)

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
        """What this table's function makes of the rows before the changes."""
        if flow.old is None:
            return None
        found = self._apply(flow, flow.old.present, flow.old.values)
        present = found.present.copy()
        present[list(found.failed)] = False  # it failed, and was dealt with, when it was the new row
        return Old(present, found.values)

    def _sent_on(self, present: Mask, old: Old | None) -> Mask:
        return present if old is None else present | old.present
