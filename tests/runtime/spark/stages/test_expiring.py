"""Rows that expire on Spark: in partitions without input, across epochs and a restart, up to the sinks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_files
from vsc.runtime.metrics import Metrics

pytestmark = pytest.mark.spark

TOPOLOGY = """
table seen (device string, place string, at bigint)
from files (path = '${in}', format = 'json', 'maxFilesPerTrigger' = '1') key device timestamp at
materialize unversioned (expire = 20 ms);
table crowded = aggregate seen group by place select count(*) as n;
sink seen to files (path = '${out}/seen', format = 'parquet');
sink crowded to files (path = '${out}/crowded', format = 'parquet');
"""
FIRST = [[("a", "x", 100), ("b", "x", 101), ("c", "y", 102)], [("b", "y", 110), ("d", "y", 121), ("a", "x", 101)]]
LATER = [[("e", "x", 160)]]


def changes(folder: Path, *columns: str) -> list[tuple[Any, ...]]:
    names = (*columns, "_change", "_timestamp")
    return sorted((tuple(row[name] for name in names) for row in parquet_rows(folder)), key=lambda row: (row[-1], row))


@pytest.mark.seam("rows that expire")
def test_rows_expire_wherever_the_clock_is_moved(spark: Any, tmp_path: Path) -> None:
    plan, lost = compiled(TOPOLOGY), Metrics()
    columns = ("device", "place", "at")
    runs = [[[dict(zip(columns, row, strict=True)) for row in file] for file in files] for files in (FIRST, LATER)]
    for reports in run_files(plan, spark, tmp_path, runs, 4):
        for report in reports:
            lost.merge(report.metrics)
    assert changes(tmp_path / "out/seen", "device") == [
        ("a", "upsert", 100), ("b", "upsert", 101), ("c", "upsert", 102), ("b", "upsert", 110), ("a", "delete", 120),
        ("d", "upsert", 121), ("c", "delete", 122), ("b", "delete", 130), ("d", "delete", 141), ("e", "upsert", 160),
    ]  # fmt: skip
    assert changes(tmp_path / "out/crowded", "place", "n") == [
        ("x", 1, "upsert", 100), ("x", 2, "upsert", 101), ("y", 1, "upsert", 102), ("x", 1, "upsert", 110),
        ("y", 2, "upsert", 110), ("x", None, "delete", 120), ("y", 3, "upsert", 121), ("y", 2, "upsert", 122),
        ("y", 1, "upsert", 130), ("y", None, "delete", 141), ("x", 1, "upsert", 160),
    ]  # fmt: skip
    assert lost.as_dict()["dropped_records"] == {"seen": {"expired": 1}}
