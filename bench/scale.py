"""What an epoch costs with more partitions and stages: ``python -m bench.scale [--master URL] [--partitions P ...]``.

Counts of counts: each stage adds an aggregate under another key. A query reads one file an epoch, of few or of many
rows. All run in one session, that of ``vsc run``; times are medians of the epochs behind the first.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from bench.workload import stamps, write_file
from vsc.compiler import compile_topology
from vsc.runtime.spark.query.launch import launched, new_log
from vsc.runtime.spark.session.interrupts import Interrupts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS, STAGES, ROWS = (4, 16, 64, 200), (1, 2, 3), (10, 100_000)
EPOCHS, WARM_UP = 4, 1
_SOURCE = (
    "topology scale; stream s (k string, at timestamp) from files (path = '${folder}/in', format = 'parquet', "
    "'maxFilesPerTrigger' = '1') key k timestamp at; table c1 = aggregate s group by k select count(*) as n;"
)


@dataclass(frozen=True, slots=True)
class Scaled:
    """The milliseconds of an epoch."""

    rows: int
    stages: int
    partitions: int
    first: float
    then: float


def topology(stages: int) -> str:
    """Counts of counts."""
    more = (f" table c{n + 1} = aggregate c{n} group by n as m select count(*) as n;" for n in range(1, stages))
    return f"{_SOURCE}{''.join(more)} sink c{stages} to noop ();"


def measure(
    spark: SparkSession, partitions: Sequence[int], stages: Sequence[int], rows: Sequence[int]
) -> Iterator[Scaled]:
    """All measurements, as they are made."""
    for count in rows:
        with tempfile.TemporaryDirectory(prefix="vsc-bench-") as name:
            folder = Path(name)
            for epoch in range(EPOCHS + WARM_UP):
                _write(folder / "in", epoch, count)
            for depth in stages:
                for parts in partitions:
                    epochs = _epochs(spark, folder, depth, parts)
                    yield Scaled(count, depth, parts, epochs[0], median(epochs[WARM_UP:]))


def _write(folder: Path, epoch: int, rows: int) -> None:
    n = np.arange(rows)
    keys = pa.array([f"k{i}" for i in n * 7919 % max(rows // 10, 10)])
    write_file(folder, epoch, {"k": keys, "at": stamps(epoch * rows + n)})


def _epochs(spark: SparkSession, folder: Path, stages: int, partitions: int) -> list[float]:
    from vsc.runtime.spark import start

    variables = {"folder": str(folder)}
    plan = compile_topology(topology(stages), path="scale.vdsl", variables=variables)
    ends = [time.perf_counter()]
    with tempfile.TemporaryDirectory(prefix="vsc-bench-ck-") as checkpoint:
        query = start(
            plan, spark, checkpoint=checkpoint, variables=variables, partitions=partitions,
            on_epoch=lambda report: ends.append(time.perf_counter()),
        )  # fmt: skip
        query.awaitTermination()
    return [1000 * (end - begin) for begin, end in pairwise(ends)]


def lines(found: Sequence[Scaled]) -> list[str]:
    """The table: a line for each number of rows and stages."""
    partitions = sorted({one.partitions for one in found})
    head = "".join(f" {parts} |" for parts in partitions)
    table = [f"| rows | stages |{head}", f"|---:|---:|{'---:|' * len(partitions)}"]
    for rows, stages in sorted({(one.rows, one.stages) for one in found}):
        times = {one.partitions: one.then for one in found if (one.rows, one.stages) == (rows, stages)}
        table.append(f"| {rows:,} | {stages} |" + "".join(f" {times[parts] / 1000:.2f} |" for parts in partitions))
    return table


def fitted(found: Sequence[Scaled]) -> tuple[float, float, float]:
    """Milliseconds of an epoch of the fewest rows: of itself, of a stage, and of a partition of a stage."""
    few = [one for one in found if one.rows == min(one.rows for one in found)]
    terms = np.array([[1, one.stages, one.stages * one.partitions] for one in few], dtype=float)
    times = np.array([one.then for one in few])
    solution, *_ = np.linalg.lstsq(terms / times[:, None], np.ones(len(few)), rcond=None)  # relative errors
    return tuple(map(float, solution))  # type: ignore[return-value]


def main() -> None:
    """Measures and prints the table and the model."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    for option, default in (("partitions", PARTITIONS), ("stages", STAGES), ("rows", ROWS)):
        parser.add_argument(f"--{option}", type=int, nargs="+", default=default)
    parser.add_argument("--master", default="local[2]", help="local[2], spark://HOST:PORT, ... (default: local[2])")
    arguments = parser.parse_args()
    found = []
    memory = {"spark.driver.memory": "3g", "spark.executor.memory": "1g"}
    with launched("scale", arguments.master, memory, (), new_log(), Interrupts()) as spark:
        for one in measure(spark, arguments.partitions, arguments.stages, arguments.rows):
            found.append(one)
            print(f"{one.rows:,} rows, {one.stages} stages, {one.partitions} partitions: "
                  f"first {one.first:,.0f} ms, then {one.then:,.0f}", flush=True)  # fmt: skip
        cores = spark.sparkContext.defaultParallelism
    print("\n" + "\n".join(lines(found)))
    itself, stage, partition = fitted(found)
    print(f"\nan epoch {itself:.0f} ms, a stage {stage:.0f}, a partition of a stage {partition * cores:.1f} of a core")


if __name__ == "__main__":
    main()
