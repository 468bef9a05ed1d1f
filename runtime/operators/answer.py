"""Second step of a foreign-key join, in the right table's partition: answers subscriptions and the right's changes.

A subscription is answered with the right's newest row, at the higher time of both; a change of the right table answers
all subscriptions to its key, in the order of their left keys, at its own time, even if that is an older one.
"""

from __future__ import annotations

from vsc.plan.nodes import Schema
from vsc.runtime.metrics import Dropped, Missed
from vsc.runtime.operators.context import Context, NodeFailure
from vsc.runtime.operators.evaluate import Row, Values
from vsc.runtime.operators.getters import Getter
from vsc.runtime.operators.put import RecordConsumer
from vsc.runtime.operators.subscribe import Instruction
from vsc.runtime.state.keys import KeyCodec
from vsc.runtime.state.rows import RowCodec
from vsc.runtime.state.subscriptions import Subscription, SubscriptionStore

__all__ = ["Answer"]

_Timed = tuple[Row, int] | None


class Answer:
    """`left`: of a left join; `versioned`: the right table's status; `schema`: the left row's, as it travels."""

    __slots__ = (
        "_context", "_forward", "_get", "_key_width", "_keys", "_left", "_name", "_rows", "_store", "_values",
        "_versioned",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        left: bool,
        versioned: bool,
        schema: Schema,
        values: Values,
        get: Getter,
        store: SubscriptionStore,
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
        self._forward = forward

    def subscription(self, kb: bytes, key: Row, value: Row | None, time: int) -> None:
        """Takes a record of the join's `Subscribe`."""
        assert value is not None
        left_key, columns, instruction = value[: self._key_width], value[self._key_width : -1], value[-1]
        match Instruction(instruction):
            case Instruction.DELETE:
                self._store.delete(kb, self._keys.encode(left_key))
            case Instruction.DELETE_AND_ANSWER:
                self._store.delete(kb, self._keys.encode(left_key))
                right = self._right(kb, key)
                self._forward(b"", left_key, None, time if right is None else max(time, right[1]))
            case Instruction.GONE:
                self._forward(b"", left_key, None, time)
            case Instruction.ALONE:
                self._answer(left_key, (left_key + columns, time), None, time)
            case kept:
                encoded = self._keys.encode(left_key)
                self._store.put(kb, Subscription(encoded, self._rows.encode(columns), time))
                right = self._right(kb, key)
                if right is not None or kept is Instruction.KEEP:
                    at = time if right is None else max(time, right[1])
                    self._answer(left_key, (left_key + columns, time), right, at)

    def change(self, kb: bytes, key: Row, new: Row | None, old: Row | None, latest: bool, time: int) -> None:
        """Takes a change of the right table."""
        if self._versioned and not latest:
            self._context.dropped(self._name, Dropped.OUT_OF_ORDER)
            return
        right = None if new is None else (key + new, time)
        for encoded, row, subscribed in self._store.of(kb):
            left_key = self._keys.decode(encoded)
            self._answer(left_key, (left_key + self._rows.decode(row), subscribed), right, time)

    def _right(self, kb: bytes, key: Row) -> _Timed:
        """The right table's newest row; None where there is none or, counted, where it cannot be computed."""
        try:
            found = self._get(kb, key, None)
        except NodeFailure as failure:
            self._context.failed(failure)
            return None
        return None if isinstance(found, Missed) else (key + found[0], found[1])

    def _answer(self, left_key: Row, left: tuple[Row, int], right: _Timed, time: int) -> None:
        if right is None and not self._left:
            self._forward(b"", left_key, None, time)
            return
        row, at = (None, None) if right is None else right
        try:
            result = self._values(left[0], row, left[1], at)
        except NodeFailure as failure:
            self._context.failed(failure)
            return
        self._forward(b"", left_key, result, time)
