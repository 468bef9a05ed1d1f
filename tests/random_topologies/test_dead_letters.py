"""Random topologies with sinks of lost records: what is counted is what is written, and nothing else changes."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.oracle import shipped
from tests.random_topologies.case import Case
from tests.random_topologies.seeds import seeds
from vsc.compiler import compile_topology
from vsc.runtime.metrics import Group
from vsc.runtime.records import Batch

pytestmark = pytest.mark.long

SINKS = "sink dropped to memory ();\nsink missed to memory ();\n"


def rows(batches: list[Batch]) -> list[dict[str, Any]]:
    found = []
    for batch in batches:
        columns = [column.to_pylist() for column in batch.values]
        found += [
            dict(zip((c.name for c in batch.schema.value), row, strict=True)) for row in zip(*columns, strict=True)
        ]
    return found


@pytest.mark.quick(2)
@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 12))
def test_counts_and_rows_agree(seed: int) -> None:
    case = Case.of(seed)
    plan = compile_topology(case.topology.text() + SINKS, path=f"{seed}.vdsl")
    alone = case.shipped(case.epochs)
    found = shipped(
        plan, case.epochs, (*case.topology.sinks, "dropped", "missed"), case.partitions, case.on_error, case.restarts
    )
    assert found.metrics == alone.metrics
    assert {name: found.outcome.get(name) for name in alone.outcome} == alone.outcome
    for node, group in (("dropped", Group.DROPPED_RECORDS), ("missed", Group.MISSED_LOOKUPS)):
        letters = rows(found.batches.get(node, []))
        counted = {(of, why): n for of, reasons in alone.metrics[group.value].items() for why, n in reasons.items()}
        assert Counter((row["node"], row["reason"]) for row in letters) == counted
        for row in letters:
            assert all(text is None or isinstance(json.loads(text), dict) for text in (row["key"], row["value"]))
            assert row["position"] is None or row["source"] is not None
