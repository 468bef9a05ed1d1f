"""Look-ups into a table in one batch. Every record sees the table as it was when the record arrived."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vsc.runtime.metrics import Missed
from vsc.runtime.operators.columns.evaluation import Failed, Side
from vsc.runtime.operators.columns.flow import Flow, blanked
from vsc.runtime.records import Int64s, Mask
from vsc.runtime.state.api import LOOKUP_MISSES

__all__ = ["NO_RECORD", "OLDER_THAN_RETENTION", "TOMBSTONE", "Lookup", "Reasons", "TableRows", "missing"]

NO_RECORD, TOMBSTONE, OLDER_THAN_RETENTION, _TOO_OLD = (
    LOOKUP_MISSES.index(why)
    for why in (Missed.NO_RECORD, Missed.TOMBSTONE, Missed.OLDER_THAN_RETENTION, Missed.TOO_OLD)
)

Reasons = npt.NDArray[np.uint8]
"""Places in `LOOKUP_MISSES`, one per look-up; 0: found."""


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

    def since(self, limit: Int64s) -> TableRows:
        """The rows that are valid from `limit` on or from later; the others are too old, as if they did not exist."""
        old = self.present & (self.time < limit)
        missed = np.where(old, _TOO_OLD, self.missed).astype(np.uint8)
        return replace(self, missed=missed, values=blanked(self.values, ~old))

    @property
    def forgotten(self) -> Mask:
        """Where the history does not reach back far enough."""
        older: Mask = self.missed == OLDER_THAN_RETENTION
        return older

    def select(self, mask: Mask) -> TableRows:
        """The rows of the records where `mask` is true."""
        if mask.all():
            return self
        chosen, places = pa.array(mask), np.cumsum(mask) - 1
        failed = {int(places[row]): failure for row, failure in self.failed.items() if mask[row]}
        values = tuple(c.filter(chosen) for c in self.values)
        return TableRows(self.missed[mask], self.time[mask], values, failed, self.needed)

    def side(self, keys: Sequence[pa.Array], wanted: Sequence[int]) -> Side:
        """The rows as an input of an evaluation that has `wanted` columns; `keys` are the keys looked up."""
        width, present = len(keys), self.present
        own = blanked([keys[i] for i in wanted if i < width], present)
        values = (self.values[i - width] for i in wanted if i >= width)
        return Side((*own, *values), self.time, None if present.all() else ~present)


Lookup = Callable[[Flow], TableRows]
"""The row of each record's key, as it was when the record arrived."""


def missing(missed: Reasons, failed: Failed) -> Reasons:
    """The reasons of rows that were not found, without the rows that could not be computed."""
    if not failed:
        return missed
    found = missed.copy()
    found[list(failed)] = NO_RECORD
    return found
