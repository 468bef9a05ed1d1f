"""Records on which an expression fails: each is left out, and counted or told as the options say.

A failing record is a mask, not an exception: the others of its batch go on. With ``on_error = 'fail'`` the batch is
computed to its end, and the failure that comes first in the order of processing is raised; nothing has been written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from vsc.runtime.metrics import Dropped, Group, Metrics
from vsc.runtime.operators.columns.moments import Moments
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.records import Mask

__all__ = ["Failed", "Failures", "shifted"]

Failed = Mapping[int, NodeFailure]
"""What went wrong, by the place of the row."""


@dataclass(slots=True)
class Failures:
    """What fails in one batch."""

    on_error: Literal["drop", "fail"]
    metrics: Metrics
    _first: tuple[tuple[int, ...], NodeFailure] | None = field(default=None)

    def kept(self, at: Moments, failed: Failed) -> Mask:
        """Takes the failures of events at `at`; tells which events are left."""
        kept = np.ones(len(at), dtype=np.bool_)
        for row, failure in failed.items():
            kept[row] = False
            self.note(at, row, failure)
        return kept

    def note(self, at: Moments, row: int, failure: NodeFailure) -> None:
        """Takes one failure."""
        if self.on_error == "drop":
            self.metrics.count(failure.node, Group.DROPPED_RECORDS, Dropped.EXPRESSION_FAILED)
            return
        moment = tuple(int(level[row]) for level in at.levels)
        if self._first is None or moment < self._first[0]:
            self._first = moment, failure

    @property
    def first(self) -> tuple[int, NodeFailure] | None:
        """The first level of the moment of the first failure that has to be raised, and the failure."""
        return None if self._first is None else (self._first[0][0], self._first[1])


def shifted(failed: Failed, places: Sequence[int] | np.ndarray) -> Failed:
    """The failures of chosen rows, by the places that these had before they were chosen."""
    return {int(places[row]): failure for row, failure in failed.items()}
