"""Whether a query has the partitions that its state asks for: the calculator of `vsc doctor`.

A partition is restored, and snapshots of it are written, as a whole, so state per partition bounds how long that takes;
each partition of each stage costs an epoch a task. `docs/scale.md` has the measurements.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vsc.plan.words import bytes_text, counted
from vsc.runtime.spark.exchange.counters import EpochReport, StateSize

__all__ = ["PARTITION_MS", "Scale"]

PARTITION_MS = 90
"""What a partition of a stage costs an epoch, in milliseconds of a core, whatever its rows."""

COMFORTABLE = 512 << 20
"""Bytes of state in a partition that are restored within seconds."""


_UNEVEN = "keys are spread unevenly: `vsc store list --partitions` shows where; more partitions do not split a key"


@dataclass(frozen=True, slots=True)
class Scale:
    """A query's `partitions` in each of its `stages`, the `cores` of its executors, and the bytes of state: in the
    heaviest stage, and in the fullest partition."""

    partitions: int
    stages: int
    cores: int
    heaviest: int
    fullest: int

    @classmethod
    def of(cls, reports: Iterable[EpochReport], partitions: int, stages: int, cores: int) -> Scale:
        """By what the newest epochs, oldest first, have said of each partition that had work."""
        newest: dict[str, StateSize] = {}
        for report in reports:
            newest |= report.state
        of_stage: dict[str, int] = {}
        for place, size in newest.items():
            stage = place.partition("-")[0]
            of_stage[stage] = of_stage.get(stage, 0) + size.bytes
        fullest = max((size.bytes for size in newest.values()), default=0)
        return cls(partitions, stages, cores, max(of_stage.values(), default=0), fullest)

    @property
    def enough(self) -> int:
        """How many partitions hold the heaviest stage comfortably, if keys spread."""
        return max(self.partitions, -(-self.heaviest // COMFORTABLE))

    def seconds(self, partitions: int) -> float:
        """What so many partitions add to an epoch of few rows."""
        return partitions * self.stages * PARTITION_MS / 1000 / self.cores

    def __str__(self) -> str:
        """For people."""
        places = f"{counted(self.partitions, 'partition')} in {counted(self.stages, 'stage')}"
        return (
            f"{places} hold at most {bytes_text(self.fullest)} of state each, and add some "
            f"{self.seconds(self.partitions):.1f} s to an epoch on {counted(self.cores, 'core')}"
        )

    @property
    def advice(self) -> str | None:
        """What to do about partitions that hold too much; None if none does."""
        if self.enough == self.partitions:
            return _UNEVEN if self.fullest > COMFORTABLE else None
        more = self.seconds(self.enough) - self.seconds(self.partitions)
        each = bytes_text(self.heaviest // self.enough)
        return (
            f"{self.enough} partitions would hold {each} each, and add {more:.1f} s to an epoch: "
            f"vsc upgrade --partitions {self.enough} (docs/scale.md)"
        )
