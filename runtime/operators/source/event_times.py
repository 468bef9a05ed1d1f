"""Event times as the rows of a source have them, and how far ahead of a run's clock they may be.

Nothing here reads a clock: the caller passes "now", so a repeated epoch gives the same result.
"""

from __future__ import annotations

from dataclasses import dataclass

from vsc.plan.nodes import Plan
from vsc.runtime.records import Int64s

__all__ = ["EventTimes", "latest_times"]


@dataclass(frozen=True, slots=True)
class EventTimes:
    """The lowest and highest event time of `rows` rows, in ms, including those too far in the future."""

    rows: int
    lowest: int
    highest: int

    @classmethod
    def of(cls, times: Int64s) -> EventTimes | None:
        """The event times of some rows; None for no rows."""
        return cls(len(times), int(times.min()), int(times.max())) if len(times) else None

    def merged(self, other: EventTimes) -> EventTimes:
        """The event times of both."""
        lowest, highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        return EventTimes(self.rows + other.rows, lowest, highest)


def latest_times(plan: Plan, now: int) -> dict[str, int]:
    """The latest event time, in ms, that each source with a bound may have when its run's clock shows `now`."""
    bounds = {node.name: node.source.max_ahead for node in plan.sources}
    return {name: now + ahead for name, ahead in bounds.items() if ahead is not None}
