"""What the two steps of a foreign-key join say to each other.

The numbers are those that are shipped, for the records between the two steps are compared as well.
"""

from __future__ import annotations

from decimal import Decimal
from enum import IntEnum

from tests.oracle.records.expressions import Row
from vsc.plan.nodes import Answer, Node, Plan
from vsc.plan.types import DataType, DecimalType, ScalarType, StructType

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
    """The places of the left table's value columns that travel with the subscriptions of `node`."""
    names = [c.name for c in plan.node(node.inputs[0]).schema.value]
    for reader in plan.nodes:
        if node.name in reader.inputs and isinstance(reader.operation, Answer):
            return tuple(names.index(c.name) for c in reader.operation.left_schema.value)
    raise ValueError(f"nothing answers '{node.name}'")


def no_key(types: tuple[DataType, ...]) -> Row:
    """Some key, for records that have and need none."""
    return tuple(_nothing(t) for t in types)


def _nothing(data_type: DataType) -> object:
    match data_type:
        case StructType(fields):
            return tuple(None for _ in fields)
        case DecimalType():
            return Decimal(0).scaleb(-data_type.scale)
        case ScalarType("string"):
            return ""
        case ScalarType("binary"):
            return b""
        case ScalarType("boolean"):
            return False
    return 0
