"""What the windowed aggregates have in common: a clock, windows by group and by time, closing and forgetting them.

A window has a place in time: its start, for sessions its end. It closes when the clock is its grace past it: then a
final result is sent, once. It is forgotten, with its row of the result table, as soon as no record can reach it any
more. The clock is the highest event time of the partition's records so far (D12's end).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.oracle.records.aggregate.groups import Calls, Group, Member
from tests.oracle.records.aggregate.results import Result, Results
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row
from tests.oracle.records.order import rows_in_order
from tests.oracle.records.tables import Content
from vsc.plan.nodes import Node, Window
from vsc.runtime.metrics import HELD_RECORDS, Dropped

__all__ = ["Held", "Span", "WindowedAggregate"]

_MILLISECOND = 1000


class Span(NamedTuple):
    """A window of one group: its bounds in ms, the end as the table shows it."""

    start: int
    end: int


class Held(NamedTuple):
    """A window: its place in time, its group's key, its bounds, and what is in it."""

    place: int
    key: Row
    span: Span
    group: Group


class WindowedAggregate:
    """Base of the windowed aggregates. A subclass says which windows a record changes, and when they close.

    A record on whose arguments an expression fails changes nothing; one of whose results fails stays in its windows
    (D34). The results of a record are sent in order once it has changed its windows, and behind them the final ones.
    """

    def __init__(
        self, node: Node, window: Window, final: bool, calls: Calls, results: Results, context: Context
    ) -> None:
        self._name, self._window, self._final = node.name, window, final
        self._calls, self._results, self._context = calls, results, context
        self._order = rows_in_order([c.type for c in node.schema.key[:-2]])
        self._windows: dict[tuple[Row, int], Group] = {}
        """By group and start."""
        self._stream_time = self._closed = self._highest = -1
        """The clock, the place up to which windows are closed, the highest place of any window ever."""
        self._arrivals = 0
        self._sent: list[Result] = []
        self._gone: list[Row] = []
        self._late = 0

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record; one without value (D14) or key (D26) is dropped, and moves no clock."""
        if value is None:
            self._context.dropped(self._name, Dropped.NO_VALUE)
            return
        if None in key:
            self._context.dropped(self._name, Dropped.NULL_JOIN_KEY)
            return
        self._sent, self._gone, self._late = [], [], 0
        try:
            self._arrivals += 1
            member = Member(self._calls.args(key + value, time), time, self._arrivals)
        except NodeFailure as failure:
            self._context.failed(failure)
            return
        self._stream_time = self._context.stream_time_after(self._name, self._stream_time, time)
        self._update(key, member)
        self._close_and_forget()
        self._finish()

    def __len__(self) -> int:
        """How many windows wait to give their final result."""
        return len(self._open_ones()) if self._final else 0

    def take_all(self) -> list[Held]:
        """The windows that wait, in the order in which they would close; the clock moves to where all have closed."""
        held = self._open_ones() if self._final else []
        if held:
            self._stream_time = max(self._stream_time, self._clock_to_close(held[-1].place))
            self._closed = held[-1].place
        return held

    def due(self) -> int | None:
        """When the first window closes that waits for it; None without one."""
        held = self._open_ones() if self._final else []
        return self._clock_to_close(held[0].place) if held else None

    def take_due(self) -> list[Held]:
        """The windows that close together with the first one."""
        held = self._open_ones()
        self._closed = held[0].place
        return [one for one in held if one.place == self._closed]

    def release(self, held: Held) -> None:
        """Sends the final result of one of them."""
        self._sent, self._gone, self._late = [], [], 0
        self._close(held)
        self._finish()

    def content(self) -> Content:
        """The windows: (key and bounds, result or None if it fails, its time, number of rows, what it is)."""
        found = []
        for key, start in sorted(self._windows, key=lambda w: (self._order(w[0]), w[1])):
            group = self._windows[key, start]
            bounded = _bounded(key, self._span(start, group))
            try:
                row: Any = self._calls.result(group, bounded)
                status = "closed" if self._place(start, group) <= self._closed else "open"
            except NodeFailure:
                row, status = None, "expression_failed"
            found.append((bounded, row, group.time, group.count, status))
        return None if self._stream_time < 0 else self._stream_time, len(self), found

    # ------------------------------------------------------------------------------------------- for the subclasses

    def _update(self, key: Row, member: Member) -> None:
        """Changes the windows of a record; `_stream_time` has been moved."""
        raise NotImplementedError

    def _closed_up_to(self) -> int:
        """The place in time up to which windows are closed now."""
        raise NotImplementedError

    def _forgotten_up_to(self) -> int:
        """The place in time up to which no record can reach a window."""
        raise NotImplementedError

    def _clock_to_close(self, place: int) -> int:
        """The stream time at which a window at `place` is closed."""
        raise NotImplementedError

    def _span(self, start: int, group: Group) -> Span:
        """The bounds of a window."""
        return Span(start, start + self._window.size)

    def _place(self, start: int, group: Group) -> int:
        """The place in time of a window."""
        return start

    def _write(self, key: Row, start: int, group: Group) -> None:
        self._windows[key, start] = group
        self._highest = max(self._highest, self._place(start, group))

    def _changed(self, key: Row, start: int, group: Group, replaces: bool = True) -> None:
        """Sends a window's new result, unless only the final one is wanted."""
        if not self._final:
            self._send(key, start, group, replaces)

    def _send(self, key: Row, start: int, group: Group, replaces: bool = True) -> None:
        bounded = _bounded(key, self._span(start, group))
        try:
            self._sent.append(Result(bounded, self._calls.result(group, bounded), group.time, replaces))
        except NodeFailure as failure:
            self._context.failed(failure)

    def _taken_back(self, key: Row, start: int, group: Group) -> None:
        """Sends the change that takes a window back, at its end."""
        if not self._final:
            span = self._span(start, group)
            self._sent.append(Result(_bounded(key, span), None, span.end))

    # ----------------------------------------------------------------------------------------------------- in time

    def _in_time(self) -> list[Held]:
        """All windows, in the order in which they close."""
        found = [
            Held(self._place(start, group), key, self._span(start, group), group)
            for (key, start), group in self._windows.items()
        ]
        return sorted(found, key=lambda held: (held.place, held.span.start, self._order(held.key)))

    def _open_ones(self) -> list[Held]:
        return [held for held in self._in_time() if held.place > self._closed]

    def _close_and_forget(self) -> None:
        closed = self._closed_up_to()
        if closed <= self._closed:
            return
        if self._final and not self._context.by_input:
            for held in self._open_ones():
                if held.place <= closed:
                    self._close(held)
        if self._context.by_input:  # look-ups do not see what has closed, by the clock of their readers
            self._closed = self._closed if self._final else closed  # a final result comes at its own place
            return
        self._closed = closed
        forgotten = min(closed, self._forgotten_up_to())
        for held in self._in_time():
            if held.place <= forgotten:
                del self._windows[held.key, held.span.start]
                self._gone.append(_bounded(held.key, held.span))

    def _close(self, held: Held) -> None:
        self._send(held.key, held.span.start, held.group)

    def _finish(self) -> None:
        for _ in range(self._late):
            self._context.dropped(self._name, Dropped.WINDOW_CLOSED)
        waiting = len(self._open_ones())
        if waiting:
            self._context.metrics.peak(self._name, HELD_RECORDS, waiting)
        for result in self._sent:
            self._results.send(result)
        for key in self._gone:
            self._results.forget(key)


def _bounded(key: Row, span: Span) -> Row:
    return (*key, span.start * _MILLISECOND, span.end * _MILLISECOND)
