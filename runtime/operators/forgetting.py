"""The rows of a table that are forgotten: nothing changes them any more, so nobody asks what they were.

A row is unknown from the moment at which the clock is `after` past its time. It is removed with the next batch, without
a tombstone. What is kept to find it is that of rows that expire (`expiring`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vsc.runtime.operators.columns.flow import Flow, Old, blanked
from vsc.runtime.operators.columns.moments import Moments
from vsc.runtime.operators.expiring import Expiring

__all__ = ["Forgetting"]

_AFTER = 2**63 - 1
"""The first level of a moment after the batch."""


class Forgetting(Expiring):
    """Which rows of one table are forgotten, in one batch."""

    def stored(self, changes: Flow) -> Flow:
        """The changes, put into the node's store, and the rows before them, as far as these are known."""
        site, after = self._site, self._after
        found = site.stored(changes)
        if (old := found.old) is not None:
            known = old.present & (old.time + after > site.moving(found))
            found = replace(found, old=Old(known, old.time, blanked(old.values, known)))
        self._forget(changes, site.timing(changes, self._rows.stream_time).kept)
        return found

    def _forget(self, changes: Flow, now: int) -> None:
        """Removes what the clock has passed at the end of the batch, and notes when the others go."""
        last = np.full(len(self._space.keys), -1, dtype=np.int64)
        last[changes.key] = np.arange(len(changes))  # of several, numpy's last assignment counts
        stored = self._stored(changes, now)
        numbers = self._space.encoded([row.key for row in stored])
        last = np.append(last, np.full(len(self._space.keys) - len(last), -1, dtype=np.int64))
        key = np.flatnonzero(last >= 0)
        row = last[key]
        there, passed = changes.present[row], changes.time[row] + self._after <= now
        stays = there & ~passed
        gone = np.concatenate([numbers[last[numbers] < 0], key[there & passed]])
        if table := self._site.table:
            at = Moments((np.full(len(gone), _AFTER, dtype=np.int64),))
            table.forget(gone, at, np.isin(gone, numbers))
        self._keep(key[stays], changes.time[row[stays]], stored, now)
