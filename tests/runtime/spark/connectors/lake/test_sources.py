"""Real tables of Delta Lake and Iceberg as sources: rows, changes, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.runtime.spark.connectors.lake.support import Case
from tests.runtime.spark.support import parquet_rows

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
    # An update of a key deletes the old one. The last commit of a run is read, whatever it does.
    lakes.sql(f"update {case.sql()} set currency = 'DKK', rate = 6 where currency = 'NOK'")
    case.run()
    lakes.sql(f"delete from {case.sql()} where currency = 'GBP'")
    case.run()
    found = [(row["currency"], row["rate"], row["_change"]) for row in parquet_rows(tmp_path / "out")[len(rows) + 1 :]]
    assert found == [("NOK", None, "delete"), ("DKK", 6, "upsert"), ("GBP", None, "delete")]


ROWS = """
table rates (k int, v int, since bigint) from ${lake} (path = '${table}', %s)
key k timestamp since materialize versioned (retention = 1 day);
stream asked (id int, at bigint) from files (path = '${in}', format = 'json') key id timestamp at;
stream found = left join asked with rates on 1 select at, v;
sink found to files (path = '${out}', format = 'parquet');
"""
FEW = {
    "delta": "'maxFilesPerTrigger' = '1', 'readChangeFeed' = 'false'",
    "iceberg": "'streaming-max-files-per-micro-batch' = '1'",
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_appended_rows_each_once_in_step_with_other_sources(tmp_path: Path, lakes: SparkSession, lake: str) -> None:
    case = Case(ROWS % FEW[lake], tmp_path, lakes, lake)
    case.file(0, *({"id": 1, "at": at} for at in (0, 10, 20, 30)))
    error = case.refused()
    assert (error.code, "there is no" in error.message) == ("VSC922", True)
    lakes.sql(f"create table {case.sql()} (k bigint, v int, since bigint) using {lake}")
    assert "its column 'k' is bigint, and int cannot hold it" in case.refused().message
    case.variables["table"] = str(tmp_path / "narrow")
    lakes.sql(f"create table {case.sql()} (since bigint, k int, v int) using {lake}")
    for number in range(3):
        lakes.sql(f"insert into {case.sql()} values ({number * 10 + 5}, 1, {number})")
    # The stream's rows, all in the first epoch, wait for the table's, which come one in each.
    assert len(case.run()) >= 3
    assert sorted((r["at"], r["v"]) for r in parquet_rows(tmp_path / "out")) == [(0, None), (10, 0), (20, 1), (30, 2)]
    lakes.sql(f"insert into {case.sql()} values (35, 1, 3)")
    case.file(1, {"id": 1, "at": 40})
    case.run()
    found = sorted((r["at"], r["v"]) for r in parquet_rows(tmp_path / "out"))
    assert found == [(0, None), (10, 0), (20, 1), (30, 2), (40, 3)]
    lakes.sql(f"update {case.sql()} set v = 7 where v = 3")
    error = case.refused()
    assert (error.code, "were changed or deleted" in error.message) == ("VSC924", True), error


NAMED = """
stream rows (id int, at bigint) from files (path = '${in}', format = 'json') timestamp at;
sink rows to ${lake} (table = '${name}', create = true);
"""
BACK = """
stream rows (id int, at bigint) from ${lake} (table = '${name}') timestamp at;
sink rows to files (path = '${out}', format = 'parquet');
"""


@pytest.mark.seam("delta source", "delta sink", "iceberg source", "iceberg sink")
@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_tables_by_their_names_in_a_catalog(tmp_path: Path, lakes: SparkSession, lake: str) -> None:
    lakes.conf.set("spark.sql.catalog.cat", "org.apache.iceberg.spark.SparkCatalog")
    lakes.conf.set("spark.sql.catalog.cat.type", "hadoop")
    lakes.conf.set("spark.sql.catalog.cat.warehouse", str(tmp_path))
    case, back = Case(NAMED, tmp_path, lakes, lake), Case(BACK, tmp_path, lakes, lake)
    case.file(0, {"id": 1, "at": 5}, {"id": 2, "at": 6})
    case.variables["name"] = back.variables["name"] = {"delta": "by_name", "iceberg": "cat.db.by_name"}[lake]
    case.run()
    case.uncommit(0)
    case.run()
    back.run(checkpoint="ck2")
    assert sorted((row["id"], row["at"]) for row in parquet_rows(tmp_path / "out")) == [(1, 5), (2, 6)]
    case.variables["name"] = {"delta": "nowhere.by_name", "iceberg": "nowhere.db.by_name"}[lake]
    error = case.refused(checkpoint="ck3")
    expected = {"delta": ("VSC922", "there is no schema for"), "iceberg": ("VSC923", "the session has no catalog for")}
    assert (error.code, expected[lake][1] in error.message) == (expected[lake][0], True), error


APPENDED = """
stream rates (k int, v int, since bigint) from ${lake} (path = '${table}'%s) key k timestamp since;
sink rates to files (path = '${out}', format = 'parquet');
"""


def test_an_iceberg_table_whose_first_snapshots_have_expired(tmp_path: Path, lakes: SparkSession) -> None:
    """Iceberg would begin with what the oldest of the others has added, and not say a word."""
    case = Case(APPENDED % "", tmp_path, lakes, "iceberg")
    lakes.sql(f"create table {case.sql()} (k int, v int, since bigint) using iceberg")
    for number in (1, 2):
        lakes.sql(f"insert into {case.sql()} values ({number}, {number}, 5)")
    case.run(checkpoint="ck1")
    found = [(1, 1), (2, 2)]
    assert sorted((row["k"], row["v"]) for row in parquet_rows(tmp_path / "out")) == found
    catalog, name = case.sql().split(".")
    expired = f"call {catalog}.system.expire_snapshots(table => '{name}', older_than => timestamp '2999-01-01')"
    lakes.sql(expired)
    case.run(checkpoint="ck1")
    assert len(parquet_rows(tmp_path / "out")) == 2
    case.variables["out"] = str(tmp_path / "out2")
    error = case.refused(checkpoint="ck2")
    assert (error.code, "the first snapshots of the Iceberg table" in error.message) == ("VSC922", True), error
    assert not (tmp_path / "ck2").exists()
    option = str(error.help).partition("write ")[2]
    since = int(option.rpartition("= ")[2].strip("'"))
    for given in (since, since - 1):
        again = Case(APPENDED % f", 'stream-from-timestamp' = '{given}'", tmp_path, lakes, "iceberg")
        again.variables["out"] = str(tmp_path / f"since-{given}")
        if given < since:
            assert str(again.refused(checkpoint="ck3").help).endswith(option)
        else:
            again.run(checkpoint="ck2")
            assert [(row["k"], row["v"]) for row in parquet_rows(tmp_path / f"since-{given}")] == [(2, 2)]


@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_columns_that_change_between_runs(tmp_path: Path, lakes: SparkSession, lake: str) -> None:
    feed, mapped = (", 'readChangeFeed' = 'false'", " tblproperties ('delta.columnMapping.mode' = 'name')")
    case = Case(APPENDED % (feed if lake == "delta" else ""), tmp_path, lakes, lake)
    more = mapped if lake == "delta" else ""
    lakes.sql(f"create table {case.sql()} (k int, v int, since bigint) using {lake}{more}")
    lakes.sql(f"insert into {case.sql()} values (1, 1, 5)")
    case.run()
    if lake == "iceberg":
        lakes.sql(f"alter table {case.sql()} alter column v type bigint")
        lakes.sql(f"insert into {case.sql()} values (2, 6000000000, 5)")
        words = "its column 'v' is bigint, and int cannot hold it"
    else:
        lakes.sql(f"alter table {case.sql()} rename column v to w")
        words = "it has no column 'v'"
    error = case.refused()
    assert (error.code, words in error.message) == ("VSC922", True), error
    assert [(row["k"], row["v"]) for row in parquet_rows(tmp_path / "out")] == [(1, 1)]


def test_an_iceberg_checkpoint_whose_first_snapshot_has_expired_goes_on(tmp_path: Path, lakes: SparkSession) -> None:
    """Iceberg looks at the snapshot at which a checkpoint began each time that a query takes what is available."""
    case = Case(APPENDED % "", tmp_path, lakes, "iceberg")
    lakes.sql(f"create table {case.sql()} (k int, v int, since bigint) using iceberg")
    catalog, name = case.sql().split(".")

    def insert(number: int) -> None:
        lakes.sql(f"insert into {case.sql()} values ({number}, {number}, 5)")

    def after_a_run() -> list[int]:
        case.run()
        return sorted(row["k"] for row in parquet_rows(tmp_path / "out"))

    insert(1)
    assert after_a_run() == [1]
    insert(2)
    assert after_a_run() == [1, 2]
    lakes.sql(f"call {catalog}.system.expire_snapshots(table => '{name}', older_than => timestamp '2999-01-01')")
    assert after_a_run() == [1, 2]
    insert(3)
    assert after_a_run() == [1, 2, 3]
    lakes.sql(f"call {catalog}.system.expire_snapshots(table => '{name}', older_than => timestamp '2999-01-01')")
    insert(4)
    assert after_a_run() == [1, 2, 3, 4]
