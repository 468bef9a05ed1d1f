"""Where held records meet another source, on Spark: epochs, partitions and a restart, one source far ahead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.runtime.metrics import Metrics

pytestmark = pytest.mark.spark

TOPOLOGY = """
stream a (k string, n int, at bigint) from files (path = '${in}/a', format = 'json') key k timestamp at
  reorder within 5 ms;
stream b (k string, n int, at bigint) from files (path = '${in}/b', format = 'json') key k timestamp at;
stream m = merge a, b;
table w = aggregate m group by k window tumbling (size = 10 ms) emit final select collect_list(n) as ns;
table wa = aggregate a group by k window tumbling (size = 10 ms) select count(*) as n;
table wb = aggregate b group by k window tumbling (size = 10 ms) select count(*) as n;
table both = outer join wa with wb select wa.n as a, wb.n as b;
table closed = suppress both until window closes;
sink w to files (path = '${out}/w', format = 'parquet');
sink closed to files (path = '${out}/closed', format = 'parquet');
"""
RUNS: list[dict[str, list[tuple[str, int, int]]]] = [
    {"a": [("x", 1, 3), ("y", 2, 2)], "b": [("x", 3, 4), ("z", 4, 90)]},
    {"a": [("x", 5, 9), ("y", 6, 17)]},
    {"a": [("x", 7, 16), ("y", 8, 45)], "b": [("y", 9, 91)]},
]


def test_a_source_that_is_ahead_makes_nothing_late(spark: Any, tmp_path: Path) -> None:
    plan, lost = compiled(TOPOLOGY), Metrics()
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    for number, files in enumerate(RUNS):
        for name in "ab":
            rows = [dict(zip(("k", "n", "at"), row, strict=True)) for row in files.get(name, ())]
            write_json(tmp_path / f"in/{name}/{number}.json", rows, number)
        for report in run_once(plan, spark, tmp_path / "ck", variables=variables, partitions=3):
            lost.merge(report.metrics)
    found = sorted((row["k"], row["ns"]) for row in parquet_rows(tmp_path / "out/w"))
    assert found == [("x", [1, 3, 5]), ("x", [7]), ("y", [2]), ("y", [6])]
    joined = sorted((row["k"], row["a"], row["b"]) for row in parquet_rows(tmp_path / "out/closed"))
    assert joined == [("x", 1, None), ("x", 2, 1), ("y", 1, None), ("y", 1, None)]
    assert not lost.as_dict()["dropped_records"]
