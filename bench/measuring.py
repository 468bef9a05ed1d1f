"""A Spark session for a measurement, and the measurement of a topology of vsc or a plain Spark query in it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.processes import TICK, cpu_seconds
from bench.workload import FILES_A_BATCH, Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from vsc.runtime.spark.exchange.counters import EpochReport

__all__ = ["Measured", "measure_frame", "measure_library", "measure_topology", "session", "stream", "vsc_session"]

PARTITIONS = 2

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "3g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(PARTITIONS),
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Settings for everyone: vsc's peers get the same settings of Spark's state store as vsc."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows of the measured batches, the seconds that they took, each batch's rate, and all processes' CPU seconds.

    `result`: how many rows the whole result has, warm-up included, and how many of them found a partner; None if that
    is not counted.
    """

    rows: int
    seconds: float
    batches: tuple[int, ...]
    cpu: float
    result: tuple[int, int] | None = None

    @classmethod
    def load(cls, text: str) -> Measured:
        """The value whose `dataclasses.asdict` is this JSON."""
        data = json.loads(text)
        result = data["result"] and tuple(data["result"])
        return cls(**{**data, "batches": tuple(data["batches"]), "result": result})

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds

    @property
    def cpu_rate(self) -> float:
        """Rows a CPU second."""
        return self.rows / self.cpu


def session(name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session on ``local[2]`` with two shuffle partitions and RocksDB for state; otherwise Spark's defaults."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName(name).master("local[2]")
    for key, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def vsc_session(name: str) -> SparkSession:
    """The same session with the settings that ``vsc run`` gives its sessions."""
    from vsc.runtime.spark.session.local_files import use_local_files
    from vsc.runtime.spark.session.session import local_jvm, local_settings

    with local_jvm():
        spark = session(name, local_settings())
    use_local_files(spark)
    return spark


def stream(spark: SparkSession, folder: Path, schema: str, files: int = FILES_A_BATCH) -> DataFrame:
    """The files of a folder as a stream, a batch of the workload at a time."""
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(str(folder))


def measure_frame(frame: DataFrame, checkpoint: Path, workload: Workload, mode: str = "append") -> Measured:
    """Runs a plain Spark query to the end of its files, and stops the session. `mode` is its output mode."""
    writer = frame.writeStream.outputMode(mode).format("noop").option("checkpointLocation", str(checkpoint))
    found = _rate_of(writer.trigger(availableNow=True).start(), workload)
    frame.sparkSession.stop()
    return found


def measure_topology(text: str, folder: Path, fed: Sequence[str], workload: Workload) -> Measured:
    """Compiles a topology, runs it to the end of its files, and stops the session.

    In `text`, ``${folder}`` is the folder of the comparison's files, ``${files}`` the number of files in a batch, and
    ``${stream}`` holds the folders `fed`. If the workload has a table, a separate run loads it before the stream; then
    the stream's files are put into their folders, and a second run continues with the same checkpoint.
    """
    from vsc.compiler import compile_topology
    from vsc.runtime.metrics import Group
    from vsc.runtime.spark import start

    spark = vsc_session("vsc")
    given = folder / "vsc-stream"
    for name in fed:
        (given / name).mkdir(parents=True, exist_ok=True)
    variables = {"folder": str(folder), "stream": str(given), "files": str(workload.files)}
    plan = compile_topology(text, path="bench.vdsl", variables=variables)

    reports: dict[int, EpochReport] = {}

    def started() -> StreamingQuery:
        return start(
            plan, spark, checkpoint=str(folder / "vsc-checkpoint"), variables=variables, partitions=PARTITIONS,
            on_epoch=lambda report: reports.update({report.epoch: report}),
        )  # fmt: skip

    if workload.table:
        started().awaitTermination()
    for name in fed:
        for file in sorted((folder / name).iterdir()):
            os.link(file, given / name / file.name)
    found = _rate_of(started(), workload, reports)
    spark.stop()
    rows = sum(report.written.total() for report in reports.values())
    missed = sum(report.metrics.total(Group.MISSED_LOOKUPS) for report in reports.values())
    return replace(found, result=(rows, rows - missed))


def measure_library(load: Callable[[], object], join: Callable[[], tuple[int, int]], workload: Workload) -> Measured:
    """Runs a library's join of all files in this process, once: batch, no state. `load` warms it up.

    `join` returns the number of rows in the result, and how many of them found a partner.
    """
    load()
    cpu, started = cpu_seconds(os.getpid()), time.perf_counter()
    result = join()
    seconds = time.perf_counter() - started
    rows = workload.batch * workload.batches
    return Measured(rows, seconds, (round(rows / seconds),), max(cpu_seconds(os.getpid()) - cpu, TICK), result)


def _rate_of(query: StreamingQuery, workload: Workload, reports: Mapping[int, EpochReport] | None = None) -> Measured:
    """Waits for the end; measures all full batches except those of the warm-up.

    A batch's time is Spark's own ``triggerExecution``: planning, logs and commit included. `reports` have the rows of
    each batch; if None, Spark's progress has them.
    """
    used: dict[int, float] = {}
    while query.isActive:
        done = query.lastProgress
        if done is not None and done["batchId"] not in used:
            used[done["batchId"]] = cpu_seconds(os.getpid())
        time.sleep(0.05)
    query.awaitTermination()
    used.setdefault(query.recentProgress[-1]["batchId"], cpu_seconds(os.getpid()))  # it ended between two checks
    rows = workload.batch // workload.files * workload.files
    spent = []
    for p in query.recentProgress:
        report = None if reports is None else reports.get(p["batchId"])
        n = p["numInputRows"] if reports is None else sum(report.read.values()) if report else 0
        spent.append((p["batchId"], n, p["durationMs"]["triggerExecution"]))
    full = [(batch, ms) for batch, n, ms in spent if n >= rows][workload.warm_up :]
    if not full:
        raise RuntimeError(f"no batch of {rows} rows was left to measure: {spent}")
    total, seconds = rows * len(full), sum(ms for _, ms in full) / 1000
    cpu = max(used.values()) - used[max(batch for batch in used if batch < full[0][0])]
    return Measured(total, seconds, tuple(round(rows / ms * 1000) for _, ms in full), cpu)
