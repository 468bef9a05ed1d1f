"""Another reader of a table changes nothing: neither what comes out elsewhere, nor what is counted.

A reader may give a table a store, ask for its rows before changes, or for which changes are the newest.
"""

from __future__ import annotations

import pytest

from tests.oracle import shipped
from tests.random_topologies.case import Case
from tests.random_topologies.seeds import seeds
from tests.random_topologies.test_counted import last_rows
from vsc.compiler import compile_topology


@pytest.mark.quick(2)
@pytest.mark.long
@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 20))
def test_an_aggregate_of_every_table_changes_nothing_else(seed: int) -> None:
    case = Case.of(seed)
    nodes = {node.name: node for node in case.plan.nodes if node.name == node.owner and not node.operation.global_}
    text = [case.topology.text()]
    for name, node in nodes.items():
        if node.status is not None:
            text.append(f"table more_{name} = aggregate {name} group by 1 as one select count(*) as n;")
            text.append(f"sink more_{name} to memory ();")
    more = compile_topology("\n".join(text), path=f"{seed}.vdsl")
    alone, read = (
        shipped(plan, case.epochs, nodes, 1, "drop", case.restarts, clock="input") for plan in (case.plan, more)
    )
    for name, node in nodes.items():
        if node.status is not None and not node.status.versioned:  # a deletion of nothing may come or not (D7)
            assert last_rows(read, name) == last_rows(alone, name), name
        else:
            assert read.outcome.get(name) == alone.outcome.get(name), name
    for group in ("dropped_records", "missed_lookups"):
        counted = {node: found for node, found in read.metrics[group].items() if not node.startswith("more_")}
        assert counted == alone.metrics[group]
