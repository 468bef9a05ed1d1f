"""A file that a test feeds is read as a query reads it: the same rows, and the same ones dropped."""

from __future__ import annotations

import bz2
import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once
from vsc.testing import TopologyTestDriver

pytestmark = [pytest.mark.spark, pytest.mark.release]

TOPOLOGY = """
stream rows ({columns}) from files (path = '${{in}}', format = '{form}'{more}) timestamp at;
stream kept = map rows select *;
sink kept to files (path = '${{out}}', format = 'parquet', with_timestamp = true);
"""
LOCAL = (
    b"id;name;at;day\r\n1;'x; y';29.03.2026 02:30;01.02.2026\r\n2;;25.10.2026 02:30;\r\n"
    b"3;c;31.04.2026 10:00;01.02.2026\r\nfour;c;01.04.2026 10:00;01.02.2026\r\n5;-;01.04.2026 10:00;2026-02-01\r\n"
    b"6;c;01.04.2026 10:00;01.02.2026;7\r\n\r\n"
    b"8;\xff;01.04.2026 10:00;01.02.2026\r\n9;'two\r\nlines';01.04.2026 10:00;"
)
OPTIONS = (
    ", time_zone = 'Europe/Berlin', 'sep' = ';', 'quote' = '''', 'nullValue' = '-', "
    "'timestampFormat' = 'dd.MM.yyyy HH:mm', 'dateFormat' = 'dd.MM.yyyy'"
)
COLUMNS = "id int, name string, at timestamp, day date"
JSON = (
    b'\xef\xbb\xbf{"id": 1, "name": "a", "at": "2026-03-01T10:00:00Z", "day": "2026-02-01"}\n'
    b'[{"id": 2, "at": 5}, {"id": 3}]\n'
    b'{"id": 4, "name": {"b": [1.50]}, "at": "2026-03-01 10:00:00"}\r\n\n'
    b'not json\n{"id": 5.5, "at": 9}\r{"id": 6, "at": 7}'
)
OFFSETS = b'{"id": 1, "at": "01.03.2026 10:00 +0530"}\n{"id": 2, "at": "01.03.2026 10:00 Z"}\n{"id": 3, "at": "soon"}\n'
ZONED = ", time_zone = 'Europe/Berlin', 'timestampFormat' = 'dd.MM.yyyy HH:mm X'"
CASES = {
    "csv": ("a.csv", LOCAL, "csv", OPTIONS, 8, 5),
    "gzip": ("a.csv.gz", gzip.compress(LOCAL), "csv", OPTIONS, 8, 5),
    "json": ("a.json", JSON, "json", "", 7, 3),
    "bzip2": ("a.json.bz2", bz2.compress(JSON), "json", "", 7, 3),
    "whole": ("a.json", b'[{"id": 1,\n"at": 5},\n{"id": 2, "at": 6}]', "json", ", 'multiLine' = 'true'", 2, 0),
    "ended": ("a.json", b'{"id": 1, "at": 5}|{"id": 2, "at": 6}|', "json", ", 'lineSep' = '|'", 2, 0),
    "offsets": (
        "a.json",
        OFFSETS,
        "json",
        ", time_zone = 'Europe/Berlin', 'timestampFormat' = 'dd.MM.yyyy HH:mm X'",
        3,
        1,
    ),
    "folder": ("day=2026-02-05/a.csv", b"id,name,at\n1,a,2026-03-01\n", "csv", "", 1, 0),
    "misfolder": ("day=soon/a.csv", b"id,name,at\n1,a,2026-03-01\n", "csv", "", 1, 1),
}


@pytest.mark.parametrize("case", CASES)
def test_text_is_read_as_in_a_query(spark: Any, tmp_path: Path, case: str) -> None:
    name, data, form, more, count, bad = CASES[case]
    path = tmp_path / "in" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    _compare(spark, tmp_path, path, TOPOLOGY.format(columns=COLUMNS, form=form, more=more), count, bad)


def test_parquet_is_read_as_in_a_query(spark: Any, tmp_path: Path) -> None:
    at = pa.array([datetime(2026, 3, 1, tzinfo=UTC), None, datetime(2026, 3, 2, tzinfo=UTC)], pa.timestamp("ns", "UTC"))
    path = tmp_path / "in" / "a.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"ID": pa.array([1, 2, 1 << 40]), "at": at, "name": ["a", None, "c"]}), path)
    text = TOPOLOGY.format(columns=COLUMNS, form="parquet", more=", missing_columns = 'null'").replace(
        "id int", "id bigint"
    )
    _compare(spark, tmp_path, path, text, 3, 1)


def _compare(spark: Any, folder: Path, path: Path, text: str, count: int, bad: int) -> None:
    variables = {"in": str(folder / "in"), "out": str(folder / "out")}
    reports = run_once(compiled(text), spark, folder / "ck", variables=variables)
    lost: dict[str, int] = {}
    for report in reports:
        for reason, number in report.metrics.as_dict()["dropped_records"].get("rows", {}).items():  # type: ignore[union-attr]
            lost[reason] = lost.get(reason, 0) + number
    with TopologyTestDriver(text) as driver:
        driver.pipe_file("rows", path)
        read, told = driver.read("kept"), driver.metrics()["dropped_records"].get("rows", {})
    found = [{**(one.value or {}), "_timestamp": one.timestamp} for one in read]
    assert sorted(found, key=str) == sorted(parquet_rows(folder / "out"), key=str)
    assert told == lost
    assert (len(found) + sum(lost.values()), sum(lost.values())) == (count, bad)
