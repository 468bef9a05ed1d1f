"""Which tables hold results: rows that are computed from several others (D33)."""

from __future__ import annotations

from vsc.plan.nodes import Plan
from vsc.plan.operations import ExplodeChanges, Materialize, ToTable

__all__ = ["shows_results"]


def shows_results(plan: Plan, name: str) -> bool:
    """Whether the rows of table `name` are results of a join of tables, an aggregate or an `explode`, or computed from
    such row by row: of a versioned one, each is its key's newest when it comes (D33).

    Not those of a foreign-key join by the clock of records, nor what is computed from them: what Kafka Streams makes of
    them is recorded.
    """
    node = plan.node(name)
    while not node.operation.results or node.complete:
        if isinstance(node.operation, ToTable) and plan.clock == "records":
            return isinstance(plan.node(node.inputs[0]).operation, ExplodeChanges)
        if node.complete:  # these have times of their own
            return False
        if not (node.operation.row_by_row or isinstance(node.operation, Materialize | ToTable)):
            return False
        node = plan.node(node.inputs[0])
        if node.kind == "stream" and not node.operation.results:  # such as the answers of a foreign-key join
            return False
    return True
