"""Spark's own ``ASOF JOIN`` of a stream with a static table: stateless, the table is read again in every batch.

It does less than a versioned table: it keeps no state, cannot follow a table that changes, and has no stream time, no
retention and no order of arrival. It is the fastest way that Spark itself has for the same rows.
"""

from __future__ import annotations

from pathlib import Path

from bench.measuring import Measured, measure_frame, session, stream
from bench.workload import Workload

__all__ = ["JOIN", "PAYMENTS", "measure"]

PAYMENTS = "id bigint, currency string, amount double, paid_at timestamp"
JOIN = """
select s.id, s.currency, s.amount, s.paid_at, t.rate
from payments as s left asof join rates as t match_condition (s.paid_at >= t.valid_at) on s.currency = t.currency
"""


def measure(folder: Path, workload: Workload) -> Measured:
    """Rows a second over the measured batches of the stream."""
    spark = session("asof join", {"spark.sql.join.asofJoin.enabled": "true"})
    spark.read.parquet(str(folder / "rates")).createOrReplaceTempView("rates")
    payments = stream(spark, folder / "payments", PAYMENTS, workload.files)
    payments.createOrReplaceTempView("payments")
    return measure_frame(spark.sql(JOIN), folder / "asof-checkpoint", workload)
