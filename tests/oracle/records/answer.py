"""Second step of a foreign-key join, in the right table's partition: answers subscriptions and the right's changes.

A subscription is answered with the right's newest row, at the higher time of both; a change of the right table answers
all subscriptions to its key, in the order of their left keys, at its own time, even if that is an older one.
"""

from __future__ import annotations

from tests.oracle.records.consumer import RecordConsumer
from tests.oracle.records.context import Context
from tests.oracle.records.getters import Getter
from tests.oracle.records.tables import RecordSubscriptions
from vsc.plan.nodes import Schema
from vsc.runtime.metrics import Dropped, Missed
from vsc.runtime.operators.context import NodeFailure
from vsc.runtime.operators.evaluate import Row, Values
from vsc.runtime.operators.foreign_key_join import UNCHANGED, Instruction
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.state.timed_rows import Subscription

__all__ = ["Answer"]

_Timed = tuple[Row, int] | None


class _Held:
    """The answers that one source record has given rise to so far. `send` lets them out as if they were given at once.

    Kafka compares an answer with the left row when it arrives, and ignores it if that is another one by then. Where one
    record changes both tables (a table that is joined with itself), the left row has always changed by then: so an
    answer waits here until all is known that the record gives rise to, and is `forget`-ed where its row has changed.
    """

    __slots__ = ("_answers", "_context", "_forward", "_of_row", "_root")

    def __init__(self, context: Context, forward: RecordConsumer) -> None:
        self._context = context
        self._forward = forward
        self._root: tuple[int, int, int] | None = None
        self._answers: list[tuple[int, int, Row, Row | None, int] | None] = []
        self._of_row: dict[tuple[bytes, bytes], list[int]] = {}

    def begin(self) -> None:
        """A record is going to be processed: if another source record is behind it, what is held goes out."""
        order, cause = self._context.order, self._context.cause
        root = (int(order.time[cause]), int(order.origin[cause]), int(order.offset[cause]))
        if root != self._root:
            self.send()
            self._root = root

    def add(self, foreign_key: bytes, left_key: bytes, key: Row, value: Row | None, time: int) -> None:
        """Holds an answer, at its place among what the stage hands out."""
        context = self._context
        context.counter += 1
        self._of_row.setdefault((foreign_key, left_key), []).append(len(self._answers))
        self._answers.append((context.cause, context.counter, key, value, time))

    def forget(self, foreign_key: bytes, left_key: bytes) -> None:
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
                self._forward(b"", *answer[2:])
        context.cause, context.counter = now
        self._answers = []
        self._of_row = {}


class Answer:
    """`left`: of a left join; `versioned`: the right table's status; `schema`: the left row's, as it travels.

    `finish` has to be called behind the last record of a batch.
    """

    __slots__ = ("_context", "_get", "_held", "_key_width", "_keys", "_left", "_name", "_rows", "_store", "_values",
                 "_versioned", "finish")  # fmt: skip

    def __init__(
        self,
        name: str,
        left: bool,
        versioned: bool,
        schema: Schema,
        values: Values,
        get: Getter,
        store: RecordSubscriptions,
        context: Context,
        forward: RecordConsumer,
    ) -> None:
        self._name = name
        self._left = left
        self._versioned = versioned
        self._key_width = len(schema.key)
        self._keys = KeyCodec([c.type for c in schema.key])
        self._rows = RowCodec([c.type for c in schema.value])
        self._values = values
        self._get = get
        self._store = store
        self._context = context
        self._held = _Held(context, forward)
        self.finish = self._held.send

    def subscription(self, kb: bytes, key: Row, value: Row | None, time: int) -> None:
        """Takes a record of the join's `Subscribe`."""
        assert value is not None
        left_key, columns, number = value[: self._key_width], value[self._key_width : -1], value[-1]
        encoded = self._keys.encode(left_key)
        self._held.begin()
        if not number & UNCHANGED:
            self._held.forget(kb, encoded)
        left = (left_key + columns, time)
        match Instruction(number & ~UNCHANGED):
            case Instruction.DELETE:
                self._store.delete(kb, encoded)
            case Instruction.DELETE_AND_ANSWER:
                self._store.delete(kb, encoded)
                right = self._right(kb, key)
                self._held.add(kb, encoded, left_key, None, time if right is None else max(time, right[1]))
            case Instruction.GONE:
                self._held.add(kb, encoded, left_key, None, time)
            case Instruction.ALONE:
                self._answer(kb, encoded, left_key, left, None, time)
            case kept:
                self._store.put(kb, Subscription(encoded, self._rows.encode(columns), time))
                right = self._right(kb, key)
                if right is not None or kept is Instruction.KEEP:
                    at = time if right is None else max(time, right[1])
                    self._answer(kb, encoded, left_key, left, right, at)

    def change(self, kb: bytes, key: Row, new: Row | None, old: Row | None, latest: bool, time: int) -> None:
        """Takes a change of the right table."""
        if self._versioned and not latest:
            self._context.dropped(self._name, Dropped.OUT_OF_ORDER)
            return
        self._held.begin()
        right = None if new is None else (key + new, time)
        for encoded, row, subscribed in self._store.of(kb):
            left_key = self._keys.decode(encoded)
            left = (left_key + self._rows.decode(row), subscribed)
            self._answer(kb, encoded, left_key, left, right, time)

    def _right(self, kb: bytes, key: Row) -> _Timed:
        """The right table's newest row; None where there is none or, counted, where it cannot be computed."""
        try:
            found = self._get(kb, key, None)
        except NodeFailure as failure:
            self._context.failed(failure)
            return None
        return None if isinstance(found, Missed) else (key + found[0], found[1])

    def _answer(
        self, kb: bytes, encoded: bytes, left_key: Row, left: tuple[Row, int], right: _Timed, time: int
    ) -> None:
        if right is None and not self._left:
            self._held.add(kb, encoded, left_key, None, time)
            return
        row, at = (None, None) if right is None else right
        try:
            result = self._values(left[0], row, left[1], at)
        except NodeFailure as failure:
            self._context.failed(failure)
            return
        self._held.add(kb, encoded, left_key, result, time)
