"""Second step of a foreign-key join, in the right table's partition: answers subscriptions and the right's changes.

A subscription is answered with the right's newest row, at the higher time of both; a change of the right table answers
all subscriptions to its key, in the order of their left keys, at its own time, even if that is an older one.
"""

from __future__ import annotations

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.expressions import NodeFailure, Row, Values
from tests.oracle.records.foreign_keys import UNCHANGED, Instruction
from tests.oracle.records.getters import Getter
from tests.oracle.records.order import rows_in_order
from tests.oracle.records.tables import Content
from vsc.plan.nodes import Schema
from vsc.runtime.metrics import Dropped, Missed

__all__ = ["Answer"]

_Timed = tuple[Row, int] | None


class _Held:
    """The answers that one source record has caused so far. `send` emits them as if they were given at once.

    Kafka compares an answer with the left row when it arrives, and ignores it if that is another one by then. Where one
    record changes both tables (a table that is joined with itself), the left row has always changed by then: so an
    answer waits here until all is known that the record causes, and is `forget`-ed where its row has changed.
    """

    __slots__ = ("_answers", "_context", "_forward", "_of_row", "_root")

    def __init__(self, context: Context, forward: RecordConsumer) -> None:
        self._context = context
        self._forward = forward
        self._root: tuple[int, int, int] | None = None
        self._answers: list[tuple[int, int, Row, Row | None, int] | None] = []
        self._of_row: dict[tuple[Row, Row], list[int]] = {}

    def begin(self) -> None:
        """A record is going to be processed: if another source record is behind it, what is held goes out."""
        order, cause = self._context.order, self._context.cause
        root = (int(order.time[cause]), int(order.origin[cause]), int(order.offset[cause]))
        if root != self._root:
            self.send()
            self._root = root

    def add(self, foreign_key: Row, left_key: Row, value: Row | None, time: int) -> None:
        """Holds an answer, at its place among what the stage hands out."""
        context = self._context
        context.counter += 1
        self._of_row.setdefault((foreign_key, left_key), []).append(len(self._answers))
        self._answers.append((context.cause, context.counter, left_key, value, time))

    def forget(self, foreign_key: Row, left_key: Row) -> None:
        """The left row has changed: its answers so far are void."""
        for place in self._of_row.pop((foreign_key, left_key), ()):
            self._answers[place] = None

    def send(self) -> None:
        """Lets all out."""
        if not self._answers:
            return
        context = self._context
        now = context.cause, context.counter
        for answer in self._answers:
            if answer is not None:
                context.cause, context.counter = answer[0], answer[1] - 1
                self._forward(*answer[2:])
        context.cause, context.counter = now
        self._answers = []
        self._of_row = {}


class Answer:
    """`left`: of a left join; `versioned`: the right table's status; `schema`: the left row's, as it travels.

    A subscription is (right key, left key): (the left row's columns that travel, its time).

    `finish` has to be called behind the last record of a batch.
    """

    def __init__(
        self,
        name: str,
        left: bool,
        versioned: bool,
        schema: Schema,
        right: Schema,
        values: Values,
        get: Getter,
        context: Context,
        forward: RecordConsumer,
    ) -> None:
        self._name = name
        self._left = left
        self._versioned = versioned
        self._key_width = len(schema.key)
        self._left_order, self._right_order = (rows_in_order([c.type for c in s.key]) for s in (schema, right))
        self._subscriptions: dict[tuple[Row, Row], tuple[Row, int]] = {}
        self._values = values
        self._get = get
        self._context = context
        self._held = _Held(context, forward)
        self.finish = self._held.send

    def subscription(self, key: Row, value: Row | None, time: int) -> None:
        """Takes a record of the join's `Subscribe`."""
        assert value is not None
        left_key, columns, number = value[: self._key_width], value[self._key_width : -1], value[-1]
        self._held.begin()
        if not number & UNCHANGED:
            self._held.forget(key, left_key)
        left = (left_key + columns, time)
        match Instruction(number & ~UNCHANGED):
            case Instruction.DELETE:
                self._subscriptions.pop((key, left_key), None)
            case Instruction.DELETE_AND_ANSWER:
                self._subscriptions.pop((key, left_key), None)
                right = self._right(key)
                self._held.add(key, left_key, None, time if right is None else max(time, right[1]))
            case Instruction.GONE:
                self._held.add(key, left_key, None, time)
            case Instruction.ALONE:
                self._answer(key, left_key, left, None, time)
            case kept:
                self._subscriptions[key, left_key] = columns, time
                right = self._right(key)
                if right is not None or kept is Instruction.KEEP:
                    at = time if right is None else max(time, right[1])
                    self._answer(key, left_key, left, right, at)

    def change(self, key: Row, new: Row | None, old: Row | None, latest: bool, time: int) -> None:
        """Takes a change of the right table."""
        if self._versioned and not latest:
            self._context.dropped(self._name, Dropped.OUT_OF_ORDER)
            return
        self._held.begin()
        right = None if new is None else (key + new, time)
        for foreign_key, left_key, (columns, subscribed) in self._in_order():
            if foreign_key == key:
                self._answer(key, left_key, (left_key + columns, subscribed), right, time)

    def content(self) -> Content:
        """The subscriptions: (right key, left key and columns, time)."""
        return None, 0, [(key, left + columns, time) for key, left, (columns, time) in self._in_order()]

    def _in_order(self) -> list[tuple[Row, Row, tuple[Row, int]]]:
        found = [(*keys, subscription) for keys, subscription in self._subscriptions.items()]
        return sorted(found, key=lambda one: (self._right_order(one[0]), self._left_order(one[1])))

    def _right(self, key: Row) -> _Timed:
        """The right table's newest row; None where there is none or, counted, where it cannot be computed."""
        try:
            found = self._get(key, None)
        except NodeFailure as failure:
            self._context.failed(failure, self._name)
            return None
        return None if isinstance(found, Missed) else (key + found[0], found[1])

    def _answer(self, key: Row, left_key: Row, left: tuple[Row, int], right: _Timed, time: int) -> None:
        if right is None and not self._left:
            self._held.add(key, left_key, None, time)
            return
        row, at = (None, None) if right is None else right
        try:
            result = self._values(left[0], row, left[1], at)
        except NodeFailure as failure:
            self._context.failed(failure)
            return
        self._held.add(key, left_key, result, time)
