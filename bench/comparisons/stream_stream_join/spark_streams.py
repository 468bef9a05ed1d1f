"""Spark's own join of two streams: an inner join by key and times, with a watermark on each side that bounds state."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import functions

from bench.measuring import Measured, measure_frame, session, stream
from bench.workload import Workload

__all__ = ["measure"]


def measure(folder: Path, workload: Workload) -> Measured:
    """Rows of both streams a second over the measured batches."""
    spark = session("join of streams")
    orders = stream(spark, folder / "orders", "id string, amount double, at timestamp")
    payments = stream(spark, folder / "payments", "id string, paid double, at timestamp")
    left, right = orders.withWatermark("at", "1 minute").alias("o"), payments.withWatermark("at", "1 minute").alias("p")
    paid = left.join(
        right, functions.expr("o.id = p.id and p.at >= o.at and p.at <= o.at + interval 1 minute"), "inner"
    ).selectExpr("o.id", "amount", "paid", "amount - paid as open")
    return measure_frame(paid, folder / "spark-checkpoint", workload)
