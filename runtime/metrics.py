"""Counts, by node and reason, the records that were dropped and the look-ups that found nothing.

A `Metrics` is a small mutable counter that a task fills and hands on. Two of them merge by addition (peaks by maximum),
and one converts to plain JSON and back. The engine guarantees that no data problem is hidden: whatever is left out of a
result is counted here. Not for throughput or timing: those belong to the place where a query runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

__all__ = [
    "GRACE_NEEDED",
    "HELD_RECORDS",
    "LATE_VERSIONS",
    "LONGEST_SESSION",
    "RETENTION_NEEDED",
    "BadRow",
    "Dropped",
    "Group",
    "Metrics",
    "Missed",
    "group_of",
]


class Group(StrEnum):
    """The groups of counters."""

    DROPPED_RECORDS = "dropped_records"
    MISSED_LOOKUPS = "missed_lookups"


class Dropped(StrEnum):
    """Why a record was dropped.

    ``in_the_future``: an event time further ahead of the run's clock than the source's ``max_ahead``, or
    beyond the year 9999;
    ``ahead_of_record``: a `map` gave a record an event time after its own;
    ``expired``: refused by the store's grace; ``no_value``: a stream record without a value reached an operator that
    needs one (D14); ``null_join_key``: part of the key that a join, a `rekey` or a `group by` computed is null;
    ``out_of_order``: a change of a versioned table that is not its key's newest reached an operator that uses only the
    newest (KIP-914), or a record came too late for a `reorder`;
    ``window_closed``: a record came too late for a window, counted once for each window that it would have changed.
    """

    NULL_KEY = "null_key"
    NULL_TIMESTAMP = "null_timestamp"
    NEGATIVE_TIMESTAMP = "negative_timestamp"
    IN_THE_FUTURE = "in_the_future"
    AHEAD_OF_RECORD = "ahead_of_record"
    UNREADABLE = "unreadable"
    EXPIRED = "expired"
    NO_VALUE = "no_value"
    NULL_JOIN_KEY = "null_join_key"
    OUT_OF_ORDER = "out_of_order"
    WINDOW_CLOSED = "window_closed"
    EXPRESSION_FAILED = "expression_failed"
    REFUSED = "refused"  # by the system of a sink
    DUPLICATE = "duplicate"  # of a record that passed a `distinct`
    AFTER_QUIET = "after_quiet"
    """Beside its reason: a record that came too late by a clock that its sources' quiet has moved on."""
    LOST = "lost"  # deleted by the system of a source before it was read: nobody has seen it


class Missed(StrEnum):
    """Why a look-up found no row (D9). The record goes on without a partner, or not at all in an inner join."""

    NO_RECORD = "no_record"
    """The key had no version yet at that time."""
    TOMBSTONE = "tombstone"
    """The key was deleted at that time."""
    OLDER_THAN_RETENTION = "older_than_retention"
    """The time is before stream time minus the history retention: the store no longer answers for it. In a join of two
    streams: records that it could meet are kept no longer."""
    TOO_OLD = "too_old"
    """The row became valid longer before the record than the join's `max_age`."""
    NOT_CORRECTED = "not_corrected"
    """It came when the clock was further past its time than a `correct` keeps records: its result is final."""
    AFTER_QUIET = "after_quiet"
    """As `Dropped.AFTER_QUIET`."""
    LATE = "late"
    """It came too late to a join of two streams to wait for a partner, and none was there."""


def group_of(reason: Dropped | Missed) -> Group:
    """The group in which a reason is counted."""
    return Group.DROPPED_RECORDS if isinstance(reason, Dropped) else Group.MISSED_LOOKUPS


RETENTION_NEEDED = "retention_needed"
"""The peak that a join reports: the history retention in ms that would have served all its look-ups."""

GRACE_NEEDED = "grace_needed"
"""The peak that `distinct`, `reorder` and joins report: the grace (of `reorder`: the `within`) in ms with which no
record, or no version, would have been late."""

LATE_VERSIONS = "late_versions"
"""The counter of a join of a stream with a versioned table: versions, tombstones among them, that came when records of
their time had gone out already; and of a join that aggregates its right stream: such records of it. Whether those have
missed it is not known: it is an upper bound."""

HELD_RECORDS = "held_records"
"""The peak that windows and `suppress` report: the most windows open, or rows held, at the same time."""

LONGEST_SESSION = "longest_session"
"""The peak that session windows report: the length of the longest session, in ms."""


class BadRow(NamedTuple):
    """A row that was dropped at a source: its source partition, its number in that partition, and what is wrong."""

    part: str
    row: int
    problem: str

    def __str__(self) -> str:
        of = f" of {self.part}" if self.part else ""
        return f"row {self.row}{of} {self.problem}"


@dataclass(slots=True, repr=False)
class Metrics:
    """Counters by (node, group, reason), late versions by node, maxima by (node, name), and the first bad row by (node,
    reason).

    The bad rows are only for messages: they are not part of the numbers that are kept and shown.
    """

    _counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _late: Counter[str] = field(default_factory=Counter)
    _peaks: dict[tuple[str, str], int] = field(default_factory=dict)
    _examples: dict[tuple[str, str], BadRow] = field(default_factory=dict, compare=False)

    def __bool__(self) -> bool:
        """Whether anything was counted."""
        return bool(self._counts or self._late or self._peaks)

    def __repr__(self) -> str:
        return f"Metrics({self.as_dict()})"

    def count(self, node: str, group: Group, reason: Dropped | Missed, n: int = 1) -> None:
        """Adds `n` to a counter. Does nothing if `n` is 0."""
        if n:
            self._counts[node, group.value, reason.value] += n

    def late(self, node: str, n: int) -> None:
        """Adds `n` late versions. Does nothing if `n` is 0."""
        if n:
            self._late[node] += n

    def peak(self, node: str, name: str, value: int) -> None:
        """Raises a maximum to `value` if it is lower or not set."""
        key = (node, name)
        if value > self._peaks.get(key, value - 1):
            self._peaks[key] = value

    def example(self, node: str, reason: str, row: BadRow) -> None:
        """Keeps a bad row, unless an earlier one is known."""
        key = (node, reason)
        self._examples[key] = min(row, self._examples.get(key, row))

    def examples(self) -> Mapping[tuple[str, str], BadRow]:
        """The first bad rows."""
        return self._examples

    def get(self, node: str, group: Group, reason: Dropped | Missed) -> int:
        """A counter; 0 if nothing was counted."""
        return self._counts[node, group.value, reason.value]

    def merge(self, other: Metrics) -> None:
        """Adds what `other` counted."""
        self._counts.update(other._counts)
        self._late.update(other._late)
        for (node, name), value in other._peaks.items():
            self.peak(node, name, value)
        for (node, reason), row in other._examples.items():
            self.example(node, reason, row)

    def total(self, group: Group) -> int:
        """The sum of a group over all nodes and reasons. What is counted beside its reason counts once."""
        counted = ((of, reason, n) for (_, of, reason), n in self._counts.items())
        return sum(n for of, reason, n in counted if of == group.value and reason != Dropped.AFTER_QUIET)

    def as_dict(self) -> dict[str, dict[str, dict[str, int] | int]]:
        """``{group: {node: {reason: n}}, late_versions: {node: n}, peak name: {node: value}}``, sorted.

        Every group and `late_versions` are present."""
        found: dict[str, dict[str, dict[str, int] | int]] = {group.value: {} for group in Group}
        for (node, group, reason), n in sorted(self._counts.items()):
            reasons = found[group].setdefault(node, {})
            assert isinstance(reasons, dict)
            reasons[reason] = n
        found[LATE_VERSIONS] = dict(sorted(self._late.items()))
        for (node, name), value in sorted(self._peaks.items()):
            found.setdefault(name, {})[node] = value
        return found

    def flat(self) -> dict[str, dict[str, int]]:
        """Only the counters, as ``{group: {"NODE.REASON": n}}``, sorted."""
        found: dict[str, dict[str, int]] = {group.value: {} for group in Group}
        for (node, group, reason), n in sorted(self._counts.items()):
            found[group][f"{node}.{reason}"] = n
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Mapping[str, Mapping[str, int] | int]]) -> Metrics:
        """The metrics from the result of `as_dict` (or its JSON)."""
        metrics = cls()
        for group, nodes in data.items():
            for node, found in nodes.items():
                if isinstance(found, Mapping):
                    for reason, n in found.items():
                        metrics._counts[(node, group, reason)] = int(n)
                elif group == LATE_VERSIONS:
                    metrics._late[node] = int(found)
                else:
                    metrics._peaks[(node, group)] = int(found)
        return metrics
