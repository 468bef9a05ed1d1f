"""The same join as a user would write it by hand: ``transformWithState``, grouped by the join's key.

A list of versions a key; table rows are added to it, each stream row searches it. It has no stream time, no retention
and no order between the two inputs beyond "the batch's table rows first", which it also does not get right.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import Row, functions
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from bench.measuring import Measured, measure_frame, session, stream
from bench.workload import Workload

__all__ = ["measure"]

_OUTPUT = "id bigint, currency string, amount double, paid_at bigint, rate double"


class AsOfJoin(StatefulProcessor):
    """Keeps the versions of one currency and joins its payments with them."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._versions = handle.getListState("versions", "valid_at bigint, rate double")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        """The table rows of the batch are added first."""
        incoming = list(rows)
        added = [(row.at, row.rate) for row in incoming if row.is_rate]
        if added:
            self._versions.appendList(added)
        versions = sorted((v[0], v[1]) for v in self._versions.get())
        times = [at for at, _ in versions]
        for row in incoming:
            if not row.is_rate:
                place = bisect_right(times, row.at) - 1
                rate = versions[place][1] if place >= 0 else None
                yield Row(id=row.id, currency=key[0], amount=row.amount, paid_at=row.at, rate=rate)

    def close(self) -> None:
        """Nothing is held."""


def measure(folder: Path, workload: Workload) -> Measured:
    """Rows a second over the measured batches of the stream; the table comes with the first batch."""
    spark = session("hand-written")
    rates = spark.readStream.schema("currency string, rate double, valid_at timestamp").parquet(str(folder / "rates"))
    payments = stream(spark, folder / "payments", "id bigint, currency string, amount double, paid_at timestamp")
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
    joined = grouped.transformWithState(AsOfJoin(), _OUTPUT, "Append", "None")
    joined = joined.withColumn("paid_at", functions.timestamp_micros("paid_at"))
    return measure_frame(joined, folder / "handwritten-checkpoint", workload)
