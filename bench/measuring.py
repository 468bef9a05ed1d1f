"""A Spark session for a measurement, and the rate of a query's batches."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Measured", "rate_of", "session"]

PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows of the measured batches, the seconds that they took, and each batch's rate."""

    rows: int
    seconds: float
    batches: tuple[int, ...]

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds


def session(name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """``local[2]`` with two shuffle partitions; Spark's defaults otherwise."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName(name).master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.driver.memory", "3g")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.shuffle.partitions", str(PARTITIONS))
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def rate_of(query: StreamingQuery, warm_up: int, rows: int) -> Measured:
    """Waits for the end; the rate over all full batches (`rows` rows) but the first `warm_up` ones.

    A batch's time is Spark's own ``triggerExecution``: planning, logs and commit included.
    """
    query.awaitTermination()
    spent = [(p["numInputRows"], p["durationMs"]["triggerExecution"]) for p in query.recentProgress]
    full = [(n, ms) for n, ms in spent if n >= rows][warm_up:]
    if not full:
        raise RuntimeError(f"no batch of {rows} rows was left to measure: {spent}")
    total, seconds = rows * len(full), sum(ms for _, ms in full) / 1000
    return Measured(total, seconds, tuple(round(rows / ms * 1000) for _, ms in full))
