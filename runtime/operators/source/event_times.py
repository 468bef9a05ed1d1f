"""Event times as the rows of a source have them, and how far ahead of a run's clock they may be.

Nothing here looks at a clock: who runs a plan says what "now" is, so that an epoch that is repeated does the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from vsc.plan.nodes import Plan
from vsc.runtime.records import Int64s

__all__ = ["EventTimes", "latest_times"]


@dataclass(frozen=True, slots=True)
class EventTimes:
    """The event times of `rows` rows, in ms, also of those that are too far in the future: the lowest, the highest."""

    rows: int
    lowest: int
    highest: int

    @classmethod
    def of(cls, times: Int64s) -> EventTimes | None:
        """Those of some rows; None for no rows."""
        return cls(len(times), int(times.min()), int(times.max())) if len(times) else None

    def merged(self, other: EventTimes) -> EventTimes:
        """Those of both."""
        lowest, highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        return EventTimes(self.rows + other.rows, lowest, highest)


def latest_times(plan: Plan, now: int) -> dict[str, int]:
    """The latest event time, in ms, that each source with a bound may have when its run's clock shows `now`."""
    bounds = {node.name: node.source.max_ahead for node in plan.sources}
    return {name: now + ahead for name, ahead in bounds.items() if ahead is not None}
