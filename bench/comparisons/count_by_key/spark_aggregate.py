"""Spark's own streaming aggregate: it sends the count of each key of a batch, once for each batch (update mode)."""

from __future__ import annotations

from pathlib import Path

from bench.measuring import Measured, measure_frame, session, stream
from bench.workload import Workload

__all__ = ["measure"]


def measure(folder: Path, workload: Workload) -> Measured:
    """Rows a second over the measured batches of the stream."""
    spark = session("count by key")
    payments = stream(spark, folder / "payments", "id bigint, currency string, amount double, paid_at timestamp")
    counted = payments.groupBy("currency").count()
    return measure_frame(counted, folder / "spark-checkpoint", workload, mode="update")
