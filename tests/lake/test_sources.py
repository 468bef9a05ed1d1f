"""Real tables of Delta Lake and Iceberg as sources: rows, changes, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lake.support import Case
from tests.spark.support import parquet_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FEED = """
table rates (currency string, rate int) from delta (path = '${table}', 'startingVersion' = '1') key currency;
sink rates to files (path = '${out}', format = 'parquet');
"""


@pytest.mark.timeout(600)
def test_the_changes_of_a_delta_table_come_in_the_order_of_its_versions(tmp_path: Path, lakes: SparkSession) -> None:
    case = Case(FEED, tmp_path, lakes, "delta")
    lakes.sql(f"create table {case.sql()} (currency string, rate bigint) using delta")
    error = case.refused()
    assert "its column 'rate' is bigint, and int cannot hold it" in error.message
    case.variables["table"] = str(tmp_path / "without")
    lakes.sql(f"create table {case.sql()} (currency string, rate int, more string) using delta")
    error = case.refused()
    assert (error.code, "has no change feed" in error.message) == ("VSC922", True)
    assert "set tblproperties (delta.enableChangeDataFeed = true)" in str(error.help)
    assert not (tmp_path / "ck").exists()
    case.variables["table"] = str(tmp_path / "fed")
    lakes.sql(
        f"create table {case.sql()} (currency string, rate int, more string) using delta "
        "tblproperties (delta.enableChangeDataFeed = true)"
    )
    lakes.sql(f"insert into {case.sql()} values ('EUR', 1, ''), ('USD', 1, ''), ('GBP', 1, '')")
    for value in range(2, 5):
        lakes.sql(f"update {case.sql()} set rate = {value} where currency = 'EUR'")
    case.delete("currency = 'USD'")
    lakes.sql(f"insert overwrite {case.sql()} values ('EUR', 9, ''), ('GBP', 7, '')")  # deletes and inserts in one
    case.run()
    rows = [(row["currency"], row["rate"], row["_change"]) for row in parquet_rows(tmp_path / "out")]
    times = [row["_timestamp"] for row in parquet_rows(tmp_path / "out")]
    of = {key: [(rate, change[0]) for name, rate, change in rows if name == key] for key in ("EUR", "USD", "GBP")}
    assert of == {
        "EUR": [(1, "u"), (2, "u"), (3, "u"), (4, "u"), (None, "d"), (9, "u")],
        "USD": [(1, "u"), (None, "d")], "GBP": [(1, "u"), (None, "d"), (7, "u")],
    }  # fmt: skip
    log = lakes.sql(f"describe history {case.sql()}").selectExpr("unix_millis(timestamp)").collect()
    commits = {row[0] for row in log}
    assert set(times) <= commits
    # The next run goes on where this one ended.
    lakes.sql(f"insert into {case.sql()} values ('NOK', 5, '')")
    case.run()
    assert len(parquet_rows(tmp_path / "out")) == len(rows) + 1


ROWS = """
stream asked (id int, at bigint) from ${lake} (path = '${table}', %s) key id timestamp at;
table rates (k int, v int, since bigint) from files (path = '${in}', format = 'json') key k timestamp since
materialize versioned (retention = 1 day);
stream found = left join asked with rates on 1 select at, v;
sink found to files (path = '${out}', format = 'parquet');
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_appended_rows_each_once_in_step_with_other_sources(tmp_path: Path, lakes: SparkSession, lake: str) -> None:
    few = {"delta": "'maxFilesPerTrigger' = '1'", "iceberg": "'streaming-max-files-per-micro-batch' = '1'"}[lake]
    case = Case(ROWS % few, tmp_path, lakes, lake)
    case.file(0, {"k": 1, "v": 5, "since": 5}, {"k": 1, "v": 15, "since": 15})
    error = case.refused()
    assert (error.code, "there is no" in error.message) == ("VSC922", True)
    lakes.sql(f"create table {case.sql()} (id bigint, at bigint) using {lake}")
    assert "its column 'id' is bigint" in case.refused().message
    case.variables["table"] = str(tmp_path / "narrow")
    lakes.sql(f"create table {case.sql()} (id int, at bigint) using {lake}")
    for number in range(3):
        lakes.sql(f"insert into {case.sql()} values ({number}, {number * 10})")
    reports = case.run()
    assert len(reports) >= 3
    assert sorted((r["at"], r["v"]) for r in parquet_rows(tmp_path / "out")) == [(0, None), (10, 5), (20, 15)]
    lakes.sql(f"insert into {case.sql()} values (3, 30)")
    case.run()
    assert sorted(r["at"] for r in parquet_rows(tmp_path / "out")) == [0, 10, 20, 30]
    lakes.sql(f"update {case.sql()} set id = 7 where id = 3")
    error = case.refused()
    assert (error.code, "were changed or deleted" in error.message) == ("VSC924", True), error
