"""Look-ups into a table in one batch. Every record sees the table as it was when the record arrived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa

from vsc.runtime.operators.columns.evaluation import Computed, Evaluation, Side
from vsc.runtime.operators.columns.failures import Failed, shifted
from vsc.runtime.operators.columns.flow import Flow, blanked, taken
from vsc.runtime.operators.tables.store import NO_RECORD, Reasons, TableColumns
from vsc.runtime.records import Int64s, Mask

__all__ = ["Lookup", "Pairs", "TableRows", "missing", "stored"]


@dataclass(frozen=True, slots=True)
class TableRows:
    """A table's row for each record of a flow: its time in ms and its values, null where no row exists.

    `missed` says why not, as a place in `LOOKUP_MISSES`; 0: the row exists.

    `failed` are the records whose row could not be computed. `needed` is the retention in ms that would have served all
    look-ups that were too old, -1 if none were.
    """

    missed: Reasons
    time: Int64s
    values: tuple[pa.Array, ...]
    failed: Failed = field(default_factory=dict)
    needed: int = -1

    @property
    def present(self) -> Mask:
        """Where a row exists."""
        there: Mask = self.missed == 0
        return there

    @staticmethod
    def of(present: Mask, time: Int64s, values: tuple[pa.Array, ...], failed: Failed | None = None) -> TableRows:
        """Rows for readers that do not need to know why a row is missing."""
        return TableRows(np.where(present, 0, NO_RECORD).astype(np.uint8), time, values, failed or {})

    def select(self, mask: Mask) -> TableRows:
        """The rows of the records where `mask` is true."""
        if mask.all():
            return self
        chosen, places = pa.array(mask), np.cumsum(mask) - 1
        failed = {int(places[row]): failure for row, failure in self.failed.items() if mask[row]}
        values = tuple(c.filter(chosen) for c in self.values)
        return TableRows(self.missed[mask], self.time[mask], values, failed, self.needed)

    @staticmethod
    def none_like(columns: tuple[pa.Array, ...], time: Int64s) -> TableRows:
        """No rows, with columns of the types of `columns`."""
        count = len(time)
        return TableRows.of(np.zeros(count, dtype=np.bool_), time, taken(columns, np.full(count, -1, dtype=np.int64)))


Lookup = Callable[[Flow], TableRows]
"""The row of each record's key, as it was when the record arrived."""


class Pairs:
    """The rows that a primary-key join makes from those of its two sides."""

    __slots__ = ("_items", "_key_width", "_mode")

    def __init__(self, mode: Literal["inner", "left", "outer"], items: Evaluation, key_width: int) -> None:
        self._mode, self._items, self._key_width = mode, items, key_width

    def rows(self, keys: tuple[pa.Array, ...], left: TableRows, right: TableRows) -> TableRows:
        """The result for each record, at the later of both rows' times; `keys` are the records' keys.

        Records for which a side's row could not be computed count as failed.
        """
        there = self._there(left.present, right.present)
        newest = np.where(
            right.present, np.where(left.present, np.maximum(left.time, right.time), right.time), left.time
        )
        before = {**right.failed, **left.failed}
        missed = np.where(there, 0, np.where(left.present, NO_RECORD, left.missed)).astype(np.uint8)
        missed = missing(missed, before)
        there = missed == 0
        if there.all():
            found = self._values(keys, left, right)
            return TableRows(missing(missed, found.failed), newest, found.columns, found.failed)
        chosen = pa.array(there)
        found = self._values(tuple(c.filter(chosen) for c in keys), left.select(there), right.select(there))
        failed = {**shifted(found.failed, np.flatnonzero(there)), **before}
        values = taken(found.columns, np.where(there, np.cumsum(there) - 1, -1))
        return TableRows(missing(missed, failed), newest, values, failed)

    def _there(self, left: Mask, right: Mask) -> Mask:
        match self._mode:
            case "inner":
                return left & right
            case "left":
                return left
            case "outer":
                return left | right

    def _values(self, keys: tuple[pa.Array, ...], left: TableRows, right: TableRows) -> Computed:
        return self._items.run(self._side(0, keys, left), self._side(1, keys, right))

    def _side(self, number: int, keys: tuple[pa.Array, ...], rows: TableRows) -> Side:
        width = self._key_width
        wanted = self._items.wanted[number]
        own = dict(zip(wanted, blanked([keys[i] for i in wanted if i < width], rows.present), strict=False))
        columns = [own[i] if i < width else rows.values[i - width] for i in wanted]
        return Side(columns, rows.time, None if rows.present.all() else ~rows.present)


def missing(missed: Reasons, failed: Failed) -> Reasons:
    """The same, without the rows that could not be computed."""
    if not failed:
        return missed
    found = missed.copy()
    found[list(failed)] = NO_RECORD
    return found


def stored(table: TableColumns, as_of: bool) -> Lookup:
    """The look-up into a store: for the row valid at a record's time, otherwise for the newest."""

    def find(flow: Flow) -> TableRows:
        found = table.look_up(flow, as_of)
        values = found.pool.take(found.position)
        return TableRows(found.missed, found.valid_from, values, needed=found.needed)

    return find
