"""Tables with a complete history (KIP-914, "Attempt 2"), change by change: the results as of all moments, again.

A change of an input is valid from its time until that of its key's next version. On each part of that interval in which
nothing else changes there is one result; where it is not what the table's own history says, it is put.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.oracle.records.aggregate.groups import Calls, Group, Member
from tests.oracle.records.aggregate.unwindowed import TravelledRows
from tests.oracle.records.consumer import Before, RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row, Values
from tests.oracle.records.foreign_keys import UNCHANGED, Instruction
from tests.oracle.records.getters import Getter
from tests.oracle.records.order import rows_in_order
from tests.oracle.records.put import TablePut
from tests.oracle.records.table_table_join import Pair
from tests.oracle.records.tables import TableStore
from tests.runtime.state.model import INFINITE
from vsc.plan.nodes import Answer, Node
from vsc.runtime.metrics import Missed

__all__ = ["CompleteAnswer", "CompleteAnswers", "CompleteGroups", "CompleteSide", "Sending"]

Piece = tuple[int, Row | None]
"""From when on a result is valid, and which; None: there is none."""


class Sending:
    """The history of a table, and what it sends."""

    def __init__(self, store: TableStore, put: TablePut) -> None:
        self._store, self._put = store, put

    @property
    def earliest(self) -> int:
        """Before it nothing is promised."""
        return self._store.stream_time - int(self._store.grace)

    def send(self, key: Row, pieces: Sequence[Piece], until: int) -> None:
        """Puts what these results change in the history of a key, and what is valid again at their end."""
        before: dict[int, Row | None] = dict(self._store.history(key))
        then, now, puts = as_of(before, until), dict(before), []
        first = pieces[0][0]
        for moment in sorted({*(begin for begin, _ in pieces), *(t for t in before if first < t < until)}):
            row = as_of(dict(pieces), moment)
            if _told(as_of(now, moment)) != _told(row):
                now[moment] = row
                puts.append((moment, row))
        if until < INFINITE and _told(as_of(now, until)) != _told(then):
            puts.append((until, then))
        for moment, row in puts:
            self._put.process(key, row, self._put.before(key, moment), moment)


def as_of(history: Mapping[int, Any], moment: int) -> Any:
    """What is valid at a moment; None without anything."""
    begin = max((time for time in history if time <= moment), default=None)
    return None if begin is None else history[begin]


def _told(row: Row | None) -> str | None:
    """A text that is the same for the same values: of NaN, too, and not for 0.0 and -0.0."""
    if row is None:
        return None
    return repr([struct.pack("<d", one) if isinstance(one, float) else one for one in row])


def moments(times: Mapping[int, Any], begin: int, until: int) -> list[int]:
    """Where the parts of an interval begin, if something changes at these times."""
    return [begin, *sorted(time for time in times if begin < time < until)]


class CompleteSide:
    """One side of a join by key. `own` and `other` are the stores behind the sides, `get` looks into the other one."""

    def __init__(
        self, name: str, is_left: bool, own: TableStore, other: TableStore, get: Getter, pair: Pair, context: Context,
        sending: Sending,
    ) -> None:  # fmt: skip
        self._name, self._is_left, self._own, self._other = name, is_left, own, other
        self._get, self._pair, self._context, self._sending = get, pair, context, sending

    def process(self, key: Row, new: Row | None, old: Before | None, latest: bool, time: int) -> None:
        """Takes a change of this side."""
        begin, until = max(time, self._sending.earliest), self._own.until(key, time)
        if begin < until:
            there = moments(self._other.history(key), begin, until)
            self._sending.send(key, [(at, self._result(key, new, time, at)) for at in there], until)

    def _result(self, key: Row, new: Row | None, time: int, at: int) -> Row | None:
        try:
            found = self._get(key, at)
        except NodeFailure as failure:
            self._context.failed(failure, self._name)
            return None
        own = None if new is None else (key + new, time)
        other = None if isinstance(found, Missed) else (key + found[0], found[1])
        try:
            return self._pair(own, other) if self._is_left else self._pair(other, own)
        except NodeFailure as failure:
            self._context.failed(failure)
            return None


class CompleteGroups:
    """An aggregate: by group and row of the table, when the row is one of the group, with which arguments."""

    def __init__(self, calls: Calls, travelled: TravelledRows, context: Context, sending: Sending) -> None:
        self._calls, self._travelled, self._context, self._sending = calls, travelled, context, sending
        self._groups: dict[Row, dict[Row, dict[int, Member | None]]] = {}
        self._arrivals = 0

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a change of a group."""
        assert value is not None
        taken, added = self._travelled.rows(value)
        _, until = value[-2:]
        assert isinstance(until, int)
        begin = max(time, self._sending.earliest)
        if begin >= until:
            return
        ident = self._travelled.ident(taken if added is None else added)  # type: ignore[arg-type]
        group = self._groups.setdefault(key, {})
        own = group.setdefault(ident, {})
        then = as_of(own, until)
        own[time] = None if added is None else self._member(added, time, ident)
        if until < INFINITE:
            own.setdefault(until, then)
        self._tidy(group)
        times = {at: None for history in group.values() for at in history}
        self._sending.send(key, [(at, self._result(key, group, at)) for at in moments(times, begin, until)], until)

    def _member(self, row: Row, time: int, ident: Row) -> Member | None:
        self._arrivals += 1
        try:
            return Member(self._calls.args(row, time), time, self._arrivals, ident)
        except NodeFailure as failure:
            self._context.failed(failure)
            return None

    @staticmethod
    def _tidy(group: dict[Row, dict[int, Member | None]]) -> None:
        """Nothing changes where a row is missing that was missing before."""
        for history in group.values():
            for at in sorted(history):
                if history[at] is None and as_of(history, at - 1) is None:
                    del history[at]

    def _result(self, key: Row, group: Mapping[Row, Mapping[int, Member | None]], at: int) -> Row | None:
        members = [as_of(history, at) for history in group.values()]
        there = sorted((one for one in members if one is not None), key=lambda one: one.arrival)
        try:
            return self._calls.result(Group(at, own=tuple(there)), key) if there else None
        except NodeFailure as failure:
            self._context.failed(failure)
            return None


class _Left(NamedTuple):
    """A left row that refers to a key, and since when it is valid."""

    columns: Row
    since: int


class CompleteAnswer:
    """Answers of a join by a foreign key, in the right table's partition: as of when which left row refers to a key."""

    def __init__(
        self, node: Node, operation: Answer, retention: int, store: TableStore, values: Values, get: Getter,
        context: Context, forward: RecordConsumer,
    ) -> None:  # fmt: skip
        schema = operation.left_schema
        self._node, self._name, self._left, self._retention = node.name, node.owner, operation.left, retention
        self._width, self._store, self._values, self._get = len(schema.key), store, values, get
        self._columns = len(operation.items)
        self._order = rows_in_order([c.type for c in schema.key])
        self._context, self._forward = context, forward
        self._histories: dict[tuple[Row, Row], dict[int, _Left | None]] = {}

    def subscription(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a record of the join's `Subscribe`."""
        assert value is not None
        left_key, columns, (until, ends, number) = value[: self._width], value[self._width : -3], value[-3:]
        assert isinstance(until, int) and isinstance(number, int)
        begin, kind = self._begin(time), Instruction(number & ~UNCHANGED)
        if begin >= until:
            return
        keeps = kind in (Instruction.KEEP, Instruction.KEEP_IF_VALUE)
        if keeps or kind in (Instruction.DELETE, Instruction.DELETE_AND_ANSWER):
            history = self._histories.setdefault((key, left_key), {})
            history[begin] = _Left(columns, time) if keeps else None
            if keeps and ends:
                history[until] = None
        if keeps:
            there = moments(self._store.history(key), begin, until)
            for at, end in zip(there, [*there[1:], until], strict=True):
                self._answer(left_key, _Left(columns, time), self._right(key, at), (at, end, end == until))
        elif kind is Instruction.ALONE:
            self._answer(left_key, _Left(columns, time), None, (begin, until, True))
        elif kind is not Instruction.DELETE:
            self._send(left_key, None, (begin, until, True))

    def change(self, key: Row, new: Row | None, old: Before | None, latest: bool, time: int) -> None:
        """Takes a change of the right table."""
        begin, until = self._begin(time), self._store.until(key, time)
        if begin >= until:
            return
        pairs = sorted((left for foreign, left in self._histories if foreign == key), key=self._order)
        right = None if new is None else (key + new, time)
        for left_key in pairs:
            history = self._histories[key, left_key]
            there = moments(history, begin, until)
            rows = [as_of(history, at) for at in there]
            for number, (at, row) in enumerate(zip(there, rows, strict=True)):
                last = number + 1 == len(there)
                if row is not None:
                    ends = last or rows[number + 1] is None
                    self._answer(left_key, row, right, (at, until if last else there[number + 1], ends))

    def _begin(self, time: int) -> int:
        assert self._context.clock is not None
        return max(time, self._context.clock.asked(self._node) - self._retention)

    def _right(self, key: Row, at: int) -> tuple[Row, int] | None:
        try:
            found = self._get(key, at)
        except NodeFailure as failure:
            self._context.failed(failure, self._name)
            return None
        return None if isinstance(found, Missed) else (key + found[0], found[1])

    def _answer(self, left_key: Row, left: _Left, right: tuple[Row, int] | None, part: tuple[int, int, bool]) -> None:
        row, since = (None, None) if right is None else right
        result = None
        if right is not None or self._left:
            try:
                result = self._values(left_key + left.columns, row, left.since, since)
            except NodeFailure as failure:
                self._context.failed(failure)
        self._send(left_key, result, part)

    def _send(self, left_key: Row, result: Row | None, part: tuple[int, int, bool]) -> None:
        begin, until, ends = part
        shown = (None,) * self._columns if result is None else result
        self._forward(left_key, (*shown, result is not None, until, ends), begin)


class CompleteAnswers:
    """The table of a join by a foreign key: it puts answers that follow each other together."""

    def __init__(self, sending: Sending) -> None:
        self._sending = sending
        self._pieces: list[Piece] = []

    def process(self, key: Row, value: Row | None, time: int) -> None:
        """Takes an answer."""
        assert value is not None
        *row, there, until, ends = value
        assert isinstance(until, int)
        if until > self._sending.earliest:
            self._pieces.append((max(time, self._sending.earliest), tuple(row) if there else None))
        if ends and self._pieces:
            pieces, self._pieces = self._pieces, []
            self._sending.send(key, pieces, until)
