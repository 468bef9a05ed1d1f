"""Records on which an expression fails: each is left out, and counted or raised, as the options say.

Failing records are a mask, not an exception: the other records of the batch go on. With ``on_error = 'fail'`` the batch
is computed to its end, then the first failure in the order of processing is raised; nothing has been written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from vsc.plan.nodes import Node, Schema
from vsc.runtime.metrics import Dropped, Metrics
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.dead_letters import Losses
from vsc.runtime.records import Mask

__all__ = ["Failed", "Failures", "shifted"]

Failed = Mapping[int, NodeFailure]
"""What went wrong, by the place of the row."""


@dataclass(slots=True)
class Failures:
    """The failures of one batch."""

    on_error: Literal["drop", "fail"]
    losses: Losses
    _first: tuple[tuple[int, ...], NodeFailure] | None = field(default=None)

    @property
    def metrics(self) -> Metrics:
        """The counts."""
        return self.losses.metrics

    def take(self, node: Node, flow: Flow, schema: Schema, failed: Failed, waited: bool = False) -> Mask:
        """Notes the failures of a flow's records at `node`; returns which are left. For the rest see `Losses.lose`."""
        kept = np.ones(len(flow), dtype=np.bool_)
        if not failed:
            return kept
        kept[list(failed)] = False
        if self.on_error == "drop":
            for owner in dict.fromkeys(failure.node for failure in failed.values()):
                # the failure of a look-up belongs to the table that it goes through
                self._drop(node, flow, schema, {r: f for r, f in failed.items() if f.node == owner}, waited, owner)
            return kept
        for row, failure in failed.items():
            moment = tuple(int(level[row]) for level in flow.at.levels)
            if self._first is None or moment < self._first[0]:
                self._first = moment, failure
        return kept

    def _drop(self, node: Node, flow: Flow, schema: Schema, failed: Failed, waited: bool, owner: str) -> None:
        rows, every = np.array(list(failed), dtype=np.int64), list(failed.values())
        why = Dropped.EXPRESSION_FAILED
        self.losses.lose(node, why, flow, schema, rows, lambda place: every[place].told, waited, owner)

    @property
    def first(self) -> tuple[int, NodeFailure] | None:
        """The first level of the moment of the first failure to raise, and that failure."""
        return None if self._first is None else (self._first[0][0], self._first[1])


def shifted(failed: Failed, places: Sequence[int] | np.ndarray) -> Failed:
    """The failures of chosen rows, by the rows' original places."""
    return {int(places[row]): failure for row, failure in failed.items()}
