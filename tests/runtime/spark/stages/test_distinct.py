"""`distinct` on Spark: across epochs, partitions and a restart, by the stream's key and by a value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_files
from vsc.runtime.metrics import Metrics

pytestmark = pytest.mark.spark

TOPOLOGY = """
stream clicks (id string, visitor string, at bigint)
from files (path = '${in}', format = 'json', 'maxFilesPerTrigger' = '1') key id timestamp at;
stream once = distinct clicks within 10 ms;
stream visits = distinct clicks by visitor within 10 ms grace 5 ms;
sink once to files (path = '${out}/once', format = 'parquet');
sink visits to files (path = '${out}/visits', format = 'parquet');
"""
FIRST = [
    [("a", "x", 100), ("b", "x", 101), ("c", "y", 102), ("a", "z", 109)],
    [("a", "z", 110), ("b", "x", 109), ("c", "y", 112)],
]
LATER = [[("d", "y", 113), ("a", "x", 119), ("b", None, 120), ("a", "x", 200), ("a", "x", 180)]]


def times(folder: Path) -> list[tuple[str, int]]:
    return sorted((row["id"], row["at"]) for row in parquet_rows(folder))


@pytest.mark.seam("distinct")
def test_repeats_are_dropped_over_epochs_and_a_restart(spark: Any, tmp_path: Path) -> None:
    plan, lost = compiled(TOPOLOGY), Metrics()
    columns = ("id", "visitor", "at")
    runs = [[[dict(zip(columns, row, strict=True)) for row in file] for file in files] for files in (FIRST, LATER)]
    for files, reports in zip(runs, run_files(plan, spark, tmp_path, runs, 2), strict=True):
        assert len(reports) == len(files)
        for report in reports:
            lost.merge(report.metrics)
    assert times(tmp_path / "out/once") == [
        ("a", 100), ("a", 110), ("a", 200), ("b", 101), ("b", 120), ("c", 102), ("c", 112), ("d", 113),
    ]  # fmt: skip
    assert times(tmp_path / "out/visits") == [("a", 100), ("a", 109), ("a", 119), ("a", 200), ("c", 102), ("c", 112)]
    assert lost.as_dict()["dropped_records"] == {
        "once": {"duplicate": 3, "expired": 1},
        "visits": {"duplicate": 4, "expired": 1, "null_join_key": 1},
    }
