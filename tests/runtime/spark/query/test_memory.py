"""Memory in a task: a call that lets a large backlog go, or gives much out, holds a bounded part of it at a time.

Sizes are a thirty-second of the real ones; the memory is that of Python's objects and of Arrow. RocksDB's is bounded by
its options.
"""

from __future__ import annotations

import gc
import json
import random
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.runtime.spark.one_stage import OneStage
from tests.runtime.spark.support import compiled
from vsc.plan.nodes import Plan
from vsc.runtime.errors import LocalStoreError
from vsc.runtime.operators import in_step
from vsc.runtime.records import Batch, Order, Origin
from vsc.runtime.spark.exchange.pace import Pace, Wait
from vsc.runtime.spark.exchange.wire import CONTROL
from vsc.runtime.spark.state import protocol
from vsc.runtime.spark.state.protocol import STAMP_KEY, Manifest, PartitionState
from vsc.runtime.state import sizes
from vsc.runtime.state.kv import MemoryKV, OrderedKV, OverlayKV

BOUND, PAD = 128 << 10, 1000
"""Bytes of an epoch, and of each of its records."""
SCALE = 32

TOPOLOGY = """
stream orders (id bigint, currency string, pad string) from memory ();
table rates (currency string, pad string) from memory () key currency materialize {store};
stream priced = left join orders with rates on currency select id, orders.pad as pad, rates.pad as rate;
sink priced to noop ();
"""
LET_GO = Pace({}, {"1-0": 1})
STORES = {"unversioned": "unversioned", "versioned": "versioned (retention = 1 day)"}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is done piece by piece, in pieces of a thirty-second."""
    for module, names in (
        (protocol, ("SPILL_BYTES", "CHUNK_BYTES", "FOLD_BYTES")),
        (in_step, ("_BATCH_BYTES", "_PORTION_BYTES")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, getattr(module, name) // SCALE)


class Backlog:
    """A source whose records all wait, epoch after epoch, until everything goes on at once."""

    def __init__(self, plan: Plan, source: str, at_one_time: bool = False) -> None:
        self.node = next(i.node for i in plan.stages[1].inputs if (i.node == "rates") == (source == "rates"))
        self.other = "orders" if source == "rates" else "rates"
        self.schema = plan.node(self.node).schema
        self.origin = Origin(source, int(source == "orders"), "0")
        self.span = 0 if at_one_time else 1
        self.rows = 0
        self.chance = random.Random(3)

    def batch(self) -> Batch:
        """An epoch's records, each with a key of its own."""
        rows = BOUND // PAD
        ids = np.arange(self.rows, self.rows + rows, dtype=np.int64)
        self.rows += rows
        columns = {
            "id": pa.array(ids),
            "currency": pa.array([f"c{i:09}" for i in ids]),
            "pad": pa.array([self.chance.randbytes(PAD // 2).hex() for _ in ids]),
        }
        times = 10 + self.span * ids
        order = Order(times, np.zeros(rows, np.int32), ids, np.zeros((rows, 0), np.int64))
        keys, values = (tuple(columns[c.name] for c in part) for part in (self.schema.key, self.schema.value))
        return Batch(self.schema, (self.origin,), order, times, np.ones(rows, np.bool_), keys, values)

    def waits(self, stage: OneStage, epochs: int) -> None:
        """So many epochs come in, and wait."""
        for _ in range(epochs):
            frames = list(stage.call([(self.node, self.batch())], Pace({self.other: Wait(5, "x")}, {"1-0": 1})))
            assert not [dest for frame in frames for dest in frame["dest"] if dest != CONTROL]


def release(stage: OneStage) -> tuple[int, int]:
    """Lets everything go: the most bytes that were in use meanwhile, and how many have come out."""
    gc.collect()
    tracemalloc.start()
    arrow = out = 0
    for frame in stage.call([], LET_GO):
        arrow = max(arrow, pa.total_allocated_bytes())
        out += sum(map(len, frame["payload"]))
        del frame
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most + arrow, out


def content(stage: OneStage) -> dict[bytes, bytes]:
    """The state that the chain gives; there are just the blobs that the manifest names."""
    manifest, base = Manifest.load(stage.text()), MemoryKV()
    assert set(stage.chunks.kept) == {(b.name, i) for b in manifest.blobs for i in range(len(b.lengths))}
    PartitionState.open(stage.blobs(), base, manifest)
    return {key: value for key, value in base.scan(b"", None) if key != STAMP_KEY}


def spilled(stage: OneStage) -> int:
    """How many of the newest call's blobs were spilled."""
    calls = [b.name.rpartition("-")[0] for b in Manifest.load(stage.text()).blobs if b.kind == "changelog"]
    return calls.count(calls[-1]) - 1  # the last one is what the call has committed


@pytest.mark.slow
@pytest.mark.parametrize(("source", "at_one_time"), [("orders", False), ("rates", False), ("orders", True)])
def test_a_fourfold_backlog_needs_no_more_memory(
    source: str, at_one_time: bool, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, most = compiled(TOPOLOGY.format(store="unversioned")), {}
    for epochs in (4, 16):
        stage, backlog = OneStage(plan, tmp_path / f"{epochs}", monkeypatch), Backlog(plan, source, at_one_time)
        backlog.waits(stage, epochs)
        most[epochs], out = release(stage)
        assert out >= (epochs * BOUND // 2 if source == "orders" else 0)
    assert most[16] < 1.25 * most[4]


@pytest.mark.parametrize("store", STORES)
def test_a_spill_changes_nothing(store: str, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "SAMPLE", 1 << 20)  # exact sums
    plan, found = compiled(TOPOLOGY.format(store=STORES[store])), []
    for size in (1, 1 << 40):
        monkeypatch.setattr(protocol, "SPILL_BYTES", size)
        stage, backlog = OneStage(plan, tmp_path / f"{size}", monkeypatch), Backlog(plan, "rates")
        backlog.waits(stage, 8)
        told = [row for frame in stage.call([], LET_GO) for row in frame["payload"]]
        assert (spilled(stage) > 1) == (size == 1)
        found.append((content(stage), json.loads(told[-1])["state"]))
        list(stage.call([], Pace()))  # on what the local store has by then
        assert content(stage) == found[-1][0]
    (rows, told_of), (expected, without) = found
    assert rows == expected
    assert told_of["stores"] == without["stores"]


def test_a_local_store_that_fails_behind_a_spill_is_made_anew(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, settle, calls = compiled(TOPOLOGY.format(store="unversioned")), OverlayKV.settle, 0

    def once_broken(overlay: OverlayKV, base: OrderedKV) -> None:
        nonlocal calls
        calls += 1
        settle(overlay, base)
        if calls == 1:
            raise LocalStoreError("the scratch copy is broken")

    monkeypatch.setattr(protocol, "SPILL_BYTES", 1)
    monkeypatch.setattr(OverlayKV, "settle", once_broken)
    stage, backlog = OneStage(plan, tmp_path, monkeypatch), Backlog(plan, "rates")
    backlog.waits(stage, 4)
    list(stage.call([], LET_GO))
    assert spilled(stage) == calls - 1
    rates = [key for key in content(stage) if b"c0000" in key]
    assert len(rates) == backlog.rows
    assert [file.name for file in stage.local.glob("*/*/scratch")] == []
