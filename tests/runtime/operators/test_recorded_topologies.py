"""Topologies of all forms, cut into epochs and restarted at random: what comes out is what one row at a time gives."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.recordings import load, store_of
from tests.oracle import by_records
from tests.oracle.epochs import EpochRow, order_epoch
from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan, Source
from vsc.runtime.local import LocalRuntime
from vsc.runtime.operators.source.rows import SourceRows
from vsc.runtime.records import Batch, Origin
from vsc.runtime.state.kv import MemoryKV, OrderedKV
from vsc.runtime.values import to_array

pytestmark = pytest.mark.slow

RECORDED = sorted((Path(__file__).parents[2] / "conformance" / "recorded").glob("*.json"))


class Stores:
    """Keeps the state of every stage and partition, whoever opens it."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], OrderedKV] = {}

    def __call__(self, stage: int, partition: int) -> OrderedKV:
        return self._kept.setdefault((stage, partition), MemoryKV())


def epoch_rows(steps: list[dict[str, Any]]) -> list[EpochRow]:
    offsets: dict[str, int] = {}
    found = []
    for step in steps:
        offset = offsets[step["source"]] = offsets.get(step["source"], -1) + 1
        found.append(EpochRow(step["source"], "", offset, (step["key"], step["value"]), step["timestamp"]))
    return found


def chunks(plan: Plan, epoch: list[EpochRow]) -> list[tuple[str, SourceRows]]:
    parts: dict[str, list[EpochRow]] = {}
    for row in sorted(epoch, key=lambda r: r.offset):
        parts.setdefault(row.source, []).append(row)
    found = []
    for source, own in parts.items():
        operation = plan.node(source).operation
        assert isinstance(operation, Source)
        rows = [{**r.row[0], **(r.row[1] or {})} for r in own]
        columns = tuple(to_array([r.get(c.name) for r in rows], c.type) for c in operation.columns)
        deleted = np.array([r.row[1] is None for r in own])
        offsets, times = (np.array([getattr(r, name) for r in own]) for name in ("offset", "timestamp"))
        found.append((source, SourceRows(Origin(source, operation.rank, ""), columns, offsets, times, deleted)))
    return found


def collect(batches: dict[str, Batch], into: dict[str, list[Any]]) -> None:
    for name, batch in batches.items():
        columns = [c.to_pylist() for c in batch.columns]
        into.setdefault(name, []).extend(zip(*columns, batch.timestamps.tolist(), batch.present.tolist(), strict=True))


@pytest.mark.seam("any cut into epochs", first=20)
@pytest.mark.parametrize(("number", "partitions"), [(0, 1), (1, 3)])
@pytest.mark.parametrize("path", RECORDED, ids=[path.stem for path in RECORDED])
def test_cuts_and_restarts_do_not_show(path: Path, number: int, partitions: int) -> None:
    """Records, in their order, and what stores answer."""
    recording = load(path)
    case = recording.cases[number]
    plan = by_records(compile_topology(recording.topology, path=path.name))
    rng = random.Random(f"{path.stem}-{number}")
    rest = epoch_rows(case["steps"])
    one, many = Stores(), Stores()
    single = LocalRuntime(plan, one, recording.observe, partitions)
    expected: dict[str, list[Any]] = {}
    found: dict[str, list[Any]] = {}
    while rest:
        cut = rng.randrange(1, 25)
        epoch, rest = rest[:cut], rest[cut:]
        for row in order_epoch(plan, epoch):
            collect(single.process(chunks(plan, [row])), expected)
        collect(LocalRuntime(plan, many, recording.observe, partitions).process(chunks(plan, epoch)), found)
    restarted = LocalRuntime(plan, many, recording.observe, partitions)
    for question in case.get("stores", ()):
        answer, again = (
            store_of(plan, runtime, question["store"]).get(question["key"], as_of=question["as_of"])
            for runtime in (single, restarted)
        )
        assert answer == again, question
    collect(single.drain(), expected)
    collect(LocalRuntime(plan, many, recording.observe, partitions).drain(), found)
    for node in recording.observe:
        assert found.get(node, []) == expected.get(node, []), node
