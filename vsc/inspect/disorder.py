"""How late rows are: how far behind the newest event time of the rows read before them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Disorder", "Lateness"]

_MOST = 1 << 16
_COARSER = (1, 1_000, 60_000, 3_600_000)


@dataclass(frozen=True, slots=True)
class Lateness:
    """Of `rows` rows, `late` came after a newer one. They were `median`, `most` (99 %) or `longest` ms behind it.

    `covers_most` is the lateness that 99 % of all rows do not exceed. `late_in_file` counts the rows that are late
    within their own file.
    """

    rows: int
    late: int
    late_in_file: int
    median: int
    most: int
    longest: int
    covers_most: int


class Disorder:
    """Takes in event times in reading order; keeps how often each lateness occurs, not the rows.

    If there are too many different values, it rounds them up to seconds, minutes or hours.
    """

    def __init__(self) -> None:
        self.rows = self.late = self.late_in_file = self.longest = 0
        self.newest: int | None = None
        self.newest_in_file: int | None = None
        self.file: str | None = None
        self.grain = 0
        self.values = np.zeros(0, np.int64)
        self.counts = np.zeros(0, np.int64)

    def see(self, file: str, times: npt.NDArray[np.int64]) -> None:
        """Takes in the next rows of a file."""
        if not len(times):
            return
        if file != self.file:
            self.file, self.newest_in_file = file, None
        self.newest_in_file, behind = _behind(self.newest_in_file, times)
        self.late_in_file += int(np.count_nonzero(behind))
        self.newest, behind = _behind(self.newest, times)
        late = behind[behind > 0]
        self.rows, self.late = self.rows + len(times), self.late + len(late)
        if len(late):
            self.longest = max(self.longest, int(late.max()))
            self._count(late)

    def found(self) -> Lateness:
        """The lateness of all rows seen."""
        most = self._quantile(0.99 * self.late)
        on_time = self.rows - self.late
        covers = self._quantile(0.99 * self.rows - on_time) if 0.99 * self.rows > on_time else 0
        median = self._quantile(0.5 * self.late)
        return Lateness(self.rows, self.late, self.late_in_file, median, most, self.longest, covers)

    def _count(self, late: npt.NDArray[np.int64]) -> None:
        unit = _COARSER[self.grain]
        values = np.concatenate([self.values, -(-late // unit) * unit])
        counts = np.concatenate([self.counts, np.ones(len(late), np.int64)])
        self.values, self.counts = _merged(values, counts)
        while len(self.values) > _MOST and self.grain + 1 < len(_COARSER):
            self.grain += 1
            unit = _COARSER[self.grain]
            self.values, self.counts = _merged(-(-self.values // unit) * unit, self.counts)

    def _quantile(self, rank: float) -> int:
        """The smallest lateness that at least `rank` late rows do not exceed."""
        if not len(self.values):
            return 0
        place = int(np.searchsorted(np.cumsum(self.counts), rank))
        return min(int(self.values[min(place, len(self.values) - 1)]), self.longest)


def _behind(newest: int | None, times: npt.NDArray[np.int64]) -> tuple[int, npt.NDArray[np.int64]]:
    reached = np.maximum.accumulate(times if newest is None else np.maximum(times, newest))
    return int(reached[-1]), reached - times


def _merged(
    values: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    unique, place = np.unique(values, return_inverse=True)
    return unique, np.bincount(place, counts, len(unique)).astype(np.int64)
