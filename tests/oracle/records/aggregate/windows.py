"""What the windowed aggregates have in common: a clock, windows by group and by time, closing and forgetting them.

A window's row is under (group key, start), so that a record finds the windows of its group; an index row under (time,
start, group key) finds the windows of all groups in the order in which they close. `time` is the start, for sessions
the end. A window closes when the clock is its grace past it: then a final result is sent, once. It is forgotten, with
its row of the result table, as soon as no record can reach it any more.

The clock is the highest event time of the partition's records so far, and part of the state (D12's end).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.oracle.records.aggregate.results import Result, Results
from tests.oracle.records.aggregate.taking_back import RecordCalls, RecordState
from tests.oracle.records.context import Context
from vsc.plan.nodes import Node, Window
from vsc.runtime.metrics import HELD_RECORDS, Dropped
from vsc.runtime.operators.aggregate.calls import Group
from vsc.runtime.operators.aggregate.state import bounds_key, window_key
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.state.keys import KeyCodec

__all__ = ["Held", "Span", "WindowedAggregate"]

_MILLISECOND = 1000
_FAR = 2**63 - 1


class Span(NamedTuple):
    """A window of one group: its bounds in ms, the end as the table shows it."""

    start: int
    end: int


class Held(NamedTuple):
    """A window that waits to close: its place in time, its group's encoded key, its bounds."""

    place: int
    kb: bytes
    span: Span


class WindowedAggregate:
    """Base of the windowed aggregates. A subclass says which windows a record changes, and when they close.

    The changes of one record are written at once; then its results are sent, in order, and behind them the final ones.
    """

    def __init__(
        self,
        node: Node,
        window: Window,
        final: bool,
        calls: RecordCalls,
        state: RecordState,
        results: Results,
        context: Context,
    ) -> None:
        self._name = node.name
        self._window = window
        self._final = final
        self._calls = calls
        self._state = state
        self._results = results
        self._context = context
        self._keys = KeyCodec([c.type for c in node.schema.key[:-2]])
        self._sent: list[Result] = []
        self._gone: list[Result] = []
        self._late = 0
        # Nothing that closes, or can be forgotten, lies before these: most records find so by a comparison.
        self._next_closing = self._next_forgotten = 0

    def process(self, kb: bytes, key: Row, value: Row | None, time: int) -> None:
        """Takes a stream's record; one without value (D14) or key (D26) is dropped, and moves no clock."""
        if value is None:
            self._context.dropped(self._name, Dropped.NO_VALUE)
            return
        if None in key:
            self._context.dropped(self._name, Dropped.NULL_JOIN_KEY)
            return
        self._sent, self._gone, self._late = [], [], 0
        try:
            self._take(kb, key, self._calls.args(key + value, time), time)
        except NodeFailure as failure:
            self._state.discard()
            self._context.failed(failure)
            return
        except Exception:
            self._state.discard()
            self._next_closing = self._next_forgotten = 0
            raise
        self._finish()

    def __len__(self) -> int:
        """How many windows wait to give their final result."""
        return self._state.open if self._final else 0

    def take_all(self) -> list[Held]:
        """The windows that wait, in the order in which they would close; the clock moves to where all have closed."""
        held = self._closing(None) if self._final else []
        state = self._state
        if held:
            state.stream_time = max(state.stream_time, self._clock_to_close(max(h.place for h in held)))
            state.closed, state.open = max(state.closed, held[-1].place), 0
            state.commit()
        return held

    def release(self, held: Held) -> None:
        """Sends the final result of one of them."""
        self._sent, self._gone, self._late = [], [], 0
        self._close(held)
        self._finish()

    # ------------------------------------------------------------------------------------------- for the subclasses

    def _update(self, kb: bytes, key: Row, args: Sequence[tuple[object, ...]], time: int) -> None:
        """Changes the windows of a record; `_state.stream_time` has been moved."""
        raise NotImplementedError

    def _closed_up_to(self) -> int:
        """The place in time up to which windows are closed now."""
        raise NotImplementedError

    def _forgotten_up_to(self) -> int:
        """The place in time up to which no record can reach a window; never behind the closed ones."""
        raise NotImplementedError

    def _clock_to_close(self, place: int) -> int:
        """The stream time at which a window at `place` is closed."""
        raise NotImplementedError

    def _span_at(self, place: int, start: int) -> Span:
        """The bounds of the window that the index knows by its place in time and its start."""
        raise NotImplementedError

    def _place(self, span: Span) -> int:
        """The place in time of a window."""
        return span.start

    def _read(self, kb: bytes, start: int) -> Group | None:
        data = self._state.get(window_key(kb, start))
        return None if data is None else self._calls.decode(data)

    def _scope(self, kb: bytes, start: int) -> bytes:
        """Where the accumulators of a window keep their entries."""
        return self._state.entries + window_key(kb, start)

    def _write(self, kb: bytes, span: Span, group: Group, fresh: bool) -> None:
        """Writes a window's row, and its place in the index if it is `fresh`."""
        state = self._state
        state.put(window_key(kb, span.start), self._calls.encode(group))
        if fresh:
            place = self._place(span)
            state.kv.write([(state.index(place, span.start, kb), b"")])
            state.highest = max(state.highest, place)
            self._opened(place)

    def _opened(self, place: int) -> None:
        self._state.open += 1
        self._next_closing = min(self._next_closing, place)
        self._next_forgotten = min(self._next_forgotten, place)

    def _changed(self, kb: bytes, key: Row, span: Span, group: Group, before: Row | None) -> None:
        """Sends a window's new result, unless only the final one is wanted."""
        if not self._final:
            self._sent.append(self._result(kb, key, span, group, before))

    def _before(self, kb: bytes, key: Row, span: Span, group: Group | None) -> Row | None:
        """A window's result before a change, where somebody asks for it and the table has no store."""
        if group is None or self._final or not self._results.old_wanted:
            return None
        return self._calls.result(group, _bounded(key, span), self._state.kv, self._scope(kb, span.start))

    def _result(self, kb: bytes, key: Row, span: Span, group: Group, before: Row | None) -> Result:
        bounded = _bounded(key, span)
        new = self._calls.result(group, bounded, self._state.kv, self._scope(kb, span.start))
        return Result(kb + bounds_key(*span), bounded, new, before, group.time)

    def _tombstone(self, kb: bytes, key: Row, span: Span, before: Row | None) -> Result:
        """The change that takes a window back, at its end."""
        return Result(kb + bounds_key(*span), _bounded(key, span), None, before, span.end)

    # ----------------------------------------------------------------------------------------------------- one record

    def _take(self, kb: bytes, key: Row, args: Sequence[tuple[object, ...]], time: int) -> None:
        state = self._state
        state.stream_time = max(state.stream_time, time)
        self._update(kb, key, args, time)
        closed = self._closed_up_to()
        if closed > state.closed:
            self._close_up_to(closed)
            self._forget(min(closed, self._forgotten_up_to()))

    def _finish(self) -> None:
        self._state.commit()
        context = self._context
        for _ in range(self._late):
            context.dropped(self._name, Dropped.WINDOW_CLOSED)
        if self._state.open:
            context.metrics.peak(self._name, HELD_RECORDS, self._state.open)
        for result in self._sent:
            self._results.send(result)
        for result in self._gone:
            self._results.forget(result.kb)

    def _close_up_to(self, closed: int) -> None:
        state = self._state
        if closed >= self._next_closing:
            held = self._closing(closed)
            self._next_closing = self._first_from(closed + 1)
            state.open -= len(held)
            if self._final:
                for one in held:
                    self._close(one)
        state.closed = closed

    def _closing(self, closed: int | None) -> list[Held]:
        """The windows that are not closed up to now, and are up to `closed` (None: all), in order."""
        state = self._state
        return [self._held(key) for key in state.places(state.closed + 1, None if closed is None else closed + 1)]

    def _held(self, index: bytes) -> Held:
        place, start, kb = self._state.indexed(index)
        return Held(place, kb, self._span_at(place, start))

    def _close(self, held: Held) -> None:
        group = self._read(held.kb, held.span.start)
        assert group is not None
        try:
            self._sent.append(self._result(held.kb, self._keys.decode(held.kb), held.span, group, None))
        except NodeFailure as failure:
            self._context.failed(failure)

    def _forget(self, up_to: int) -> None:
        """Removes the windows up to there, in all that is kept of them."""
        state = self._state
        first, state.forgotten = state.forgotten + 1, max(state.forgotten, up_to)
        if up_to < self._next_forgotten:
            return
        for index in list(state.places(first, up_to + 1)):
            held = self._held(index)
            state.kv.write((), [index])
            state.remove(window_key(held.kb, held.span.start), self._calls.has_entries)
            if self._results.stored:
                self._gone.append(Result(held.kb + bounds_key(*held.span), (), None, None, 0))
        self._next_forgotten = self._first_from(up_to + 1)

    def _first_from(self, place: int) -> int:
        """The first place from there on that has a window; far away if there is none."""
        for index in self._state.places(place, None):
            return self._state.indexed(index)[0]
        return _FAR


def _bounded(key: Row, span: Span) -> Row:
    return (*key, span.start * _MILLISECOND, span.end * _MILLISECOND)
