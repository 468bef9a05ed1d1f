"""`reorder` on Spark: one order over all partitions, epochs and a restart, up to a table and its sink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_files
from vsc.runtime.metrics import Metrics

pytestmark = pytest.mark.spark

TOPOLOGY = """
stream s (k string, n int, at bigint)
from files (path = '${in}', format = 'json', 'maxFilesPerTrigger' = '1') key k timestamp at reorder within 10 ms;
table listed = aggregate s group by 1 as one select collect_list(n) as ns;
sink s to files (path = '${out}/s', format = 'parquet');
sink listed to files (path = '${out}/listed', format = 'parquet');
"""
FIRST = [[("z", 1, 30), ("y", 2, 25), ("c", 3, 25)], [("a", 4, 25), ("b", 5, 21), ("z", 6, 19), ("q", 7, 34)]]
LATER = [[("q", 8, 24), ("q", 9, 23), ("e", 10, 50)]]


@pytest.mark.seam("a stream in order")
def test_records_go_on_in_one_order_over_all_partitions(spark: Any, tmp_path: Path) -> None:
    plan, lost = compiled(TOPOLOGY), Metrics()
    runs = [[[dict(zip(("k", "n", "at"), row, strict=True)) for row in file] for file in files]
            for files in (FIRST, LATER)]  # fmt: skip
    for reports in run_files(plan, spark, tmp_path, runs, 4):
        for report in reports:
            lost.merge(report.metrics)
    assert sorted(row["n"] for row in parquet_rows(tmp_path / "out/s")) == [1, 2, 3, 4, 5, 7, 8]
    lists = [row["ns"] for row in parquet_rows(tmp_path / "out/listed")]
    assert max(lists, key=len) == [5, 8, 2, 3, 4, 1, 7]
    assert lost.as_dict()["dropped_records"] == {"s": {"out_of_order": 2}}
