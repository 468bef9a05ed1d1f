"""Plays recordings of the real Kafka Streams, step by step or many steps at once, and compares what each step gave."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.oracle import Deleted, Ran, shipped
from tests.oracle.epochs import EpochRow
from vsc.compiler import compile_topology
from vsc.plan.nodes import Clock, Column, Plan
from vsc.runtime.local import LocalRuntime
from vsc.runtime.operators.views.catalog import stores_of
from vsc.runtime.records import Batch
from vsc.testing import StoreView, TopologyTestDriver

ONE_IN = int(os.environ.get("VSC_ONE_RECORDING_IN", "4"))
"""A recording takes long step by step, ten times as long as at once: of those that lie beside the repository, and are
played in other ways too, the tests play one in so many."""


@dataclass(frozen=True)
class Recording:
    """One file: a topology, the nodes that were watched, and cases, each of them a list of steps."""

    name: str
    topology: str
    observe: tuple[str, ...]
    cases: tuple[dict[str, Any], ...]


def load(path: Path) -> Recording:
    data = json.loads(path.read_text(encoding="utf-8"))
    return Recording(data["name"], data["topology"], tuple(data["observe"]), tuple(data["cases"]))


def play(recording: Recording, case: dict[str, Any], partitions: int = 1, clock: Clock = "records") -> None:
    """Fails at the first step that gives other records than the recorded ones, or the first store that answers so."""
    with TopologyTestDriver(_plan(recording.topology, clock), partitions=partitions) as driver:
        for number, step in enumerate(case["steps"]):
            _feed(driver, step)
            for node in recording.observe:
                found = [
                    {"key": _recorded(r.key), "value": _recorded(r.value), "timestamp": r.timestamp}
                    for r in driver.read(node)
                ]
                assert found == step["expect"].get(node, []), f"{recording.name}, step {number} ({step}), node {node}"
        for question in case.get("stores", ()):
            _ask(recording, question, driver.store(question["store"]))


def _ask(recording: Recording, question: dict[str, Any], store: StoreView) -> None:
    answer = store.get(question["key"], as_of=question["as_of"])
    found = None
    if answer is not None:
        found = {"value": answer.value, "valid_from": answer.valid_from, "valid_to": answer.valid_to}
    assert found == question["expect"], f"{recording.name}, {question}"


def play_at_once(recording: Recording, case: dict[str, Any], cuts: Sequence[int] = ()) -> tuple[Plan, Ran]:
    """As `play`, but all steps are one batch, or several, cut before the steps `cuts`: on columns where that can be."""
    plan = _plan(recording.topology, "records")
    steps = case["steps"]
    rows = [_row(number, step) for number, step in enumerate(steps)]
    parts = [rows[a:b] for a, b in pairwise((0, *cuts, len(rows)))]
    played = shipped(plan, parts, recording.observe, on_error="fail", in_steps=True)
    assert played.failure is None
    for node in recording.observe:
        found: list[list[dict[str, Any]]] = [[] for _ in steps]
        for batch in played.batches.get(node, ()):
            for step, record in zip(batch.order.time.tolist(), _records(batch), strict=True):
                if step < len(steps):  # the end of the input is not recorded
                    found[step].append(record)
        for number, step in enumerate(steps):
            assert found[number] == step["expect"].get(node, []), f"{recording.name}, step {number}, node {node}"
    for question in case.get("stores", ()):
        _ask(recording, question, store_of(plan, played.runtime, question["store"]))
    return plan, played.ran


def store_of(plan: Plan, runtime: LocalRuntime, name: str) -> StoreView:
    """A store by its name, as a driver gives it."""
    stored = [s for s in stores_of(plan) if s.is_table and s.canonical and s.name == name][-1]
    return StoreView(runtime, plan.node(stored.node), stored)


@cache
def _plan(topology: str, clock: Clock) -> Plan:
    named = re.sub(r"^(topology \w+);", rf"\1 (clock = '{clock}');", topology)
    return compile_topology(named, path="recorded.vdsl")


def _row(number: int, step: dict[str, Any]) -> EpochRow:
    row = Deleted(step["key"]) if step["value"] is None else {**step["key"], **step["value"]}
    return EpochRow(step["source"], "", number, row, step["timestamp"])


def _records(batch: Batch) -> list[dict[str, Any]]:
    keys, values = (_rows(columns, arrays, len(batch)) for columns, arrays in (
        (batch.schema.key, batch.keys), (batch.schema.value, batch.values)
    ))  # fmt: skip
    rows = zip(keys, values, batch.present.tolist(), batch.timestamps.tolist(), strict=True)
    return [{"key": _recorded(k), "value": _recorded(v) if p else None, "timestamp": t} for k, v, p, t in rows]


def _rows(columns: Sequence[Column], arrays: Sequence[Any], count: int) -> list[dict[str, Any]]:
    lists = [array.to_pylist() for array in arrays]
    return [{c.name: values[i] for c, values in zip(columns, lists, strict=True)} for i in range(count)]


def _recorded(row: dict[str, Any] | None) -> dict[str, Any] | None:
    """A row as the recordings have it: the bounds of windows in milliseconds."""
    if row is None:
        return None
    return {name: _milliseconds(v) if isinstance(v, datetime) else v for name, v in row.items()}


def _milliseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _feed(driver: TopologyTestDriver, step: dict[str, Any]) -> None:
    if step["value"] is None:
        driver.delete(step["source"], step["key"], timestamp=step["timestamp"])
    else:
        driver.pipe(step["source"], {**step["key"], **step["value"]}, timestamp=step["timestamp"])
