"""What both joins by hand with ``transformWithState`` share: the two inputs as one, by key."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import functions
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from bench.measuring import Measured, measure_frame, session, stream
from bench.workload import Workload

__all__ = ["STATE", "measure_by_hand"]

STATE = "valid_at bigint, rate double"
"""A version, as an element of a list state."""

_OUTPUT = "id bigint, currency string, amount double, paid_at bigint, rate double"


def measure_by_hand(name: str, processor: StatefulProcessor, folder: Path, workload: Workload) -> Measured:
    """Rows a second over the measured batches of the stream; the table comes with the first batch.

    `processor` gets rows with ``is_rate``, ``at`` (µs), ``rate`` or ``id`` and ``amount``, grouped by ``currency``.
    """
    spark = session(name)
    rates = spark.readStream.schema("currency string, rate double, valid_at timestamp").parquet(str(folder / "rates"))
    schema = "id bigint, currency string, amount double, paid_at timestamp"
    payments = stream(spark, folder / "payments", schema, workload.files)
    nothing = functions.lit(None)
    table = rates.select(
        "currency", functions.unix_micros("valid_at").alias("at"), functions.lit(True).alias("is_rate"), "rate",
        nothing.cast("bigint").alias("id"), nothing.cast("double").alias("amount"),
    )  # fmt: skip
    rows = payments.select(
        "currency", functions.unix_micros("paid_at").alias("at"), functions.lit(False).alias("is_rate"),
        nothing.cast("double").alias("rate"), "id", "amount",
    )  # fmt: skip
    grouped = table.unionByName(rows).groupBy("currency")
    joined = grouped.transformWithState(processor, _OUTPUT, "Append", "None")
    joined = joined.withColumn("paid_at", functions.timestamp_micros("paid_at"))
    return measure_frame(joined, folder / f"{name}-checkpoint", workload)
