"""Epochs of ten rows: what an epoch costs apart from its rows, with vsc and with Spark's own count.

``python -m bench.tiny_epochs [--epochs N] [--partitions P ...]``. A query reads files of ten rows, one for each epoch.
vsc's session has the settings of ``vsc run``; Spark's has its defaults and RocksDB for state. The two take turns, each
in its own JVM. Each count runs twice: the JIT needs many small epochs, so the first run only warms up.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from bench.comparison import Floor
from bench.measuring import session, vsc_session
from bench.workload import stamps, write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Tiny", "floors", "lines", "measure_all"]

EPOCHS = 60
WARM_UP = 10
"""Epochs of each query before those that count."""
PARTITIONS = (1, 2, 4)
ROWS = 10
SLOWER, STAGE = 1.3, 0.25
"""How many times as long as Spark's count an epoch may take, and what share of that count a second stage may add."""

COUNT = "Spark's `groupBy.count`"
_SOURCE = (
    "{kind} {name} (k string, g string, n bigint, at timestamp) from files (path = '${{folder}}/{name}', "
    "format = 'parquet', 'maxFilesPerTrigger' = '1') key k timestamp at{clause};"
)
_STREAM = _SOURCE.format(kind="stream", name="s", clause="")
_TABLE = _SOURCE.format(kind="table", name="r", clause=" materialize versioned (retention = 1 hour)")
_ONE = "count by key, one stage"
_TWO = "count by key, count of the counts: two stages"
TOPOLOGIES = {
    _ONE: f"{_STREAM} table c = aggregate s group by k select count(*) as c; sink c to noop ();",
    _TWO: f"{_STREAM} table c = aggregate s group by k select count(*) as c; "
    "table d = aggregate c group by c select count(*) as d; sink d to noop ();",
    "versioned join, new rows on both sides": f"{_STREAM} {_TABLE} "
    "stream j = left join s with r select s.n as n, r.n as m; sink j to noop ();",
}


@dataclass(frozen=True, slots=True)
class Tiny:
    """The milliseconds of the first epoch, and of those that count."""

    first: int
    epochs: tuple[int, ...]

    @property
    def p50(self) -> float:
        """Of the epochs that count."""
        return median(self.epochs)

    @property
    def p95(self) -> float:
        """Of the epochs that count."""
        return quantiles(self.epochs, n=20)[-1]


def measure_all(epochs: int = EPOCHS, partitions: Sequence[int] = PARTITIONS) -> dict[tuple[str, int], Tiny]:
    """The measurements by query and number of partitions."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="vsc-bench-") as name:
        folder = Path(name)
        for number in range(epochs + WARM_UP):
            for source in ("s", "r"):
                _write(folder, source, number)
        for count in partitions:
            for peer in ("spark", "vsc"):
                command = [sys.executable, "-m", "bench.tiny_epochs", "--child", peer, str(folder)]
                done = subprocess.run([*command, "--partitions", str(count)], stdout=subprocess.PIPE, check=True)
                for query, tiny in json.loads(done.stdout.splitlines()[-1]).items():
                    found[query, count] = Tiny(tiny["first"], tuple(tiny["epochs"]))
                    print(f"{query}, {count} partitions: {found[query, count].p50:.0f} ms", flush=True)
    return found


def floors(found: Mapping[tuple[str, int], Tiny]) -> list[Floor]:
    """The floors: Spark's time relative to vsc's."""
    held = []
    for count in sorted({count for _, count in found}):
        spark, one, two = (found[query, count] for query in (COUNT, _ONE, _TWO))
        held.append(Floor(f"Epoch of {ROWS} rows, {count} partitions: one stage", 1 / SLOWER, spark.p50 / one.p50))
        held.append(
            Floor(f"Epoch of {ROWS} rows, {count} partitions: two stages", 1 / (SLOWER + STAGE), spark.p50 / two.p50)
        )
    return [Floor(floor.name, round(floor.least, 2), floor.ratio) for floor in held]


def lines(found: Mapping[tuple[str, int], Tiny]) -> list[str]:
    """The table."""
    rows = [
        f"| {query} | {count} | {tiny.p50:,.0f} | {tiny.p95:,.0f} | {tiny.p50 / found[COUNT, count].p50:.2f} | "
        f"{tiny.first:,} |"
        for (query, count), tiny in found.items()
    ]
    return [
        "## Tiny epochs",
        "",
        f"{ROWS} rows of each source an epoch, one file; {WARM_UP} epochs to warm up, after a whole run of the count "
        "in the same JVM. The first epoch is that of a fresh JVM only in the rows of the counts.",
        "",
        "| query | partitions | p50, ms | p95, ms | p50 beside Spark's | first epoch, ms |",
        "|---|---:|---:|---:|---:|---:|",
        *rows,
        "",
    ]


def _write(folder: Path, source: str, number: int) -> None:
    n = np.arange(ROWS)
    keys = pa.array([f"k{i}" for i in n])
    columns = {"k": keys, "g": pa.array([f"g{i % 3}" for i in n]), "n": pa.array(n)}
    write_file(folder / source, number, columns | {"at": stamps(number * 1_000 + n)})


def _child(peer: str, folder: Path, partitions: int) -> dict[str, Tiny]:
    if peer == "spark":
        spark = session("tiny", {"spark.sql.shuffle.partitions": str(partitions)})
        cold, warm = (_times(_count(spark, folder, run)) for run in ("cold", "warm"))
        return {COUNT: replace(warm, first=cold.first)}
    from vsc.compiler import compile_topology
    from vsc.runtime.spark.base.job import Run
    from vsc.runtime.spark.query.opened import Opened
    from vsc.runtime.spark.query.preflight import prepare
    from vsc.runtime.spark.query.start import start_query

    spark = vsc_session("tiny")
    found: dict[str, Tiny] = {}
    for number, query in enumerate((_ONE, *TOPOLOGIES)):
        variables = {"folder": str(folder)}
        plan = compile_topology(f"topology tiny; {TOPOLOGIES[query]}", path="bench.vdsl", variables=variables)
        checkpoint = str(folder / f"vsc-{partitions}-{number}")
        job = Run(plan, checkpoint, variables, partitions, observe=False)  # as `vsc run` does if nothing listens
        run = _times(start_query(Opened.of(prepare(job), spark), spark).query)
        found[query] = replace(run, first=found[query].first) if query in found else run
    spark.stop()
    return found


def _count(spark: SparkSession, folder: Path, run: str) -> StreamingQuery:
    frame = spark.readStream.schema("k string, g string, n bigint, at timestamp").option("maxFilesPerTrigger", 1)
    counted = frame.parquet(str(folder / "s")).groupBy("k").count()
    name = f"spark-{spark.conf.get('spark.sql.shuffle.partitions')}-{run}"
    writer = counted.writeStream.outputMode("update").format("noop").option("checkpointLocation", str(folder / name))
    return writer.trigger(availableNow=True).start()


def _times(query: StreamingQuery) -> Tiny:
    seen: dict[int, int] = {}
    while query.isActive:
        seen |= _progress(query)
        time.sleep(0.2)
    query.awaitTermination()
    seen |= _progress(query)
    epochs = [seen[number] for number in sorted(seen)]
    return Tiny(epochs[0], tuple(epochs[WARM_UP:]))


def _progress(query: StreamingQuery) -> dict[int, int]:
    done = [p for p in query.recentProgress if p["numInputRows"]]
    return {p["batchId"]: int(p["durationMs"]["triggerExecution"]) for p in done}


def main() -> None:
    """Measures and prints the table and the floors; with ``--child``, measures one process's part as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.tiny_epochs", description=__doc__)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--partitions", type=int, nargs="+", default=PARTITIONS)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        peer, folder = arguments.child
        found = _child(peer, Path(folder), arguments.partitions[0])
        print("\n" + json.dumps({query: asdict(tiny) for query, tiny in found.items()}))
        return
    measured = measure_all(arguments.epochs, arguments.partitions)
    print("\n" + "\n".join(lines(measured)))
    for floor in floors(measured):
        print(f"{floor.name}: {floor.ratio:.2f}, at least {floor.least}: {'held' if floor.held else 'MISSED'}")


if __name__ == "__main__":
    main()
