"""Polars' ``join_asof``: the whole stream and the whole table in one query, in this process, on two threads."""

from __future__ import annotations

import os
from pathlib import Path

from bench.measuring import Measured, measure_library
from bench.workload import Workload

__all__ = ["measure"]


def measure(folder: Path, workload: Workload) -> Measured:
    """Rows a second, read, sorted by time as ``join_asof`` requires, and joined."""
    os.environ["POLARS_MAX_THREADS"] = "2"  # Polars reads it on import
    import polars

    def join(payments: str = "*.parquet") -> tuple[int, int]:
        stream = polars.scan_parquet(folder / "payments" / payments).sort("paid_at")
        table = polars.scan_parquet(folder / "rates" / "*.parquet").sort("valid_at")
        joined = stream.join_asof(table, left_on="paid_at", right_on="valid_at", by="currency", check_sortedness=False)
        result = joined.select("id", "currency", "amount", "paid_at", "rate").collect()
        return result.height, result.height - result["rate"].null_count()

    return measure_library(lambda: join("0000.parquet"), join, workload)
