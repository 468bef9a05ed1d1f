"""Views by the clock of the input: of a store, only what no clock has passed, as every partition has it.

A partition removes what has expired when it is called next, so what it still has depends on its records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vsc.plan.nodes import Aggregate, Distinct, Node, StreamStreamJoin, Window, WithinAggregate
from vsc.runtime.operators.views.question import Question, Status
from vsc.runtime.operators.views.view import Entry, StoreView, clock

__all__ = ["limited"]

_MILLISECOND = 1000


class _Limited:
    """A store as its clock, which shows `now`, leaves it: without what has expired by the time `horizon`."""

    def __init__(self, view: StoreView, now: int, horizon: int, node: Node) -> None:
        self._view, self._now, self._horizon, operation = view, now, horizon, node.operation
        self._window = operation.window if isinstance(operation, Aggregate) else None
        self._forget = node.forget
        self.stream_time = clock(now)

    @property
    def held(self) -> int:
        """How many of its rows wait for the clock to advance."""
        return self._view.held

    def rows(self) -> int:
        """How many rows it keeps."""
        return sum(1 for entry in self._view.answer(Question()) if not self._expired(entry))

    def answer(self, question: Question) -> Iterator[Entry]:
        """The requested rows, by key."""
        for entry in self._view.answer(question):
            if not self._expired(entry):
                yield self._told(entry)
            elif question.key is not None:
                yield Entry(Status.NO_RECORD, entry.encoded, entry.key, None, (None,) * len(entry.extra))

    def _expired(self, entry: Entry) -> bool:
        if entry.status is Status.NO_RECORD:
            return False
        if self._window is not None:
            return _closes(self._window, entry) < self._horizon
        if self._forget is not None and (time := entry.extra[0]) is not None:
            return bool(time + self._forget <= self._now)
        due = entry.extra[1]
        return due is not None and due <= self._now

    def _told(self, entry: Entry) -> Entry:
        if self._window is None or entry.status not in (Status.OPEN, Status.CLOSED):
            return entry
        status = Status.CLOSED if _closes(self._window, entry) <= self._now else Status.OPEN
        return entry._replace(status=status)


def limited(view: StoreView, node: Node, now: int, horizon: int) -> StoreView:
    """The view, without rows that a partition may still have and another may not."""
    operation = node.operation
    windowed = isinstance(operation, Aggregate) and operation.window is not None
    if windowed or node.forget is not None or isinstance(operation, Distinct | StreamStreamJoin | WithinAggregate):
        return _Limited(view, now, horizon, node)
    return view


def _closes(window: Window, entry: Entry) -> int:
    """When the window closes whose bounds are at the end of the key."""
    end: Any = entry.key[-1]
    return int(end) // _MILLISECOND + window.lingers
