"""How big the stores of a checkpoint are, partition by partition. Works without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from vsc.runtime.operators.views import StoreInfo
from vsc.runtime.spark.state.node_clocks import NO_CLOCK, ShownClock

__all__ = ["SKEW", "PartSize", "StoreSize"]

SKEW = 3
"""How many times the bytes of the median partition one has to have to be called skewed."""

SKEW_ROWS = 1000
"""A partition with fewer rows is not: a few keys are never spread evenly."""


class PartSize(NamedTuple):
    """How big a store is in one partition: `rows` as `StoreView.rows` has it, `bytes` of its keys and values,
    uncompressed; `stream_time` is its clock in ms, None where it has not begun."""

    rows: int
    bytes: int
    stream_time: int | None


@dataclass(frozen=True, slots=True)
class StoreSize:
    """How big a store is in each partition, by their numbers. One that is replicated has all its rows in each.

    `clock` is that of the node that keeps it.
    """

    store: StoreInfo
    parts: tuple[PartSize, ...]
    clock: ShownClock = NO_CLOCK

    @property
    def rows(self) -> int:
        """The rows of all partitions."""
        return sum(part.rows for part in self._counted)

    @property
    def bytes(self) -> int:
        """The bytes of all partitions."""
        return sum(part.bytes for part in self._counted)

    @property
    def skewed(self) -> int | None:
        """The largest partition, if it has more than `SKEW` times the bytes of the median one, and `SKEW_ROWS` rows."""
        if self.store.replicated:
            return None
        largest = max(range(len(self.parts)), key=lambda p: self.parts[p].bytes)
        part = self.parts[largest]
        much = part.rows >= SKEW_ROWS and part.bytes > SKEW * median(one.bytes for one in self.parts)
        return largest if much else None

    @property
    def _counted(self) -> tuple[PartSize, ...]:
        return self.parts[:1] if self.store.replicated else self.parts
