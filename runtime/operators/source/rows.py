"""Rows as a source partition gave them, their event times, and how far ahead of a run's clock these may be.

Nothing here reads a clock: the caller passes "now", so a repeated epoch gives the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from vsc.plan.nodes import Plan
from vsc.runtime.records import Int64s, Mask, Origin

__all__ = ["Broken", "EventTimes", "SourceRows", "latest_times"]

Broken = Callable[[int], tuple[str | None, str | None]]
"""Why a row cannot be read, and its text; None if unknown."""


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Rows of one source partition, by ascending offset. Rows of one offset, such as those of a change of a key, are
    records of one cause, in this order.

    `columns` are those of the declaration, in its order, with the Arrow types of their column types. `record_time`: the
    record's own time in ms (Kafka's, a file's, the caller's), None if the connector has none. `deleted`: the row has no
    value at all (Kafka's null value), so it is a table's tombstone at its own time, or a stream record without value.
    `unreadable`: the row's columns are meaningless; `broken` has, by the row's place, the reason and the text that was
    read. A mask of None is False everywhere.
    """

    origin: Origin
    columns: tuple[pa.Array, ...]
    offsets: Int64s
    record_time: Int64s | None = None
    deleted: Mask | None = None
    unreadable: Mask | None = None
    broken: Broken | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def filter(self, mask: Mask) -> SourceRows:
        """The rows where `mask` is true; the same object if it is true everywhere."""
        if mask.all():
            return self
        chosen = pa.array(mask)
        return SourceRows(
            self.origin,
            tuple(c.filter(chosen) for c in self.columns),
            self.offsets[mask],
            None if self.record_time is None else self.record_time[mask],
            None if self.deleted is None else self.deleted[mask],
            None if self.unreadable is None else self.unreadable[mask],
        )


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
