"""Runs a history through the engines in this process, and shows what came out so that it can be compared exactly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from vsc.plan.nodes import Plan, Source
from vsc.runtime.local import EpochRow, LocalRuntime, order_epoch
from vsc.runtime.operators.task import RunOptions, SourceRows
from vsc.runtime.records import Batch, Metrics, Origin
from vsc.runtime.state.kv import MemoryKV, OrderedKV
from vsc.runtime.values import from_python, to_array

__all__ = ["Outcome", "Stores", "by_key", "chunks", "collect", "difference", "run_single", "run_whole"]

Outcome = dict[str, list[tuple[Any, ...]]]
"""For each node its records in order: (key columns, event time, value columns or None), as text: NaN is equal to itself
and 0.0 is not -0.0."""


class Stores:
    """Keeps the state of every stage and partition, whoever opens it."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], OrderedKV] = {}

    def __call__(self, stage: int, partition: int) -> OrderedKV:
        """The state of one stage and partition."""
        return self._kept.setdefault((stage, partition), MemoryKV())


def chunks(plan: Plan, rows: Iterable[EpochRow]) -> list[tuple[str, SourceRows]]:
    """Rows of an epoch, each source partition in one piece."""
    parts: dict[tuple[str, str], list[EpochRow]] = defaultdict(list)
    for row in rows:
        parts[row.source, row.part].append(row)
    found = []
    for (source, part), own in parts.items():
        operation = plan.node(source).operation
        assert isinstance(operation, Source)
        own.sort(key=lambda r: r.offset)
        columns = tuple(
            to_array([None if r.row[c.name] is None else from_python(r.row[c.name], c.type) for r in own], c.type)
            for c in operation.columns
        )
        offsets = np.array([r.offset for r in own], dtype=np.int64)
        found.append((source, SourceRows(Origin(source, operation.rank, part), columns, offsets)))
    return found


def collect(batches: dict[str, Batch], into: Outcome) -> None:
    """Adds what an engine gave."""
    for name, batch in batches.items():
        keys = [c.to_pylist() for c in batch.keys]
        values = [c.to_pylist() for c in batch.values]
        count = len(batch)
        rows = zip(
            zip(*keys, strict=True) if keys else [()] * count, batch.timestamps.tolist(),
            zip(*values, strict=True) if values else [()] * count, batch.present.tolist(), strict=True,
        )  # fmt: skip
        into.setdefault(name, []).extend((repr(k), t, repr(v) if present else None) for k, t, v, present in rows)


def by_key(records: Sequence[tuple[Any, ...]]) -> dict[Any, list[tuple[Any, ...]]]:
    """The records of each key, in their order: between keys of several partitions there is none to keep."""
    found = defaultdict(list)
    for key, *rest in records:
        found[key].append(tuple(rest))
    return dict(found)


def difference(found: Outcome, expected: Outcome, in_sequence: bool) -> str:
    """The first node whose records differ, and how; nothing if there is none. `in_sequence`: of all keys together."""
    for node in sorted(found.keys() | expected.keys()):
        ours, theirs = found.get(node, []), expected.get(node, [])
        if ours == theirs or (not in_sequence and by_key(ours) == by_key(theirs)):
            continue
        equal = [a == b for a, b in zip(ours, theirs, strict=False)]
        place = equal.index(False) if False in equal else len(equal)
        seen, wanted = ours[place : place + 5], theirs[place : place + 5]
        counts = f"{len(ours)} records, not {len(theirs)}"
        return f"{node}: {counts}; from record {place} on\n  found    {seen}\n  expected {wanted}"
    return ""


def run_whole(
    plan: Plan, epochs: Sequence[Sequence[EpochRow]], observe: Iterable[str], partitions: int, restarts: Sequence[bool]
) -> tuple[Outcome, Metrics]:
    """Each epoch in one piece, after a restart where `restarts` says so, and drained at last."""
    stores, outcome, metrics = Stores(), {}, Metrics()
    runtime = None
    for epoch, restart in zip(epochs, restarts, strict=True):
        if runtime is None or restart:
            runtime = _runtime(plan, stores, observe, partitions)
            runtime.metrics = metrics
        collect(runtime.process(chunks(plan, epoch)), outcome)
    assert runtime is not None
    collect(runtime.drain(), outcome)
    return outcome, metrics


def run_single(
    plan: Plan, epochs: Sequence[Sequence[EpochRow]], observe: Iterable[str], partitions: int
) -> tuple[Outcome, Metrics]:
    """One row at a time, in the order of D12, and drained at last."""
    outcome: Outcome = {}
    runtime = _runtime(plan, Stores(), observe, partitions)
    for epoch in epochs:
        for row in order_epoch(plan, epoch):
            collect(runtime.process(chunks(plan, [row])), outcome)
    collect(runtime.drain(), outcome)
    return outcome, runtime.metrics


def _runtime(plan: Plan, stores: Stores, observe: Iterable[str], partitions: int) -> LocalRuntime:
    return LocalRuntime(plan, stores, observe, partitions, RunOptions(on_error="drop"))
