"""What came before each record, on Spark: over epochs, a restart and partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_files

pytestmark = pytest.mark.spark

TOPOLOGY = """
stream s (k string, id string, n int, at bigint)
from files (path = '${in}', format = 'json', 'maxFilesPerTrigger' = '1') key k timestamp at;
stream o = left join s as l with s as r within (before = 10 ms) grace 5 ms strictly before
  select l.id, count(r.id) as n, sum(r.n) as total, max(r.n) over 4 ms as top;
sink o to files (path = '${out}/o', format = 'parquet');
"""
FIRST = [[("x", "p1", 10, 10), ("x", "p2", 20, 18), ("y", "q1", 3, 12)], [("x", "p3", 5, 14), ("x", "p4", 1, 23)]]
LATER = [[("x", "p5", 7, 13), ("y", "q2", 4, 40)], [("z", "r1", 1, 60)]]


@pytest.mark.seam("what came before")
def test_each_record_is_given_what_came_before_it(spark: Any, tmp_path: Path) -> None:
    runs = [[[dict(zip(("k", "id", "n", "at"), row, strict=True)) for row in file] for file in files]
            for files in (FIRST, LATER)]  # fmt: skip
    list(run_files(compiled(TOPOLOGY), spark, tmp_path, runs, 3))
    found = {row["id"]: (row["n"], row["total"], row["top"]) for row in parquet_rows(tmp_path / "out/o")}
    assert found == {
        "p1": (0, None, None), "q1": (0, None, None), "p3": (1, 10, 10), "p5": (1, 10, 10), "p2": (3, 22, 5),
        "p4": (3, 32, None), "q2": (0, None, None),
    }  # fmt: skip
