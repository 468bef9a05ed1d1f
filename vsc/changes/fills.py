"""How a new operator learns of the rows that a table holds already.

An aggregate of a table, and a foreign-key join of its left table, need every row to have come by. Where nothing that
keeps rows of its own lies between the two, an upgrade can hand them over: the rows, as changes from nothing, take the
way that changes take, to the new operator alone.
"""

from __future__ import annotations

from collections.abc import Callable

from vsc.plan import Node, Plan
from vsc.plan.record import record

__all__ = ["Fill", "fill_of"]


@record
class Fill:
    """The rows of `table` reach the operator through `through`, inputs first; the last one moves them to it."""

    table: Node
    through: tuple[Node, ...]


def fill_of(plan: Plan, node: Node, keeps: Callable[[Node], bool]) -> Fill | None:
    """How `node`, which needs all rows of a table, gets those of the first table behind it that `keeps` its rows.

    None if it needs none, or cannot have them.
    """
    if not node.operation.of_all_rows:
        return None
    through: list[Node] = []
    at = plan.node(node.inputs[0])
    while not through or (not keeps(at) and at.operation.row_by_row and at.kind == "table" and at.store is None):
        through.append(at)
        at = plan.node(at.inputs[0])
    # What such a table tells its readers of the rows before is not what it keeps.
    usable = keeps(at) and not at.operation.old_of_inputs
    return Fill(at, tuple(reversed(through))) if usable else None
