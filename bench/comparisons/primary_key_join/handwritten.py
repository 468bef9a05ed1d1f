"""The same join as a user would write it by hand: ``transformWithState``, grouped by the key.

In each batch, it reads and writes the newest rows of a key's two sides once, and sorts the batch's rows by time. It
handles no deletions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import Row, functions
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from bench.measuring import Measured, measure_frame, session, stream
from bench.workload import Workload

__all__ = ["measure"]

_OUTPUT = "id string, amount double, paid double, open double"


class Balance(StatefulProcessor):
    """Keeps the newest amount and payment of an order."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._newest = handle.getValueState("newest", "amount double, paid double")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        """Joins each change with the other side's row at that time."""
        amount, paid = self._newest.get() or (None, None)
        for row in sorted(rows, key=lambda row: row.at):
            if row.amount is not None:
                amount = row.amount
            else:
                paid = row.paid
            if amount is not None and paid is not None:
                yield Row(id=key[0], amount=amount, paid=paid, open=amount - paid)
        self._newest.update((amount, paid))

    def close(self) -> None:
        """Nothing to close."""


def measure(folder: Path, workload: Workload) -> Measured:
    """Rows of both tables a second over the measured batches."""
    spark = session("hand-written")
    orders = stream(spark, folder / "orders", "id string, amount double, at timestamp")
    payments = stream(spark, folder / "payments", "id string, paid double, at timestamp")
    nothing = functions.lit(None).cast("double")
    at = functions.unix_micros("at").alias("at")
    changes = orders.select("id", at, "amount", nothing.alias("paid")).unionByName(
        payments.select("id", at, nothing.alias("amount"), "paid")
    )
    joined = changes.groupBy("id").transformWithState(Balance(), _OUTPUT, "Append", "None")
    return measure_frame(joined, folder / "handwritten-checkpoint", workload)
