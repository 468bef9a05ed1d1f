"""A view of an aggregate's state: each group, window or session with its present result."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from vsc.plan.nodes import Aggregate, Column, Node, Plan, Window
from vsc.plan.types import BIGINT
from vsc.runtime.operators.aggregate.functions.calls import Calls, Group
from vsc.runtime.operators.aggregate.groups.state import SUFFIX, AggregateState, moving
from vsc.runtime.operators.aggregate.windows.grid import grid_of
from vsc.runtime.operators.aggregate.windows.rows_view import RowsView
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.evaluate import Row
from vsc.runtime.operators.views.question import Question, Status, StoreInfo
from vsc.runtime.operators.views.view import Contents, Entry, SideStore, StoreView, clock
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.kv_base import OrderedKV, prefix_end

__all__ = ["GROUPS"]

_NUMBER = struct.Struct(">Q")
_BOUNDS = 2
_MILLISECOND = 1000


class _View:
    """The groups of one aggregate. `timestamp` is the time of a group's result, `rows` the number of its rows."""

    def __init__(self, node: Node, operation: Aggregate, info: StoreInfo, kv: OrderedKV) -> None:
        self._window, self._final = operation.window, operation.final
        self._calls = Calls(node, operation)
        self._state = AggregateState(kv, info.prefix, self._calls.numbered)
        self._whole = KeyCodec([c.type for c in info.key])
        width = len(info.key) - (_BOUNDS if self._window is not None else 0)
        self._group = KeyCodec([c.type for c in info.key[:width]])

    @property
    def stream_time(self) -> int | None:
        """The clock of its windows; None without windows."""
        return None if self._window is None else clock(self._state.stream_time)

    @property
    def held(self) -> int:
        """How many windows wait for their final result."""
        return self._state.open if self._final else 0

    def rows(self) -> int:
        """How many groups there are."""
        groups = self._state.groups
        return sum(1 for _ in self._state.kv.scan(groups, prefix_end(groups)))

    def answer(self, question: Question) -> Iterator[Entry]:
        """The groups, by key and then by the window's start."""
        groups, found = self._state.groups, False
        for at, data in self._state.kv.scan(groups, prefix_end(groups)):
            place, group = at[len(groups) :], self._calls.decode(data)
            key, status = self._key(place, group)
            encoded = self._whole.encode(key)
            if question.wants(encoded):
                found = True
                yield self._entry(encoded, key, status, place, group)
        if question.key is not None and not found:
            yield Entry(Status.NO_RECORD, question.key, self._whole.decode(question.key), None, (None, None))

    def _key(self, place: bytes, group: Group) -> tuple[Row, Status]:
        if self._window is None:
            return self._group.decode(place), Status.ROW
        (start,) = _NUMBER.unpack_from(place, len(place) - _NUMBER.size)
        end = _end(self._window, start, group)
        closes = end if self._window.kind == "session" else start
        status = Status.CLOSED if closes <= self._state.closed else Status.OPEN
        bounds = (start * _MILLISECOND, end * _MILLISECOND)
        return (*self._group.decode(place[: -_NUMBER.size]), *bounds), status

    def _entry(self, encoded: bytes, key: Row, status: Status, place: bytes, group: Group) -> Entry:
        extra = (group.time, group.rows)
        try:
            row = self._calls.result(group, key, self._state.kv, self._state.entries + place)
        except NodeFailure:
            return Entry(Status.FAILED, encoded, key, None, extra)
        return Entry(status, encoded, key, row, extra)


def _end(window: Window, start: int, group: Group) -> int:
    return group.time if window.kind == "session" else _end_of(window, start)


def _end_of(window: Window, start: int) -> int:
    if window.kind == "sliding":
        return start + window.size
    return int(grid_of(window).ends_of(np.array([start]))[0])


def _contents(plan: Plan, node: Node, operation: Aggregate) -> Contents:
    return Contents(("timestamp", "rows"), node.schema.key, node.schema.value, node.name)


def _encoded(plan: Plan, node: Node, operation: Aggregate) -> tuple[Column, ...]:
    """What groups are encoded with: the window, and each call with the types that it keeps, or the rows."""
    window = operation.window
    bounds = () if window is None else (Column(" ".join(map(str, window.shape)), BIGINT),)
    if window is not None and operation.over == "table":
        return bounds + operation.row.value
    calls = enumerate(operation.calls)
    return bounds + tuple(
        Column(f"{n} {c.function} {c.distinct} {[*map(str, c.kept_types)]}", c.type) for n, c in calls
    )


def _due(node: Node, operation: Aggregate, kv: OrderedKV, prefix: bytes) -> int | None:
    window = operation.window
    if window is None or not operation.final:
        return None
    state = AggregateState(kv, prefix, False)
    first = next(state.places(state.closed + 1, None), None)
    if first is None:
        return None
    place, start, _ = state.indexed(first)
    end = place if window.kind == "session" else _end_of(window, start)
    return end + window.lingers


def _opened(node: Node, operation: Aggregate, info: StoreInfo, kv: OrderedKV) -> StoreView:
    of_rows = operation.over == "table" and operation.window is not None
    return RowsView(node, operation, info, kv) if of_rows else _View(node, operation, info, kv)


GROUPS = SideStore(SUFFIX, _contents, _opened, lambda operation: moving(operation.final), _encoded, _due)
