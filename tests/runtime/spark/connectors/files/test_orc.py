"""ORC files with times that Spark does not read, or would write as others: what a query says of them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyarrow import orc
from pyspark.errors import StreamingQueryException

from tests.runtime.spark.support import compiled, parquet_rows, run_once
from vsc.runtime.errors import RefusedRowError, SourceError
from vsc.runtime.spark.query.failures import translated

pytestmark = [pytest.mark.spark, pytest.mark.release]

READS_ZONES = not pyspark.__version__.startswith(("4.0.", "4.1.", "4.2."))
"""Spark 4.3 reads timestamps with a time zone from ORC."""

PLAN = """
stream rows (n bigint, t timestamp) from files (path = '${in}', format = 'orc') timestamp n;
stream counted = map rows select n, unix_millis(t) as ms;
sink counted to files (path = '${out}', format = 'parquet');
"""


def run(spark: Any, folder: Path, table: pa.Table) -> list[int]:
    (folder / "in").mkdir()
    orc.write_table(table, folder / "in" / "a.orc")
    variables = {"in": str(folder / "in"), "out": str(folder / "out")}
    run_once(compiled(PLAN), spark, folder / "ck", variables=variables)
    return sorted(row["ms"] for row in parquet_rows(folder / "out"))


def test_whole_seconds_before_1970_are_read(spark: Any, tmp_path: Path) -> None:
    micros = [-1_000_000, -3_000_000_000_000_000, 1_500_000]
    table = pa.table({"n": [1, 2, 3], "t": pa.array(micros, pa.timestamp("us"))})
    assert run(spark, tmp_path, table) == [-3_000_000_000_000, -1000, 1500]


@pytest.mark.parametrize(
    ("zone", "micros", "held"),
    [
        (None, -1_500_000, "a timestamp before 1970 with a part of a second"),
        ("UTC", 1_500_000, "a column of timestamps with a time zone"),
    ],
)
def test_what_spark_cannot_read_is_said(spark: Any, tmp_path: Path, zone: str | None, micros: int, held: str) -> None:
    table = pa.table({"n": [1], "t": pa.array([micros], pa.timestamp("us", zone))})
    if zone is not None and READS_ZONES:
        assert run(spark, tmp_path, table) == [micros // 1000]
        return
    with pytest.raises(StreamingQueryException) as caught:
        run(spark, tmp_path, table)
    error = translated(caught.value)
    assert isinstance(error, SourceError)
    assert error.message.endswith(f" has {held}, which Spark cannot read from ORC")
    assert error.help == "write the data as Parquet, or with Spark"


def test_the_last_second_before_1970_comes_out_late(spark: Any, tmp_path: Path) -> None:
    """Spark's own mistake, which docs/running.md tells of: when this fails, remove it there."""
    spark.sql("select timestamp'1969-12-31 23:59:59.5Z' as t").write.orc(str(tmp_path / "orc"))
    assert spark.read.orc(str(tmp_path / "orc")).selectExpr("unix_millis(t)").collect() == [(500,)]


DAYS = """
stream rows (k string, n bigint, d date, x array<map<string, struct<t: timestamp>>>)
from files (path = '${in}', format = 'parquet') key k timestamp n;
sink rows to files (path = '${out}', format = 'orc');
"""


def written(spark: Any, folder: Path, day: str, moment: str) -> list[dict[str, Any]]:
    """The rows of a sink of ORC: `k`, then one with the day and the moment, then nulls."""
    moments = pa.list_(pa.map_(pa.string(), pa.struct([("t", pa.timestamp("us", "UTC"))])))
    at = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    columns = {
        "k": pa.array(["a", "b", "c"]), "n": pa.array([1, 2, 3]),
        "d": pa.array([None, None, date.fromisoformat(day)]),
        "x": pa.array([[], None, [None, [("a", None), ("b", {"t": None}), ("c", {"t": at})]]], moments),
    }  # fmt: skip
    (folder / "in").mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "in" / "a.parquet")
    variables = {"in": str(folder / "in"), "out": str(folder / "out")}
    run_once(compiled(DAYS), spark, folder / "ck", variables=variables, partitions=1)
    return [row.asDict(recursive=True) for row in spark.read.orc(str(folder / "out")).where("k = 'c'").collect()]


def test_a_day_that_orc_lacks_is_not_written_as_another(spark: Any, tmp_path: Path) -> None:
    [row] = written(spark, tmp_path / "0", "1582-10-04", "1582-10-15T00:00:00")
    assert (row["d"], row["x"][1]["c"]["t"]) == (date(1582, 10, 4), datetime(1582, 10, 15))
    ok = ("1582-10-15", "1582-10-04T23:59:59.999999")
    for number, (day, moment, name) in enumerate(
        [("1582-10-05", ok[1], "d"), ("1582-10-14", ok[1], "d"), (ok[0], "1582-10-14T23:59:59.999999", "x")], start=1
    ):
        with pytest.raises(StreamingQueryException) as caught:
            written(spark, tmp_path / str(number), day, moment)
        error = translated(caught.value)
        assert isinstance(error, RefusedRowError)
        assert f"the row of k = 'c': {name} has a day from 1582-10-05 to 1582-10-14" in error.message
        assert not list((tmp_path / str(number) / "out").glob("part-*"))
    assert written(spark, tmp_path / "4", *ok)[0]["d"] == date(1582, 10, 15)
