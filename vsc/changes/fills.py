"""How a new operator gets the rows that a table already holds.

An aggregate must have seen every row of its table, and a foreign-key join every row of its left table. If nothing
between the table and the operator keeps rows of its own, an upgrade can hand the rows over: each one takes the path
that a change takes, as a new row, but only to the new operator.
"""

from __future__ import annotations

from collections.abc import Callable

from vsc.plan import Node, Plan
from vsc.plan.record import record

__all__ = ["Fill", "fill_of"]


@record
class Fill:
    """The rows of `table` reach the operator through these nodes, inputs first; the last one moves them to it."""

    table: Node
    through: tuple[Node, ...]


def fill_of(plan: Plan, node: Node, keeps: Callable[[Node], bool]) -> Fill | None:
    """How `node`, if it needs all rows of a table, gets them from the first table upstream that `keeps` its rows.

    None if it does not need them, or cannot have them.
    """
    if not node.operation.of_all_rows:
        return None
    through: list[Node] = []
    at = plan.node(node.inputs[0])
    while not through or (not keeps(at) and at.operation.row_by_row and at.kind == "table" and at.store is None):
        through.append(at)
        at = plan.node(at.inputs[0])
    return Fill(at, tuple(reversed(through))) if keeps(at) else None
