"""What a task hands back to whoever runs it."""

from __future__ import annotations

from dataclasses import dataclass

from vsc.runtime.records import Batch, Metrics

__all__ = ["DRAIN", "StageResult"]

DRAIN = "#drain"
"""Source name in the origin of records that only the end of the input brought out."""


@dataclass(frozen=True, slots=True)
class StageResult:
    """Batches by node, at most one a node, each in D12's order, and what was counted on the way.

    `clock` is for stage 0 alone: the highest event time so far in the source partition in this epoch, to be given to
    the next call for the same source partition and epoch; None as long as there was no usable record.
    """

    batches: tuple[tuple[str, Batch], ...]
    metrics: Metrics
    clock: int | None = None
