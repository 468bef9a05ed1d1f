"""What a large state costs: the time of an epoch, the time of a restore, bytes.

It runs the stage of the stream-table join through the state protocol, in one process. A dictionary simulates Spark's
state store; local RocksDB, changelogs, snapshots and manifest are the real ones. Epochs are the same for every size: a
fixed number of stream and table rows over a fixed number of keys, newly chosen each time from all keys. Time is the
process's CPU time, which other work on the machine does not change. A folded snapshot does not count as part of an
epoch; it is reported separately.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.comparison import Floor
from bench.stage import TOPOLOGY
from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.later_stage import LaterStage
from vsc.runtime.records import Batch, Order, Origin
from vsc.runtime.spark.state.local_folder import opened
from vsc.runtime.spark.state.protocol import Manifest, PartitionState, snapshot_chunks

__all__ = ["FACTORS", "Size", "floors", "lines", "measure"]

FACTORS = (1, 10, 100)
KEYS, VERSIONS = 1_000, 20
"""Keys of the smallest state, and versions of each key."""

STREAM_ROWS, TABLE_ROWS, TOUCHED = 40_000, 500, 1_000
"""Rows of an epoch, and the number of their keys."""

WARM, EPOCHS = 2, 30
LOADED = 100_000
"""Versions to load in one epoch."""


@dataclass(frozen=True, slots=True)
class Size:
    """A state of `versions` versions: CPU seconds of an epoch (median), of a snapshot and a restore; bytes."""

    factor: int
    versions: int
    epoch: float
    snapshot: float
    restore: float
    chain: int
    remote: int
    local: int


@dataclass
class Blobs:
    """Spark's state of one partition."""

    text: str | None = None
    chunks: dict[tuple[str, int], bytes] = field(default_factory=dict)

    def manifest(self) -> str | None:
        return self.text

    def set_manifest(self, text: str) -> None:
        self.text = text

    def get(self, blob: str, chunk: int) -> bytes | None:
        return self.chunks.get((blob, chunk))

    def put(self, blob: str, chunk: int, data: bytes) -> None:
        self.chunks[blob, chunk] = data

    def remove(self, blob: str, chunk: int) -> None:
        del self.chunks[blob, chunk]


class Query:
    """The stage, epoch by epoch."""

    def __init__(self, folder: Path, keys: int) -> None:
        self.plan: Plan = compile_topology(TOPOLOGY, path="bench.vdsl")
        self.folder = folder
        self.blobs = Blobs()
        self.epochs = 0
        self.rng = np.random.default_rng(3)
        self.names = pa.array([f"key-{i:07d}" for i in range(keys)])

    def epoch(self, inputs: list[tuple[str, Batch]]) -> tuple[float, bool]:
        """CPU seconds, and whether a snapshot was written."""
        started = time.process_time()
        manifest = Manifest.load(self.blobs.manifest())
        with opened(self.folder, manifest) as base:
            state = PartitionState.open(self.blobs, base, manifest)
            LaterStage(self.plan, 1, state.kv, RunOptions(), frozenset({"priced"})).process(inputs)
            committed = state.commit(f"{self.epochs}-1-0-x")
        self.epochs += 1
        fresh = bool(committed.blobs) and committed.blobs[0] not in manifest.blobs and bool(manifest.blobs)
        return time.process_time() - started, fresh

    def batch(self, node: str, keys: np.ndarray, times: np.ndarray) -> Batch:
        rows = len(keys)
        values: tuple[pa.Array, ...] = (pa.array(self.rng.random(rows)),)
        if node == "payments":
            values = (pa.array(np.arange(rows)), *values)
        order = Order(
            np.maximum.accumulate(times), np.zeros(rows, np.int32), np.arange(rows), np.zeros((rows, 0), np.int64)
        )
        schema, present = self.plan.node(node).schema, np.ones(rows, np.bool_)
        return Batch(schema, (Origin(node, 0, ""),), order, times, present, (self.names.take(pa.array(keys)),), values)

    def load(self) -> int:
        """Gives every key its versions, in order of time; returns the last time."""
        keys = np.tile(np.arange(len(self.names)), VERSIONS)
        for start in range(0, len(keys), LOADED):
            part = keys[start : start + LOADED]
            self.epoch([("rates", self.batch("rates", part, np.arange(start, start + len(part), dtype=np.int64)))])
        return len(keys)

    def touch(self, now: int) -> tuple[float, bool]:
        """Runs an epoch like all others, at event time `now`."""
        touched = self.rng.choice(len(self.names), TOUCHED, replace=False)
        table = self.batch("rates", self.rng.choice(touched, TABLE_ROWS), np.full(TABLE_ROWS, now, np.int64))
        times = self.rng.integers(0, now, STREAM_ROWS)
        return self.epoch(
            [("rates", table), ("payments", self.batch("payments", self.rng.choice(touched, STREAM_ROWS), times))]
        )


def measure(quick: bool) -> list[Size]:
    """Measures all sizes at once: their epochs take turns, so that other work on the machine affects all equally."""
    with tempfile.TemporaryDirectory(prefix="vsc-bench-") as folder:
        queries = [Query(Path(folder) / str(factor), KEYS * factor) for factor in (FACTORS[:1] if quick else FACTORS)]
        times = [query.load() for query in queries]
        spent: list[list[tuple[float, bool]]] = [[] for _ in queries]
        for i in range(WARM + EPOCHS):
            for query, now, seconds in zip(queries, times, spent, strict=True):
                seconds.append(query.touch(now + 1 + i))
        return [
            _size(query, statistics.median(epoch for epoch, fresh in seconds[WARM:] if not fresh))
            for query, seconds in zip(queries, spent, strict=True)
        ]


def _size(query: Query, epoch: float) -> Size:
    manifest = Manifest.load(query.blobs.manifest())
    with opened(query.folder, manifest) as base:
        PartitionState.open(query.blobs, base, manifest)
        started = time.process_time()
        remote = sum(map(len, snapshot_chunks(base)))
        folded = time.process_time() - started
    local = sum(file.stat().st_size for file in query.folder.iterdir())
    shutil.rmtree(query.folder)
    started = time.process_time()
    with opened(query.folder, manifest) as base:
        PartitionState.open(query.blobs, base, manifest)
    restore = time.process_time() - started
    keys = len(query.names)
    return Size(keys // KEYS, keys * VERSIONS, epoch, folded, restore, manifest.size, remote, local)


def floors(sizes: list[Size]) -> list[Floor]:
    """The floor: a large state must not slow an epoch down."""
    return [
        Floor(f"An epoch beside {size.factor} x the state, beside 1 x", 0.9, sizes[0].epoch / size.epoch)
        for size in sizes[1:]
    ]


def lines(sizes: list[Size]) -> list[str]:
    """The section of the page."""
    found = [
        "## State",
        "",
        f"The stage of the stream-table join through the state protocol, Spark's state store simulated; {VERSIONS} "
        f"versions a key. An epoch has {STREAM_ROWS:,} rows of the stream and {TABLE_ROWS:,} of the table over "
        f"{TOUCHED:,} keys, chosen anew among all; times are CPU time of one process. A snapshot is written when the "
        "changelogs have outgrown the last one: its cost is spread over as many epochs as that takes.",
        "",
        "| versions | epoch, rows/s | snapshot, s | restore, s | restore, MB/s | restore, versions/s "
        "| bytes a version, checkpoint | on the local disk |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for size in sizes:
        found.append(
            f"| {size.versions:,} | {(STREAM_ROWS + TABLE_ROWS) / size.epoch:,.0f} | {size.snapshot:.2f} "
            f"| {size.restore:.2f} | {size.chain / size.restore / 1e6:.0f} | {size.versions / size.restore:,.0f} "
            f"| {size.remote / size.versions:.1f} | {size.local / size.versions:.1f} |"
        )
    return [*found, ""]
