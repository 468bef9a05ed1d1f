"""When the windows of a batch close and are forgotten, for windows in a loop over its records."""

from __future__ import annotations

import numpy as np

from vsc.runtime.records import Int64s

__all__ = ["Closings"]


class Closings:
    """The records that move stream time past windows, and the places in time up to which each closes and forgets them.

    `closed` are the places of the windows that have closed, in any order. `most` is how many windows were open at most,
    had none closed: up to the first of these records, then from each of them to the next.
    """

    __slots__ = ("_forgotten", "_rows", "_up_to", "closed", "most")

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._up_to: list[int] = []
        self._forgotten: list[int] = []
        self.closed: list[int] = []
        self.most = [0]

    def move(self, row: int, closed: int, forgotten: int) -> None:
        """Notes that the record `row` closes and forgets the windows up to these places."""
        self._rows.append(row)
        self._up_to.append(closed)
        self._forgotten.append(forgotten)
        self.most.append(0)

    def forgetting(self, place: Int64s) -> Int64s:
        """The records after which windows are forgotten: the first one, if they should have been before the batch.

        So it is with a final window that has moved to another partition, and is found only by its key from there on.
        """
        return np.array(self._rows or [0], dtype=np.int64)[np.searchsorted(self._forgotten, place)]

    def most_open(self) -> int:
        """How many windows were open at most."""
        places = np.sort(np.array(self.closed, dtype=np.int64))
        return int(max(self.most - np.searchsorted(places, [-1, *self._up_to], side="right")))
