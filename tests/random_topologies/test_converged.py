"""A table that is computed from tables ends as if its sources had never had any but their last rows.

Changes, deletions, rows that travel to another key and back: whatever happened on the way, the joins and aggregates of
what is there now are what is left. Like `test_counted`, this has no rules of operators of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.oracle import Played, shipped
from tests.oracle.epochs import EpochRow
from tests.random_topologies.case import Case
from tests.random_topologies.seeds import seeds
from tests.random_topologies.test_counted import by_row, last_rows
from vsc.plan.nodes import Aggregate, Node, Plan, Source

EXACT = {"count", "sum", "min", "max", "bool_and", "bool_or"}
OF_THE_WAY = {"suppress", "to_stream", "to_table", "stream_table_join"}
"""What depends on how its input came about."""


@pytest.mark.quick(2)
@pytest.mark.long
@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 20))
def test_a_table_ends_as_the_last_rows_of_its_sources_make_it(seed: int) -> None:
    case = Case.of(seed)
    plan, tables = case.plan, lasting(case.plan)
    observed = [node.name for node in plan.nodes if node.name in tables and node.name == node.owner]
    played = shipped(plan, case.epochs, observed, case.partitions, "drop", case.restarts, clock="input")
    if any("expression_failed" in reasons for reasons in played.metrics["dropped_records"].values()):
        pytest.skip("a table with a store keeps the row from before a failure")
    rows = [row for node in plan.nodes if node.name in observed for row in _as_read(played, node)]
    again = shipped(plan, [rows], observed, clock="input")
    for name in observed:
        assert last_rows(played, name) == last_rows(again, name), name


def lasting(plan: Plan) -> set[str]:
    """The tables that the last rows of their sources decide, in whatever order they come."""
    found: set[str] = set()
    for node in plan.nodes:
        if isinstance(node.operation, Source):
            sure = node.kind == "table"
        else:
            sure = all(read in found for read in node.inputs) and (_lasts(node) or _is_exploded(plan, node))
        if sure and (node.store is None or node.store.expire is None):
            found.add(node.name)
    return found


def _is_exploded(plan: Plan, node: Node) -> bool:
    """Whether it is the `explode` of a table, whose changes take back what is gone."""
    unversioned = node.status is None or not node.status.versioned
    return unversioned and any(plan.node(name).operation.op == "explode_changes" for name in node.inputs)


def _lasts(node: Node) -> bool:
    operation = node.operation
    if operation.op in OF_THE_WAY or "event_time" in repr(operation) or (node.status and node.status.versioned):
        return False
    if not isinstance(operation, Aggregate):
        return True
    calls = operation.calls
    return operation.window is None and all(c.function in EXACT and "double" not in str(c.type) for c in calls)


def _as_read(played: Played, node: Node) -> Iterator[EpochRow]:
    """The last rows of a source, as rows to read."""
    if not isinstance(node.operation, Source):
        return
    names = [column.name for column in (*node.schema.key, *node.schema.value)]
    last: dict[str, EpochRow] = {}
    for batch in played.batches.get(node.name, ()):
        rows = by_row(batch, (*batch.keys, *batch.values))
        for number, (key, row) in enumerate(zip(by_row(batch, batch.keys), rows, strict=True)):
            if batch.latest is not None and not batch.latest[number]:
                continue
            last.pop(str(key), None)
            if batch.present[number]:
                values = dict(zip(names, row, strict=True))
                last[str(key)] = EpochRow(node.name, "f00", len(last), values, int(batch.timestamps[number]))
    yield from (row._replace(offset=number) for number, row in enumerate(last.values()))
