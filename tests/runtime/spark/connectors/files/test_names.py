"""Names in backticks, whatever is in them, from the files of a source to those of a sink."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json

pytestmark = pytest.mark.spark

SOURCES = """
stream `my stream` (`order-id` string, `a.b` int, `select` string, `x``y` int, tags array<struct<`n-1`: int>>)
from files (path = '${d}/in', format = 'json') key `order-id`;
"""
STATEFUL = """
table `t.b` (`k.1` string, `v v` double, since timestamp) from files (path = '${d}/tb', format = 'csv')
key `k.1` timestamp since materialize versioned (retention = 100000 days);
stream `j.j` = left join `my stream` as `m s` with `t.b` on `select`
select `order-id`, `m s`.`a.b` + 1 as `sum(1)`, `x``y`, `v v`, tags[0].`n-1` as `first n-1`;
sink `j.j` to files (path = '${d}/joined', format = 'parquet');
"""
STATELESS = """
stream `only mapped` = map `my stream` select `a.b` * 2 as `d.d`, `x``y`, tags;
sink `only mapped` to files (path = '${d}/mapped', format = 'json');
"""
ROWS = [
    {"order-id": "o1", "a.b": 1, "select": "k1", "x`y": 5, "tags": [{"n-1": 7}]},
    {"order-id": "o2", "a.b": 2, "select": "k2", "x`y": None, "tags": [{"n-1": 8}]},
]


def test_names_that_spark_would_read_as_paths(spark: Any, tmp_path: Path) -> None:
    write_json(tmp_path / "in" / "a.json", ROWS, 0)
    (tmp_path / "tb").mkdir()
    (tmp_path / "tb" / "a.csv").write_text("k.1,v v,since\nk1,1.5,1970-01-01T00:00:00Z\n")
    run_once(compiled(SOURCES + STATELESS), spark, tmp_path / "ck1", variables={"d": str(tmp_path)})
    lines = [json.loads(text) for file in (tmp_path / "mapped").glob("*.json") for text in file.open()]
    assert sorted(lines, key=lambda row: row["order-id"]) == [
        {"order-id": "o1", "d.d": 2, "x`y": 5, "tags": [{"n-1": 7}]},
        {"order-id": "o2", "d.d": 4, "tags": [{"n-1": 8}]},
    ]
    run_once(compiled(SOURCES + STATEFUL), spark, tmp_path / "ck2", variables={"d": str(tmp_path)}, partitions=1)
    assert parquet_rows(tmp_path / "joined") == [
        {"k.1": "k1", "order-id": "o1", "sum(1)": 2, "x`y": 5, "v v": 1.5, "first n-1": 7},
        {"k.1": "k2", "order-id": "o2", "sum(1)": 3, "x`y": None, "v v": None, "first n-1": 8},
    ]


def test_a_column_called_as_that_of_sparks_about_files(spark: Any, tmp_path: Path) -> None:
    row = {"id": 1, "_metadata": {"file_path": "mine"}}
    write_json(tmp_path / "json" / "a.json", [row], 0)
    (tmp_path / "parquet").mkdir()
    pq.write_table(pa.Table.from_pylist([{**row, "id": 2}]), tmp_path / "parquet" / "a.parquet")
    text = "".join(
        f"stream {form} (id bigint, _metadata struct<file_path: string>) "
        f"from files (path = '${{d}}/{form}', format = '{form}');\n"
        for form in ("json", "parquet")
    )
    text += (
        "stream both = merge json, parquet;\nstream o = map both select struct(id + 1 as next, _metadata as m) as s;\n"
    )
    run_once(
        compiled(text + "sink o to files (path = '${d}/out', format = 'parquet');"),
        spark, tmp_path / "ck", variables={"d": str(tmp_path)},
    )  # fmt: skip
    assert parquet_rows(tmp_path / "out") == [
        {"s": {"next": 2, "m": {"file_path": "mine"}}},
        {"s": {"next": 3, "m": {"file_path": "mine"}}},
    ]
