"""Declared columns that are in no file of a source, and columns whose values stand in the folders' names."""

from __future__ import annotations

import datetime
import gzip
import json
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once
from vsc.runtime.errors import MissingColumnError, SourceError
from vsc.runtime.metrics import Dropped, Group, Metrics
from vsc.runtime.spark import start
from vsc.runtime.spark.base.options import resolve_plan
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.query.running_query import QueryFailedError
from vsc.testing import TopologyTestDriver

pytestmark = pytest.mark.spark

ROWS = [{"id": "a", "ammount": 7, "at": 1}, {"id": "b", "ammount": 8, "at": 2}]


def topology(form: str, columns: str = "id string, amount bigint, at bigint", more: str = "") -> str:
    return f"""stream rows ({columns}) from files (path = '${{in}}', format = '{form}'{more}) key id timestamp at;
    stream kept = map rows select *;
    sink kept to files (path = '${{out}}', format = 'parquet');"""


def write(path: Path, form: str, rows: list[dict[str, Any]]) -> None:
    """All at once: a query may be looking."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_name(f"_{path.name}")
    table = pa.Table.from_pylist(rows)
    if form == "parquet":
        pq.write_table(table, file)
    elif form == "orc":
        orc.write_table(table, file)
    elif form == "csv":
        names = table.column_names
        lines = [",".join(names), *(",".join("" if r[n] is None else str(r[n]) for n in names) for r in rows)]
        file.write_text("".join(line + "\n" for line in lines))
    else:
        file.write_text("".join(json.dumps({k: v for k, v in row.items() if v is not None}) + "\n" for row in rows))
    file.rename(path)


def run(spark: Any, folder: Path, text: str, **arguments: Any) -> list[dict[str, Any]]:
    variables = {"in": str(folder / "in"), "out": str(folder / "out")}
    run_once(compiled(text), spark, folder / "ck", variables=variables, **arguments)
    return parquet_rows(folder / "out")


@pytest.mark.parametrize("form", ["parquet", "orc", "csv", "json"])
def test_a_column_that_no_file_has_is_refused_before_anything_is_made(spark: Any, tmp_path: Path, form: str) -> None:
    write(tmp_path / "in/a", form, ROWS)
    with pytest.raises(MissingColumnError) as caught:
        run(spark, tmp_path, topology(form))
    assert caught.value.message == (
        f"source 'rows' (line 1): there is no column 'amount' in file:{tmp_path}/in/a. The nearest there: 'ammount'"
    )
    assert caught.value.help == (
        "declare 'ammount' instead of 'amount'; "
        "or add missing_columns = 'null' to its options, if columns may be missing"
    )
    assert not (tmp_path / "ck").exists()
    assert not (tmp_path / "out").exists()
    found = run(spark, tmp_path, topology(form, more=", missing_columns = 'null'"))
    assert sorted((row["id"], row["amount"]) for row in found) == [("a", None), ("b", None)]


@pytest.mark.parametrize("form", ["parquet", "orc", "csv", "json"])
def test_a_column_that_some_files_have_is_null_in_the_others(spark: Any, tmp_path: Path, form: str) -> None:
    for number in range(4):
        more = {"amount": number} if number == 2 else {}
        write(tmp_path / f"in/{number}", form, [{"id": str(number), **more, "at": number}])
    found = run(spark, tmp_path, topology(form))
    assert sorted((row["id"], row["amount"]) for row in found) == [("0", None), ("1", None), ("2", 2), ("3", None)]


def test_json_may_leave_nulls_out_but_not_keys_and_times(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "1/in/a.json", "json", [{"id": "a", "at": 1}])
    with caplog.at_level(logging.WARNING, "vsc"):
        assert [row["amount"] for row in run(spark, tmp_path / "1", topology("json"))] == [None]
    (told,) = [record.getMessage() for record in caplog.records if "amount" in record.getMessage()]
    assert told == (
        f"source 'rows' (line 1): there is no column 'amount' in file:{tmp_path}/1/in/a.json: null until a row has it"
    )
    write(tmp_path / "3/in/a.json", "json", [{"id": "a", "at": 1}])
    with pytest.raises(MissingColumnError, match="no column 'amount'"):
        run(spark, tmp_path / "3", topology("json", more=", missing_columns = 'error'"))
    write(tmp_path / "4/in/a.json", "json", [{"id": "a", "price": 7, "at": 1}])
    with pytest.raises(MissingColumnError, match=r"no column 'amount' in .*There are: at, id, price"):
        run(spark, tmp_path / "4", topology("json"))
    write(tmp_path / "2/in/a.json", "json", [{"customer": "a", "amount": 1, "at": 1}])
    with pytest.raises(MissingColumnError) as caught:
        run(spark, tmp_path / "2", topology("json"))
    assert caught.value.message.endswith(
        f"no column 'id' in file:{tmp_path}/2/in/a.json. There are: amount, at, customer"
    )


def test_packed_files_and_quoted_headers_are_looked_into(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a[1].csv.gz").write_bytes(gzip.compress(b'\n"id", amount ,"x\n",at\nx,7,,1\n'))
    assert [row["amount"] for row in run(spark, tmp_path, topology("csv"))] == [7]


@pytest.mark.parametrize("name", ["a.json", "a.of_spark"])
def test_lines_end_as_they_do_for_spark(spark: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(b'{"id": "a", "at": 1}\r\n\n{"id": "b", "at": 2}\r{"amount": 7}\n')
    text = topology("json", more=", missing_columns = 'error'")
    assert [(row["id"], row["amount"]) for row in run(spark, tmp_path, text)] == [("a", None), ("b", None)]


def test_a_local_file_is_looked_at_without_a_job(spark: Any, tmp_path: Path) -> None:
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    for form in ("json", "csv", "parquet"):
        write(tmp_path / f"in/a.{form}", form, [{"id": "a", "amount": 7, "at": 1}])
        before = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
        Ends(resolve_plan(compiled(topology(form)), variables)).look_at_columns(spark)
        assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == before
        (tmp_path / f"in/a.{form}").unlink()


def test_names_in_parquet_have_no_case(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "in/a", "parquet", [{"ID": "a", "Amount": 7, "at": 1}])
    assert [(row["id"], row["amount"]) for row in run(spark, tmp_path, topology("parquet"))] == [("a", 7)]


def test_files_that_come_later_are_looked_at_once(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    arguments: dict[str, Any] = {"checkpoint": str(tmp_path / "ck"), "variables": variables, "trigger": "20 ms"}
    query = start(compiled(topology("json")), spark, **arguments)
    write(tmp_path / "in/a.json", "json", ROWS)
    with pytest.raises(QueryFailedError, match=r"VSC911.*'ammount'"):
        query.processAllAvailable()
    assert parquet_rows(tmp_path / "out") == []
    write(tmp_path / "in/a.json", "json", [{"id": "a", "amount": 7, "at": 1}])
    assert [row["amount"] for row in run(spark, tmp_path, topology("json"))] == [7]
    write(tmp_path / "in/b.json", "json", ROWS)
    assert [row["amount"] for row in run(spark, tmp_path, topology("json"))] == [7, None, None]


def test_missing_columns_is_one_of_two_words(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "in/a", "json", ROWS)
    text = topology("json", more=", missing_columns = '${how}'")
    with pytest.raises(SourceError, match="missing_columns is 'error' or 'null', not 'nul'"):
        start(
            compiled(text),
            spark,
            checkpoint=str(tmp_path / "ck"),
            variables={"in": str(tmp_path), "out": "o", "how": "nul"},
        )


PARTED = "dt date, country string, n int, id string, amount bigint, at bigint"


@pytest.mark.parametrize("form", ["parquet", "orc", "csv", "json"])
def test_partition_folders_are_columns(spark: Any, tmp_path: Path, form: str) -> None:
    row = {"id": "a", "amount": 7, "at": 1}
    write(tmp_path / "in/dt=2026-05-04/country=D%2FE/n=1/a", form, [row, {**row, "at": 2}])
    write(tmp_path / "in/dt=2026-05-05/country=__HIVE_DEFAULT_PARTITION__/n=2/a", form, [row])
    write(tmp_path / "in/dt=2026-05-05/country=FR/n=two/a", form, [row])
    found = run(spark, tmp_path, topology(form, PARTED), on_bad_row="drop")
    assert sorted((r["dt"], r["country"] or "", r["n"], r["amount"]) for r in found) == [
        (datetime.date(2026, 5, 4), "D/E", 1, 7),
        (datetime.date(2026, 5, 4), "D/E", 1, 7),
        (datetime.date(2026, 5, 5), "", 2, 7),
    ]


def test_the_path_wins_and_its_columns_may_be_the_key(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "in/id=p/amount=x/a.json", "json", [{"id": "file", "amount": 3, "at": 1}])
    write(tmp_path / "in/id=p/amount=5/a.json", "json", [{"id": "file", "amount": 3, "at": 1}])
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    reports = run_once(compiled(topology("json")), spark, tmp_path / "ck", variables=variables)
    assert [(row["id"], row["amount"]) for row in parquet_rows(tmp_path / "out")] == [("p", 5)]
    metrics = Metrics()
    for report in reports:
        metrics.merge(report.metrics)
    assert metrics.get("rows", Group.DROPPED_RECORDS, Dropped.UNREADABLE) == 1


def test_a_wrong_header_is_refused_on_the_driver_and_on_spark(spark: Any, tmp_path: Path) -> None:
    text = topology("csv")
    with TopologyTestDriver(text, variables={"in": "-", "out": "-"}) as driver:
        with pytest.raises(ValueError, match="'rows': no column 'ammount' here; there are amount, at, id"):
            driver.pipe("rows", ROWS[0])
        driver.pipe("rows", {"id": "a", "amount": 7, "at": 1})
        on_driver = [record.value for record in driver.read("kept")]
    write(tmp_path / "in/a.csv", "csv", ROWS)
    with pytest.raises(MissingColumnError, match="The nearest there: 'ammount'"):
        run(spark, tmp_path, text)
    write(tmp_path / "in/a.csv", "csv", [{"id": "a", "amount": 7, "at": 1}])  # the same command goes on
    assert [{name: row[name] for name in ("amount", "at")} for row in run(spark, tmp_path, text)] == on_driver
