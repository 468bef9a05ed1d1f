"""What the tests on Spark share: input files with times of their own, runs of a topology, sink files read back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from vsc.compiler import compile_topology
from vsc.runtime.spark.exchange.counters import EpochReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from vsc.plan import Plan

__all__ = ["compiled", "parquet_rows", "run_epochs", "run_files", "run_once", "write_json"]

_BASE_SECONDS = 1_700_000_000
_STARTS = 3


def compiled(text: str) -> Plan:
    """The plan of a topology in a test."""
    return compile_topology(text, path="test.vdsl")


def write_json(path: Path, rows: Iterable[Mapping[str, Any]], order: int) -> None:
    """A file of JSON lines; `order` gives it a modification time, so that Spark takes files in that order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name("_" + path.name)
    aside.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(aside, (_BASE_SECONDS + order, _BASE_SECONDS + order))
    aside.rename(path)


def run_once(plan: Plan, spark: SparkSession, checkpoint: Path, **arguments: Any) -> list[EpochReport]:
    """Runs a plan over all input there is; returns what its epochs did."""
    from vsc.runtime.spark import start

    reports: list[EpochReport] = []
    _to_its_end(
        lambda: start(plan, spark, checkpoint=str(checkpoint), on_epoch=reports.append, **arguments).awaitTermination()
    )
    return reports


def _to_its_end(run: Callable[[], object]) -> None:
    """Runs a query; again, as `vsc run` does, where Spark has given up on a Python worker of a busy machine."""
    from pyspark.errors import StreamingQueryException

    from vsc.runtime.spark.query.failures import started_late

    for left in reversed(range(_STARTS)):
        try:
            run()
            return
        except StreamingQueryException as error:
            if not left or not started_late(error):
                raise


def run_files(
    plan: Plan,
    spark: SparkSession,
    folder: Path,
    runs: Sequence[Sequence[Iterable[Mapping[str, Any]]]],
    partitions: int,
) -> list[list[EpochReport]]:
    """Several runs, one after the other: what each adds of files to ``in``, and what its epochs did."""
    variables = {"in": str(folder / "in"), "out": str(folder / "out")}
    number, done = 0, []
    for files in runs:
        for rows in files:
            write_json(folder / f"in/{number}.json", rows, number)
            number += 1
        done.append(run_once(plan, spark, folder / "ck", variables=variables, partitions=partitions))
    return done


def run_epochs(
    plan: Plan, spark: SparkSession, checkpoint: Path, epochs: Sequence[Callable[[], None]], **arguments: Any
) -> list[EpochReport]:
    """Runs a plan over input that comes about: each of `epochs` makes the files of one epoch, when the one before ends.

    No source has more to bring than what an epoch reads, so nothing waits.
    """
    from vsc.runtime.spark import start

    reports: list[EpochReport] = []
    coming = iter(epochs)

    def done(report: EpochReport) -> None:
        reports.append(report)
        next(coming, lambda: None)()

    def run() -> None:
        query = start(plan, spark, checkpoint=str(checkpoint), on_epoch=done, trigger="20 ms", **arguments)
        query.processAllAvailable()
        query.stop()

    next(coming)()
    _to_its_end(run)
    return reports


def parquet_rows(folder: Path) -> list[dict[str, Any]]:
    """All rows of a sink's folder, in the order of the files' names (epoch, then partition)."""
    return [row for file in sorted(folder.glob("part-*.parquet")) for row in pq.read_table(file).to_pylist()]
