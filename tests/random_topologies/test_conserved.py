"""No record goes without a count: what an operator is given comes out of it, or is counted under its name, once."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.oracle import shipped
from tests.random_topologies.case import Case
from tests.random_topologies.seeds import of_both_sizes
from vsc.plan.nodes import Materialize, Merge, Node, Source, StreamGlobalJoin, StreamTableJoin, ToStream
from vsc.runtime.metrics import Missed

ONE_FOR_ONE = {"map", "rekey", "distinct"}


@pytest.mark.quick(3)
@pytest.mark.long
@pytest.mark.parametrize(("large", "seed"), of_both_sizes("VSC_TOPOLOGIES", 20, 4))
def test_what_goes_in_comes_out_or_is_counted(seed: int, large: bool) -> None:
    case = Case.of(seed, large)
    nodes = {node.name: node for node in case.plan.nodes if node.name == node.owner and node.name[0] in "tsxy"}
    played = shipped(case.plan, case.epochs, nodes, case.partitions, "drop", case.restarts, clock="input")
    assert played.failure is None
    out = {name: sum(map(len, played.batches.get(name, ()))) for name in nodes}
    read = Counter(row.source for epoch in case.epochs for row in epoch)
    counts = {group: Counter(found) for group, found in _counted(played.metrics).items()}
    for name, node in nodes.items():
        expected = _given(case, node, read, out)
        if expected is not None:
            lost = counts["dropped_records"][name, None]
            lost += sum(counts["missed_lookups"][name, reason] for reason in _lost_when_missed(node))
            assert out[name] + lost == expected, (name, node.operation.op)


def _counted(metrics: dict[str, dict[str, dict[str, int]]]) -> dict[str, dict[tuple[str, str | None], int]]:
    """By group what was counted of each node: for each reason, and together."""
    found: dict[str, dict[tuple[str, str | None], int]] = {}
    for group in ("dropped_records", "missed_lookups"):
        found[group] = {}
        for node, reasons in metrics[group].items():
            found[group][node, None] = sum(reasons.values())
            found[group].update({(node, reason): count for reason, count in reasons.items()})
    return found


def _given(case: Case, node: Node, read: Counter[str], out: dict[str, int]) -> int | None:
    """How many records a node was given that it has to account for; None for one that makes more or fewer."""
    if node.store is not None and node.store.expire is not None:
        return None  # time makes records of it, too
    match node.operation:
        case Source():
            return read[node.name]
        case Merge():
            return sum(out[_named(case, name, out)] for name in node.inputs)
        case StreamTableJoin() | StreamGlobalJoin() | ToStream() | Materialize():
            return out[_named(case, node.inputs[0], out)]
        case operation if operation.op in ONE_FOR_ONE and node.kind == "stream":
            return out[_named(case, node.inputs[0], out)]
    return None


def _named(case: Case, name: str, out: dict[str, int]) -> str:
    """The nearest node of the text that a node is computed from."""
    while name not in out:
        (name,) = case.plan.node(name).inputs
    return name


def _lost_when_missed(node: Node) -> set[str]:
    """The reasons for which a join loses a record that finds nothing."""
    match node.operation:
        case StreamTableJoin(left=True, drop_older=drop_older):
            return {Missed.OLDER_THAN_RETENTION} if drop_older else set()
        case StreamTableJoin() | StreamGlobalJoin(left=False):
            return set(Missed)
    return set()
