"""First step of a foreign-key join: what a change of the left table sends to the right table's partition.

The rules are those of Kafka Streams 4.3.1 (including KAFKA-16394, 16407, 16434 and 18713): a left change gives at most
one result. The left row travels with its subscription, so the right table's partition can compute results alone.
"""

from __future__ import annotations

from decimal import Decimal
from enum import IntEnum

from vsc.plan.nodes import Answer, Node, Plan
from vsc.plan.types import DataType, DecimalType, ScalarType, StructType
from vsc.runtime.operators.evaluate import Row

__all__ = ["UNCHANGED", "Instruction", "no_key", "travelling"]


class Instruction(IntEnum):
    """What the right table's partition does with a subscription."""

    DELETE = 0
    """Forget it."""
    DELETE_AND_ANSWER = 1
    """Forget it, and answer without a result."""
    KEEP_IF_VALUE = 2
    """Keep it, and answer if the right row exists."""
    KEEP = 3
    """Keep it, and always answer: with the right row, or without it as the join's kind says."""
    ALONE = 4
    """The left row refers to nothing: answer with it alone, and keep nothing."""
    GONE = 5
    """The left row is gone and referred to nothing: answer without a result, and keep nothing."""


UNCHANGED = 8
"""Added to an instruction if the left row has not changed: answers on their way to it stay valid."""


def travelling(plan: Plan, node: Node) -> tuple[int, ...]:
    """The places of the left table's value columns that travel with the subscriptions that `node` sends.

    The step that reads the subscriptions has them too, perhaps under other names.
    """
    table = plan.node(node.inputs[0]).schema
    reading = next(n.operation for n in plan.nodes if node.name in n.inputs and isinstance(n.operation, Answer))
    names = [c.name for c in table.value]
    return tuple(names.index(c.name) for c in reading.left_schema.value)


def no_key(types: tuple[DataType, ...]) -> Row:
    """A key for records that have and need no key, but must be in some partition."""
    return tuple(_nothing(t) for t in types)


def _nothing(data_type: DataType) -> object:
    if isinstance(data_type, StructType):
        return tuple(None for _ in data_type.fields)
    if isinstance(data_type, DecimalType):
        return Decimal(0).scaleb(-data_type.scale)
    assert isinstance(data_type, ScalarType)
    return {"string": "", "binary": b"", "boolean": False}.get(data_type.name, 0)
