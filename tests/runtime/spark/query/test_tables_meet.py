"""Joins of tables, changes, global tables, exploded and merged ones on Spark: per key what the test driver gives."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.epochs import EpochRow, order_epoch
from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.testing import TopologyTestDriver

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOPOLOGY = """
table staff (id string, boss string, n int, at bigint)
  from files (path = '${in}/staff', format = 'json') key id timestamp at;
global table names (id string, name string, at bigint)
  from files (path = '${in}/names', format = 'json') key id timestamp at;
stream notes (id string, words array<string>, at bigint)
  from files (path = '${in}/notes', format = 'json') key id timestamp at;
stream word = explode notes by words as word;
stream shout = map word select upper(word) as word;
stream plain = map word select word;
stream both = merge shout, plain;
stream named = left join both with names on word select word, names.name as name;
table bosses = left join staff as s with staff as b on s.boss select s.n as own, b.n as boss;
table latest = to_table named;
table met = outer join bosses with latest select own, boss, word, name;
sink named to files (path = '${out}/named', format = 'parquet') ;
stream moved = to_stream bosses;
table kept = to_table notes;
table each = explode kept by words as (n, word);
sink met to files (path = '${out}/met', format = 'parquet');
sink moved to files (path = '${out}/moved', format = 'parquet');
sink each to files (path = '${out}/each', format = 'parquet');
"""

ROWS: dict[str, list[dict[str, Any]]] = {
    "staff": [
        {"id": "a", "boss": "b", "n": 1, "at": 1}, {"id": "b", "boss": "b", "n": 2, "at": 2},
        {"id": "c", "boss": None, "n": 3, "at": 3}, {"id": "b", "boss": "a", "n": 4, "at": 6},
        {"id": "d", "boss": "b", "n": 5, "at": 7}, {"id": "a", "boss": None, "n": 6, "at": 8},
    ],
    "names": [{"id": "x", "name": "ex", "at": 2}, {"id": "Y", "name": "why", "at": 5}],
    "notes": [
        {"id": "a", "words": ["x", "y"], "at": 4}, {"id": "b", "words": [], "at": 5},
        {"id": "c", "words": ["y"], "at": 6}, {"id": "d", "words": ["x", "z"], "at": 9},
    ],
}  # fmt: skip


@pytest.mark.seam("joins of tables, global tables, merge, explode")
def test_tables_meet_on_spark_as_in_the_driver(spark: Any, tmp_path: Path) -> None:
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    plan = compiled(TOPOLOGY)
    for source, rows in ROWS.items():
        write_json(tmp_path / "in" / source / "f.json", rows, 0)
    run_once(plan, spark, tmp_path / "ck", variables=variables, partitions=2, local_dir=str(tmp_path / "local"))
    fed = [EpochRow(s, "f", i, row, row["at"]) for s, rows in ROWS.items() for i, row in enumerate(rows)]
    with TopologyTestDriver(TOPOLOGY, variables=variables, partitions=2) as driver:
        for one in order_epoch(plan, fed):
            driver.pipe(one.source, one.row)
        for node in ("named", "met", "moved", "each"):
            expected = defaultdict(list)
            for record in driver.read(node):
                expected[tuple(record.key.values())].append(record.value)
            found = defaultdict(list)
            for row in parquet_rows(tmp_path / "out" / node):
                change = row.pop("_change", "upsert")
                row.pop("_timestamp", None)
                key = tuple(row.pop(column.name) for column in plan.node(node).schema.key)
                found[key].append(row if change == "upsert" else None)
            assert found == expected, node
            assert len(found) >= 3
