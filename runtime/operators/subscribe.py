"""First step of a foreign-key join: what a change of the left table means for the right one's partition.

The rules are those of Kafka Streams 4.3.1 (with KAFKA-16394, 16407, 16434 and 18713 in): a left change gives at most
one result. The left row travels with its subscription, so that the right table's partition can compute results alone.
"""

from __future__ import annotations

from decimal import Decimal
from enum import IntEnum

from vsc.plan.nodes import Answer, Node, Plan
from vsc.plan.types import DataType, DecimalType, ScalarType, StructType
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.context import Context, NodeFailure
from vsc.runtime.operators.evaluate import Row, Values
from vsc.runtime.operators.put import RecordConsumer
from vsc.runtime.state.keys import KeyCodec

__all__ = ["UNCHANGED", "Instruction", "Subscribe", "no_key", "travelling"]


class Instruction(IntEnum):
    """What the right table's partition does with a subscription."""

    DELETE = 0
    """Forget it."""
    DELETE_AND_ANSWER = 1
    """Forget it, and answer that there is no result."""
    KEEP_IF_VALUE = 2
    """Keep it, and answer if the right row is there."""
    KEEP = 3
    """Keep it, and answer, with the right row or without a result, as the join's kind says."""
    ALONE = 4
    """The left row refers to nothing: answer with it alone, and keep nothing."""
    GONE = 5
    """The left row is gone and refers to nothing: answer that there is no result, and keep nothing."""


UNCHANGED = 8
"""Added to an instruction where the left row is what it was before: answers on the way to it stay valid."""


def travelling(plan: Plan, node: Node) -> tuple[int, ...]:
    """The places of the left table's value columns that travel with the subscriptions that `node` sends.

    They stand, under other names perhaps, in the step that reads the subscriptions.
    """
    table = plan.node(node.inputs[0]).schema
    reading = next(n.operation for n in plan.nodes if node.name in n.inputs and isinstance(n.operation, Answer))
    names = [c.name for c in table.value]
    return tuple(names.index(c.name) for c in reading.left_schema.value)


def no_key(types: tuple[DataType, ...]) -> Row:
    """A key for records that have none and need none: they have to be in some partition."""
    return tuple(_nothing(t) for t in types)


def _nothing(data_type: DataType) -> object:
    if isinstance(data_type, StructType):
        return tuple(None for _ in data_type.fields)
    if isinstance(data_type, DecimalType):
        return Decimal(0).scaleb(-data_type.scale)
    assert isinstance(data_type, ScalarType)
    return {"string": "", "binary": b"", "boolean": False}.get(data_type.name, 0)


class Subscribe:
    """Takes the changes of the left table. `columns` are the places of the value columns that travel.

    `versioned`: the left table's status: then a change that is not its key's newest is dropped and counted. A row whose
    foreign key cannot be computed is dropped, and as good as gone.
    """

    __slots__ = ("_columns", "_context", "_foreign", "_forward", "_keys", "_left", "_name", "_none", "_versioned")

    def __init__(
        self,
        name: str,
        foreign_key: Values,
        keys: KeyCodec,
        left: bool,
        versioned: bool,
        columns: tuple[int, ...],
        context: Context,
        forward: RecordConsumer,
    ) -> None:
        self._name = name
        self._foreign = foreign_key
        self._keys = keys
        self._none = no_key(keys.types)
        self._left = left
        self._versioned = versioned
        self._columns = columns
        self._context = context
        self._forward = forward

    def process(self, kb: bytes, key: Row, new: Row | None, old: Row | None, latest: bool, time: int) -> None:
        """Takes a table's change."""
        if self._versioned and not latest:
            self._context.dropped(self._name, Dropped.OUT_OF_ORDER)
            return
        try:
            now = self._key_of(key, new, time)
        except NodeFailure as failure:
            self._context.failed(failure)
            now, new = None, None
        try:
            before = self._key_of(key, old, time)
        except NodeFailure:
            before = None  # it failed, and was dealt with, when it was the new row
        send = self._left_join if self._left else self._inner_join
        send(key, new, now, old, before, time)

    def _inner_join(
        self, key: Row, new: Row | None, now: Row | None, old: Row | None, before: Row | None, time: int
    ) -> None:
        if now is None:
            if before is not None:
                self._send(before, key, None, Instruction.DELETE_AND_ANSWER, time)
        elif before is not None and not self._same(before, now):
            self._send(before, key, None, Instruction.DELETE, time)
            self._send(now, key, new, Instruction.KEEP, time)
        else:
            self._send(now, key, new, Instruction.KEEP_IF_VALUE | self._unchanged(new, old), time)

    def _left_join(
        self, key: Row, new: Row | None, now: Row | None, old: Row | None, before: Row | None, time: int
    ) -> None:
        if new is None and old is None:
            return
        if before is not None and (now is None or not self._same(before, now)):
            self._send(before, key, None, Instruction.DELETE, time)
        if now is not None:
            self._send(now, key, new, Instruction.KEEP | self._unchanged(new, old), time)
        else:
            self._send(self._none, key, new, Instruction.GONE if new is None else Instruction.ALONE, time)

    def _key_of(self, key: Row, row: Row | None, time: int) -> Row | None:
        """The foreign key of a row; None without a row, or with a null in the key."""
        if row is None:
            return None
        found = self._foreign(key + row, None, time, None)
        return None if None in found else found

    def _same(self, one: Row, other: Row) -> bool:
        return self._keys.encode(one) == self._keys.encode(other)

    @staticmethod
    def _unchanged(new: Row | None, old: Row | None) -> int:
        return UNCHANGED if new == old else 0

    def _send(self, foreign_key: Row, key: Row, row: Row | None, instruction: int, time: int) -> None:
        columns = [None if row is None else row[i] for i in self._columns]
        self._forward(b"", foreign_key, (*key, *columns, int(instruction)), time)
