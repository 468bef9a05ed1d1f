"""Primary-key join of two tables (KIP-914): a change on one side meets the newest row of the other one.

A side that is versioned drops what is not its key's newest; one that is not takes each change for the newest. Nothing
is ever read as of a time. The result's time is the higher one of both sides', or the only one's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from tests.oracle.records.consumer import Before, ChangeConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row, Values
from tests.oracle.records.getters import Getter
from tests.oracle.records.tables import Found
from vsc.runtime.metrics import Dropped, Missed

__all__ = ["Mode", "Pair", "TableTableJoin", "join_getter", "joined"]

Mode = Literal["inner", "left", "outer"]

Timed = tuple[Row, int] | None
"""A side's row (key columns first) and its time, or None where it has none."""

Pair = Callable[[Timed, Timed], Row | None]
"""The result for a left and a right row; None: there is none."""


def joined(mode: Mode, values: Values) -> Pair:
    """The result of two sides, as the mode says which of them may be absent."""
    needs_left, needs_right = mode != "outer", mode == "inner"

    def pair(left: Timed, right: Timed) -> Row | None:
        if left is None:
            return None if needs_left or right is None else values(None, right[0], None, right[1])
        if right is None:
            return None if needs_right else values(left[0], None, left[1], None)
        return values(left[0], right[0], left[1], right[1])

    return pair


class TableTableJoin:
    """One side of a join. `is_left`: this is the left one; `versioned`: its status; `other`: looks into the other.

    `together`: it is an inner join whose sides can change with one record. `send` takes the result's change: the
    consumers, or the join's own store. `old_wanted`: whether somebody downstream needs what the result was before.
    `sent`: by key, whether the last result was a row, for `send`; one that fails may stand for one.
    """

    __slots__ = (
        "_context",
        "_get",
        "_is_left",
        "_mode",
        "_name",
        "_old",
        "_pair",
        "_send",
        "_sent",
        "_together",
        "_versioned",
    )

    def __init__(
        self,
        name: str,
        mode: Mode,
        is_left: bool,
        versioned: bool,
        other: Getter,
        pair: Pair,
        together: bool,
        old_wanted: bool,
        context: Context,
        send: ChangeConsumer,
        sent: dict[Row, bool],
    ) -> None:
        self._name = name
        self._mode = mode
        self._is_left = is_left
        self._versioned = versioned
        self._get = other
        self._pair = pair
        self._together = together
        self._old = old_wanted
        self._context = context
        self._send = send
        self._sent = sent

    def process(self, key: Row, new: Row | None, old: Before | None, latest: bool, time: int) -> None:
        """Takes a change of this side."""
        if self._versioned and not latest:
            self._context.dropped(self._name, Dropped.OUT_OF_ORDER)
            return
        self._context.computed(self._name, key, False)
        try:
            other = _timed(key, self._get(key, None))
            if self._gives_nothing(new, old, other):
                return
            before = self._before(key, old, other) if self._old else None
            result = self._tried(key, new, time, other)
        except NodeFailure as failure:
            self._context.failed(failure, self._name)
            self._fails(key)
            return
        if not isinstance(result, NodeFailure):
            self._send(key, result, before, latest, _later(time, other))
        elif before is not None:
            self._send(key, None, before, latest, _later(time, other))

    def _fails(self, key: Row) -> None:
        self._sent[key] = True
        self._context.computed(self._name, key, True)

    def _tried(self, key: Row, row: Row | None, time: int, other: Timed) -> Row | NodeFailure | None:
        try:
            return self._result(key, row, time, other)
        except NodeFailure as failure:
            self._context.failed(failure)
            self._fails(key)
            return failure

    def _gives_nothing(self, new: Row | None, old: Before | None, other: Timed) -> bool:
        if other is not None:
            return False
        if self._is_left and self._together and new is None:
            return False
        if self._mode == "inner" or (self._mode == "left" and not self._is_left):
            return True
        return new is None and old is None

    def _result(self, key: Row, row: Row | None, time: int, other: Timed) -> Row | None:
        own: Timed = None if row is None else (key + row, time)
        return self._pair(own, other) if self._is_left else self._pair(other, own)

    def _before(self, key: Row, old: Before | None, other: Timed) -> Before | None:
        time = -1 if old is None else old.time
        try:
            result = self._result(key, old, time, other)
            return None if result is None else Before.of(result, _later(time, other))
        except NodeFailure:
            return None  # it failed, and was dealt with, when it was the result


def _later(time: int, other: Timed) -> int:
    return time if other is None else max(time, other[1])


def join_getter(left: Getter, right: Getter, pair: Pair) -> Getter:
    """The getter of a join without a store: it joins what both sides hold now."""

    def get(key: Row, as_of: int | None) -> Found | Missed:
        if as_of is not None:
            raise ValueError("the result of a join without a versioned store cannot be read as of a time")
        ours, theirs = left(key, None), right(key, None)
        row = pair(_timed(key, ours), _timed(key, theirs))
        if row is None:
            return ours if isinstance(ours, Missed) else Missed.NO_RECORD
        return row, max(found[1] for found in (ours, theirs) if not isinstance(found, Missed)), None

    return get


def _timed(key: Row, found: Found | Missed) -> Timed:
    return None if isinstance(found, Missed) else (key + found[0], found[1])
