"""What waits in a stage for stream time to go on: which nodes hold something back, and how much."""

from __future__ import annotations

from vsc.plan.nodes import Aggregate, Node, Operation, Stage, StreamTableJoin, Suppress
from vsc.runtime.operators.aggregate.calls import Calls
from vsc.runtime.operators.aggregate.state import open_aggregate
from vsc.runtime.operators.stores import open_buffer, store_prefix
from vsc.runtime.state.kv import OrderedKV
from vsc.runtime.state.suppressed import Suppressed

__all__ = ["held_back", "holds_back"]


def holds_back(operation: Operation) -> bool:
    """Whether something may wait in a node."""
    match operation:
        case StreamTableJoin(grace=grace):
            return grace is not None
        case Aggregate(final=final):
            return final
        case Suppress():
            return True
        case _:
            return False


def held_back(kv: OrderedKV, stage: Stage, node: Node) -> int:
    """How many records, windows without final result or suppressed rows wait in `node`."""
    match node.operation:
        case StreamTableJoin():
            return len(open_buffer(kv, stage, node.name))
        case Aggregate() as aggregate:
            return open_aggregate(kv, stage, node, Calls(node, aggregate).numbered).open
        case Suppress():
            return Suppressed(kv, store_prefix(stage, node.name) + b"s").count
        case _:
            raise ValueError(f"nothing waits in node '{node.name}'")
