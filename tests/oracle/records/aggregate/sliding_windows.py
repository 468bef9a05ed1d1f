"""Sliding windows (KIP-450): for each record the window that ends at it, and the one that begins right after it.

Bounds are inclusive, `difference` apart. Only windows with records exist, each known by its start. Which of them a
record begins is decided as Kafka Streams decides it, its corner cases included: the early records, before the
first window could have begun at a time of 0 or later, share the window that begins at 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tests.oracle.records.aggregate.groups import Group, Member
from tests.oracle.records.aggregate.windows import WindowedAggregate
from tests.oracle.records.expressions import Row

__all__ = ["SlidingWindows"]


@dataclass
class _Arrival:
    """The record that is being taken in, and which windows of its group were found, as they were before it.

    `right`: one that holds later records, too; `left`: the last one that ends before it; `previous`: the time of the
    record before it.
    """

    key: Row
    member: Member
    starts: set[int] = field(default_factory=set)
    right: Group | None = None
    left: Group | None = None
    previous: int | None = None


class SlidingWindows(WindowedAggregate):
    """See the module."""

    def _update(self, key: Row, member: Member) -> None:
        if member.time + self._window.size < self._close_time():
            self._late += 1
        elif member.time < self._window.size:
            self._early(_Arrival(key, member))
        else:
            self._normal(_Arrival(key, member))

    def _normal(self, new: _Arrival) -> None:
        time, size = new.member.time, self._window.size
        own_left = own_right = False
        for start, group in reversed(self._around(new.key, max(0, time - 2 * size), time + 1)):
            new.starts.add(start)
            end = start + size
            if start == time + 1:
                own_right = True
            elif end > time:
                new.right = new.right or group
                self._join(new, start, group)
            elif end == time:
                own_left = True
                self._join(new, start, group)
                if group.time >= time:
                    return  # a record of this very time was here before: it has made all windows
                new.previous = group.time
            else:
                new.left, new.previous = group, group.time
                break
        if new.previous is not None and new.previous + 1 + size >= time:
            self._right_of_previous(new)
        if not own_left:
            beside = new.previous is not None and time - size <= new.previous
            self._create(new, time - size, new.left if beside else None)
        if not own_right:
            self._own_right(new)

    def _early(self, new: _Arrival) -> None:
        time = new.member.time
        combined: Group | None = None
        own_right = False
        for start, group in self._around(new.key, 0, time + 1):
            new.starts.add(start)
            if start == 0:
                combined = group
                new.previous = group.time if group.time < time else None
            elif start <= time:
                new.right = group
                self._join(new, start, group)
            else:
                own_right = True
        if new.right is None and combined is not None and combined.time > time:
            new.right = combined
        if not own_right:
            self._own_right(new)
        if new.previous is not None:
            self._right_of_previous(new)
        if combined is None:
            self._create(new, 0, None)
        else:
            self._join(new, 0, combined)

    # --------------------------------------------------------------------------------------------------- one window

    def _join(self, new: _Arrival, start: int, group: Group) -> None:
        """Takes the record into a window that is there, if that is open."""
        if self._open(start):
            self._add(new, start, group)

    def _create(self, new: _Arrival, start: int, kept: Group | None) -> None:
        """A new window of what `kept` holds and the record, if it is open.

        The window that ends at the record may be the one that begins behind the record before: Kafka makes and sends it
        twice.
        """
        if not self._open(start):
            return
        self._add(new, start, replace(kept or Group(), time=new.member.time))

    def _right_of_previous(self, new: _Arrival) -> None:
        """The window that begins right behind the record before this one, unless it is there."""
        assert new.previous is not None
        if new.previous + 1 not in new.starts:
            self._create(new, new.previous + 1, None)

    def _own_right(self, new: _Arrival) -> None:
        """The window that begins right behind the record, if there are records for it: those of the window found."""
        start = new.member.time + 1
        if new.right is not None and new.right.time >= start:
            self._write(new.key, start, new.right)
            self._changed(new.key, start, new.right)

    def _add(self, new: _Arrival, start: int, group: Group) -> None:
        group = self._calls.added(group, new.member)
        group = replace(group, time=max(group.time, new.member.time))
        self._write(new.key, start, group)
        self._changed(new.key, start, group)

    def _open(self, start: int) -> bool:
        """Whether a window takes records still; a record that it does not take is counted."""
        if start + self._window.size >= self._close_time():
            return True
        self._late += 1
        return False

    def _around(self, key: Row, first: int, last: int) -> list[tuple[int, Group]]:
        """The group's windows that begin from `first` to `last`, ascending, as they are before the record."""
        first = max(first, self._hidden_up_to() + 1)
        return sorted((s, g) for (owner, s), g in self._windows.items() if owner == key and first <= s <= last)

    # --------------------------------------------------------------------------------------------------- in time

    def _close_time(self) -> int:
        return self._stream_time - self._window.grace

    def _closed_up_to(self) -> int:
        return self._close_time() - self._window.size - 1

    def _hidden_up_to(self) -> int:
        """Up to where windows are no longer found by a record.

        Kafka's window store shows none that begins its retention (grace and twice the difference) or more before the
        latest one. Final results are not lost to that (D15): they are taken from all windows.
        """
        if self._final or self._context.by_input:
            return -1
        hidden = self._highest - self._window.grace - 2 * self._window.size
        return min(hidden, self._closed_up_to())  # never one that is open still

    def _forgotten_up_to(self) -> int:
        # A record that is just not too late looks back over the windows up to twice the difference before it.
        return max(self._hidden_up_to(), self._close_time() - 3 * self._window.size - 1)

    def _clock_to_close(self, place: int) -> int:
        return place + self._window.size + self._window.grace + 1
