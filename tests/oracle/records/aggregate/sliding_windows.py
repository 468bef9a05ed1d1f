"""Sliding windows (KIP-450): for each record the window that ends at it, and the one that begins right after it.

Bounds are inclusive, `difference` apart. Only windows with records exist, each known by its start. Which of them a
record makes anew is decided as Kafka Streams decides it, its corner cases included: the early records, before the
first window could have begun at a time of 0 or later, share the window that begins at 0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.oracle.records.aggregate.windows import Span, WindowedAggregate
from vsc.runtime.operators.aggregate.calls import Group
from vsc.runtime.operators.aggregate.entries import At
from vsc.runtime.operators.evaluate import Row

__all__ = ["SlidingWindows"]

_NUMBER = struct.Struct(">Q")
Rows = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class _Kept:
    """A window as it was before the record: its cells and, where accumulators keep any, its entries."""

    group: Group
    entries: Rows


@dataclass(slots=True)
class _Arrival:
    """The record that is being taken in, and which windows of its group were found."""

    kb: bytes
    key: Row
    args: Sequence[tuple[object, ...]]
    at: At
    starts: set[int]
    made: set[int]
    right: _Kept | None = None
    left: _Kept | None = None
    previous: int | None = None


class SlidingWindows(WindowedAggregate):
    """See the module."""

    def _update(self, kb: bytes, key: Row, args: Sequence[tuple[object, ...]], time: int) -> None:
        if time + self._window.size < self._close_time():
            self._late += 1
            return
        new = _Arrival(kb, key, args, self._state.arrive(time), set(), set())
        if time < self._window.size:
            self._early(new)
        else:
            self._normal(new)

    def _normal(self, new: _Arrival) -> None:
        time, size = new.at.time, self._window.size
        own_left = own_right = False
        for start, group in self._windows(new.kb, max(0, time - 2 * size), time + 1, reverse=True):
            new.starts.add(start)
            end = start + size
            if start == time + 1:
                own_right = True
            elif end > time:
                new.right = new.right or self._kept(new.kb, start, group)
                self._join(new, start, group)
            elif end == time:
                own_left, latest = True, group.time
                self._join(new, start, group)
                if latest >= time:
                    return  # a record of this very time was here before: it has made all windows
                new.previous = latest
            else:
                new.left, new.previous = self._kept(new.kb, start, group), group.time
                break
        if new.previous is not None and new.previous + 1 + size >= time:
            self._right_of_previous(new)
        if not own_left:
            beside = new.previous is not None and time - size <= new.previous
            self._create(new, time - size, new.left if beside else None)
        if not own_right:
            self._own_right(new)

    def _early(self, new: _Arrival) -> None:
        time = new.at.time
        combined: Group | None = None
        own_right = False
        for start, group in self._windows(new.kb, 0, time + 1):
            new.starts.add(start)
            if start == 0:
                combined = group
                new.previous = group.time if group.time < time else None
            elif start <= time:
                new.right = self._kept(new.kb, start, group)
                self._join(new, start, group)
            else:
                own_right = True
        if new.right is None and combined is not None and combined.time > time:
            new.right = self._kept(new.kb, 0, combined)
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
            span = self._span_at(start, start)
            before = self._before(new.kb, new.key, span, group)
            self._add(new, span, group, before, fresh=False)

    def _create(self, new: _Arrival, start: int, kept: _Kept | None) -> None:
        """A new window of what `kept` holds and the record, if it is open."""
        if not self._open(start):
            return
        if start in new.made:
            # The window that ends at the record may be the one that begins behind the record before: Kafka makes and
            # sends it twice.
            self._state.open -= 1
            self._state.clear(self._scope(new.kb, start))
        new.made.add(start)
        span = self._span_at(start, start)
        group, before = self._calls.empty(), None
        if kept is not None:
            group = kept.group.copy()
            self._put_entries(new.kb, start, kept.entries)
            if self._results.asked and not self._final:
                # Kafka sends what the window began with as its old row.
                before = self._result(new.kb, new.key, span, group, None).new
        group.time = new.at.time
        self._add(new, span, group, before, fresh=True)

    def _right_of_previous(self, new: _Arrival) -> None:
        """The window that begins right behind the record before this one, unless it is there."""
        assert new.previous is not None
        if new.previous + 1 not in new.starts:
            self._create(new, new.previous + 1, None)

    def _own_right(self, new: _Arrival) -> None:
        """The window that begins right behind the record, if there are records for it: those of the window found."""
        kept, start = new.right, new.at.time + 1
        if kept is None or kept.group.time <= new.at.time:
            return
        span = self._span_at(start, start)
        self._put_entries(new.kb, start, kept.entries)
        self._write(new.kb, span, kept.group, fresh=True)
        self._changed(new.kb, new.key, span, kept.group, None)

    def _add(self, new: _Arrival, span: Span, group: Group, before: Row | None, fresh: bool) -> None:
        self._calls.add(group, new.args, new.at, self._state.kv, self._scope(new.kb, span.start))
        group.time = max(group.time, new.at.time)
        self._write(new.kb, span, group, fresh)
        if not self._final:
            self._sent.append(self._result(new.kb, new.key, span, group, before)._replace(sure=fresh))

    def _open(self, start: int) -> bool:
        """Whether a window takes records still; a record that it does not take is counted."""
        if start + self._window.size >= self._close_time():
            return True
        self._late += 1
        return False

    def _windows(self, kb: bytes, first: int, last: int, reverse: bool = False) -> Iterator[tuple[int, Group]]:
        """The group's windows that begin from `first` to `last`, as they are before the record."""
        rows = self._state.groups + kb
        first = max(first, self._hidden_up_to() + 1)
        if first > last:
            return
        found = list(self._state.kv.scan(rows + _NUMBER.pack(first), rows + _NUMBER.pack(last + 1), reverse))
        for row, data in found:
            yield _NUMBER.unpack_from(row, len(rows))[0], self._calls.decode(data)

    def _kept(self, kb: bytes, start: int, group: Group) -> _Kept:
        if not self._calls.has_entries:
            return _Kept(group.copy(), ())
        scope = self._scope(kb, start)
        rows = self._state.rows(scope)
        return _Kept(group.copy(), tuple((row[len(scope) :], value) for row, value in rows))

    def _put_entries(self, kb: bytes, start: int, entries: Rows) -> None:
        if entries:
            scope = self._scope(kb, start)
            self._state.kv.write([(scope + suffix, value) for suffix, value in entries])

    # --------------------------------------------------------------------------------------------------- in time

    def _close_time(self) -> int:
        return self._state.stream_time - self._window.grace

    def _closed_up_to(self) -> int:
        return self._close_time() - self._window.size - 1

    def _hidden_up_to(self) -> int:
        """Up to where windows are no longer found by a record.

        Kafka's window store shows none that begins its retention (grace and twice the difference) or more before the
        latest one. Final results are not lost to that (D15): they are taken from all windows.
        """
        if self._final:
            return -1
        hidden = self._state.highest - self._window.grace - 2 * self._window.size
        return min(hidden, self._closed_up_to())  # never one that is open still

    def _forgotten_up_to(self) -> int:
        # A record that is just not too late looks back over the windows up to twice the difference before it.
        return max(self._hidden_up_to(), self._close_time() - 3 * self._window.size - 1)

    def _clock_to_close(self, place: int) -> int:
        return place + self._window.size + self._window.grace + 1

    def _span_at(self, place: int, start: int) -> Span:
        return Span(start, start + self._window.size)
