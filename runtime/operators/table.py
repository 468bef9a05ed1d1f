"""Base of the operators that compute a table row by row: a function, then a store, if the table has one.

What a reader needs besides the changes (the rows before them, which of them are the newest) comes from the store, or
without a store from the input's changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from vsc.runtime.operators.columns.flow import Flow, Old, blanked
from vsc.runtime.operators.expiring import Expiring
from vsc.runtime.operators.forgetting import Forgetting
from vsc.runtime.operators.operator import Step
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.tables.lookups import Lookup, TableRows
from vsc.runtime.records import Mask

__all__ = ["Rows", "TableStep", "looked_up", "taken_back"]


Rows = Callable[[tuple[pa.Array, ...], TableRows], TableRows]
"""A table's rows for those of its input, and their keys."""


class TableStep(Step):
    """The changes of one batch.

    `rows` computes the changed rows; None leaves them as they are. `dedupe` is D7's: a tombstone of a key without a row
    is not sent on.
    """

    def __init__(self, site: Site, rows: Rows = lambda keys, rows: rows, dedupe: bool = False) -> None:
        self._site, self._rows, self._dedupe = site, rows, dedupe
        after = site.node.expire if site.table is not None else None
        self._expiring = None if after is None else Expiring(site, after)
        after = site.node.forget if site.table is not None else None
        self._forgetting = None if after is None else Forgetting(site, after)

    def process(self, flow: Flow) -> Flow:
        """The changes of this table for those of its input (or for a stream's records)."""
        found = self._rows(flow.keys, TableRows.of(flow.present, flow.time, flow.values))
        kept = self._site.kept(flow, found.failed)
        changed = flow.with_rows(found.present, found.values)
        if self._expiring is not None:
            return self._site.stored(self._expiring.applied(changed.select(kept)))
        if self._forgetting is not None:
            return self._forgetting.stored(changed.select(kept))
        store, dedupe = self._site.table, self._dedupe
        if store is None and self._site.intervals:  # a look-up finds no row where an expression has failed
            present = changed.present & kept
            changed = changed.with_rows(present, blanked(changed.values, present), self._old(flow))
        elif store is None:
            changed = taken_back(changed, kept, self._old(flow) if self._site.old or dedupe else None)
        else:
            changed = changed.select(kept)
            needed = changed.select(store.needed(changed, self._site.moving(changed))) if dedupe else changed
            changed = self._site.stored(needed, old=dedupe)
        if not dedupe or changed.old is None:
            return changed
        return changed.select(changed.present | changed.old.present)

    def _old(self, flow: Flow) -> Old | None:
        """This table's function on the rows before the changes; where it failed, there was no row (`taken_back`)."""
        if flow.old is None:
            return None
        found = self._rows(flow.keys, TableRows.of(flow.old.present, flow.old.time, flow.old.values))
        return Old(found.present, flow.old.time, found.values)


def taken_back(changed: Flow, kept: Mask, old: Old | None) -> Flow:
    """The changes of a table without a store, given the rows before them and which of them are `kept`.

    A change on which an expression has failed takes back the row before it: what is computed from the table has no way
    to know that row later. None: nothing is computed from the rows before.
    """
    if old is None:
        return changed.select(kept)
    failed = ~kept & old.present
    if failed.any():
        present = changed.present & ~failed
        changed = changed.with_rows(present, blanked(changed.values, present))
    return replace(changed, old=old).select(kept | failed)


def looked_up(rows_of: Callable[[Site, Any], Rows]) -> Callable[[Site, Any, bool], Lookup]:
    """The look-up into a table without a store: it continues in the table's input."""

    def look_up(site: Site, operation: Any, as_of: bool) -> Lookup:
        behind, rows = site.look_up(site.node.inputs[0], as_of), rows_of(site, operation)
        return lambda flow: rows(flow.keys, behind(flow))

    return look_up
