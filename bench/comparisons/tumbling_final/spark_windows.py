"""Spark's own windows: the watermark moves between batches; each window is sent once, after the watermark passed it."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import functions

from bench.measuring import Measured, measure_frame, session, stream
from bench.workload import Workload

__all__ = ["measure"]


def measure(folder: Path, workload: Workload) -> Measured:
    """Rows a second over the measured batches of the stream."""
    spark = session("tumbling windows")
    payments = stream(spark, folder / "payments", "id bigint, currency string, amount double, paid_at timestamp")
    grouped = payments.withWatermark("paid_at", "1 minute").groupBy(functions.window("paid_at", "1 minute"), "currency")
    totals = grouped.agg(functions.count("*").alias("payments"), functions.sum("amount").alias("amount"))
    return measure_frame(totals, folder / "spark-checkpoint", workload)
