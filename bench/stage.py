"""The join's stage alone, in one process without Spark: how fast one core processes columns, and what takes the time.

The stage is the one that runs on Spark: encoded keys, RocksDB, rows decoded, results as columns.
"""

from __future__ import annotations

import cProfile
import pstats
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.workload import KEYS, Workload
from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.later_stage import LaterStage
from vsc.runtime.records import Batch, Order, Origin
from vsc.runtime.state.kv import RocksKV

__all__ = ["TOPOLOGY", "StageRates", "measure"]

_SPAN_MS = 100_000_000

TOPOLOGY = """
topology bench;
table rates (currency string, rate double) from memory () key currency materialize versioned (retention = 7 days);
stream payments (currency string, id bigint, amount double) from memory () key currency;
stream priced = left join payments with rates select id, amount, rates.rate as rate;
sink priced to memory ();
"""


@dataclass(frozen=True, slots=True)
class StageRates:
    """Rows a second of loading the table and of the stream's batches; where a batch's time goes (share by place)."""

    load: float
    stream: float
    batches: tuple[int, ...]
    places: tuple[tuple[str, float], ...]


def measure(workload: Workload) -> StageRates:
    """Loads the table into a fresh RocksDB and joins `workload.measured` batches, after one that warms up."""
    plan = compile_topology(TOPOLOGY, path="bench.vdsl")
    rng = np.random.default_rng(5)
    with tempfile.TemporaryDirectory(prefix="vsc-bench-") as folder:
        kv = RocksKV(Path(folder) / "state")
        task = LaterStage(plan, 1, kv, RunOptions(), frozenset({"priced"}))
        times = np.sort(rng.integers(0, _SPAN_MS, workload.table))
        table = _batch(plan, "rates", times, (pa.array(rng.random(workload.table)),), rng)
        load = _timed(task, "rates", table)
        streams = [_stream(plan, workload.batch, rng) for _ in range(workload.measured + 1)]
        spent = [_timed(task, "payments", batch) for batch in streams][1:]
        profile = cProfile.Profile()
        profile.runcall(task.process, [("payments", streams[0])])
        kv.close()
    return StageRates(
        workload.table / load,
        workload.rows / sum(spent),
        tuple(round(workload.batch / seconds) for seconds in spent),
        _places(profile),
    )


def _timed(task: LaterStage, node: str, batch: Batch) -> float:
    start = time.perf_counter()
    task.process([(node, batch)])
    return time.perf_counter() - start


def _stream(plan: Plan, rows: int, rng: np.random.Generator) -> Batch:
    values = (pa.array(np.arange(rows)), pa.array(rng.random(rows)))
    return _batch(plan, "payments", rng.integers(0, _SPAN_MS, rows), values, rng)


def _batch(plan: Plan, node: str, times: np.ndarray, values: tuple[pa.Array, ...], rng: np.random.Generator) -> Batch:
    rows = len(times)
    names = pa.array([f"key-{i:06d}" for i in range(KEYS)])
    order = Order(
        np.maximum.accumulate(times), np.zeros(rows, np.int32), np.arange(rows), np.zeros((rows, 0), dtype=np.int64)
    )
    keys = (names.take(pa.array(rng.integers(0, KEYS, rows))),)
    return Batch(plan.node(node).schema, (Origin(node, 0, ""),), order, times, np.ones(rows, np.bool_), keys, values)


def _places(profile: cProfile.Profile) -> tuple[tuple[str, float], ...]:
    """The functions that take the most time themselves, as shares of the total."""
    stats = pstats.Stats(profile)
    whole = stats.total_tt  # type: ignore[attr-defined]
    own = [(f"{Path(file).name} {name}", tt / whole) for (file, _, name), (_, _, tt, _, _) in stats.stats.items()]  # type: ignore[attr-defined]
    return tuple(sorted(own, key=lambda place: -place[1])[:10])
