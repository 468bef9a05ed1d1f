"""DuckDB's ``ASOF JOIN``: the whole stream and the whole table in one query, in this process, on two threads."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from bench.measuring import Measured, measure_library
from bench.workload import Workload

__all__ = ["joined", "measure"]

_JOIN = """
select s.id, s.currency, s.amount, s.paid_at, t.rate
from read_parquet($payments) as s
asof left join read_parquet($rates) as t on s.currency = t.currency and s.paid_at >= t.valid_at
"""


def joined(folder: Path, payments: str = "*.parquet") -> tuple[int, int]:
    """How many rows the join of the files has, and how many found a partner; the result is Arrow, and dropped."""
    connection = duckdb.connect(config={"threads": 2})
    files = {"payments": str(folder / "payments" / payments), "rates": str(folder / "rates/*.parquet")}
    result: pa.Table = connection.sql(_JOIN, params=files).to_arrow_table()
    return result.num_rows, result.num_rows - result["rate"].null_count


def measure(folder: Path, workload: Workload) -> Measured:
    """Rows a second, read and joined."""
    return measure_library(lambda: joined(folder, "0000.parquet"), lambda: joined(folder), workload)
