"""The jdbc source against a real PostgreSQL: a snapshot, once, whatever happens to the table or the server later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from servers.postgres import PostgresServer
from tests.runtime.spark.connectors.postgres.support import LOGIN, Case
from tests.runtime.spark.support import compiled
from vsc.cli.store_key import read_key
from vsc.runtime.spark.upgrade.purge import Purge, purge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.release]

RATES = f"""
table rates (currency string, rate double) from jdbc (url = '${{url}}', table = 'rates', {LOGIN}) key currency;
stream orders (id bigint, currency string, at bigint)
from files (path = '${{in}}', format = 'json', 'maxFilesPerTrigger' = '1') timestamp at;
stream priced = left join orders with rates on currency select id, rate, event_time(rates) as since;
sink priced to files (path = '${{out}}', format = 'json');
"""


ZERO = "1970-01-01T00:00:00.000Z"


def written(folder: Path) -> list[dict[str, Any]]:
    lines = [line for path in sorted((folder / "out").glob("*.json")) for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


@pytest.mark.seam("jdbc source")
def test_a_table_is_read_once(tmp_path: Path, server: PostgresServer, spark: SparkSession) -> None:
    server.query("create table rates (more int, rate real, currency varchar(3)); "
                 "insert into rates values (1, 1.5, 'EUR'), (2, null, 'USD')")  # fmt: skip
    case = Case(RATES, tmp_path, server, spark)
    case.file(0, {"id": 1, "currency": "EUR", "at": 5}, {"id": 2, "currency": "USD", "at": 6})
    [report] = case.run()
    assert report.read["rates"] == 2
    # A snapshot: what the table becomes is not seen, and neither it nor the server are needed any more.
    server.query("drop table rates")
    case.variables["url"] = "jdbc:postgresql://127.0.0.1:1/gone"
    # The snapshot moves with the checkpoint; Spark's log of what was read of it has the former path.
    (tmp_path / "moved here").mkdir()
    case.checkpoint = (tmp_path / "ck").rename(tmp_path / "moved here/ck")
    case.file(1, {"id": 3, "currency": "EUR", "at": 1}, {"id": 4, "currency": "CHF", "at": 7})
    [report] = case.run()
    assert report.read["rates"] == 0
    assert sorted((r["id"], r.get("rate"), r.get("since")) for r in written(tmp_path)) == [
        (1, 1.5, ZERO), (2, None, ZERO), (3, 1.5, ZERO), (4, None, None),
    ]  # fmt: skip


def test_what_was_read_of_a_snapshot_goes_with_a_purged_key(
    tmp_path: Path, server: PostgresServer, spark: SparkSession
) -> None:
    server.query("create table rates (more int, rate real, currency varchar(3)); "
                 "insert into rates values (1, 1.5, 'EUR'), (2, null, 'USD')")  # fmt: skip
    case = Case(RATES, tmp_path, server, spark)
    case.file(0, {"id": 1, "currency": "EUR", "at": 5})
    case.run()
    snapshots = tmp_path / "ck/vsc/sources"
    assert list(snapshots.rglob("*.parquet"))
    said: list[str] = []
    purge(Purge(str(tmp_path / "ck"), ("rates",), ("EUR",), read_key, case.variables), spark, said.append)
    assert said[0].startswith("store rates: ")
    assert not list(snapshots.rglob("*.parquet"))
    case.file(1, {"id": 2, "currency": "EUR", "at": 6}, {"id": 3, "currency": "USD", "at": 7})
    [report] = case.run()
    assert report.read["rates"] == 0
    assert sorted((r["id"], r.get("rate"), r.get("since")) for r in written(tmp_path)) == [
        (1, 1.5, ZERO), (2, None, None), (3, None, ZERO),
    ]  # fmt: skip


def test_sparks_plan_needs_no_server(tmp_path: Path, spark: SparkSession) -> None:
    from vsc.runtime.spark.query.explain import spark_plans

    (tmp_path / "in").mkdir()
    variables = {"in": str(tmp_path / "in"), "out": "-", "url": "jdbc:postgresql://127.0.0.1:1/x", "pw": "hidden-one"}
    text = spark_plans(compiled(RATES), spark, variables)
    assert "Physical Plan" in text and "hidden-one" not in text


def test_all_types(tmp_path: Path, server: PostgresServer, spark: SparkSession) -> None:
    columns = """
    k string, b boolean, t tinyint, i int, l bigint, f float, d double, n decimal(20, 4), x binary, day date,
    at timestamp, local timestamp, list array<string>, days array<date>, m map<string, double>,
    r struct<a: int, b: array<string>>, doc string, u string
    """
    text = f"""
    stream found ({columns}) from jdbc (url = '${{url}}', table = '"Odd"', {LOGIN}) key k timestamp at;
    sink found to jdbc (url = '${{url}}', table = 'copy', create = true, with_timestamp = true, {LOGIN});
    """
    server.query("""
    create table "Odd" (k text, b bool, t int2, i int, l int, f real, d real, n numeric, x bytea, day date,
      at timestamptz, local timestamp, list varchar(9)[], days date[], m jsonb, r json, doc jsonb, u uuid);
    insert into "Odd" values ('full', true, -128, 7, -5, 0.1, 0.5, 1234.5, '\\x00ff', '1500-02-28',
      '2026-05-04 01:02:03.123456+02', '1969-12-31 23:59:59.999999', array['a', null, ''], array['2026-01-01'::date],
      '{"x": 1.5}', '{"b": ["c"], "a": 1, "other": 3}', '{"z": [1]}', '00000000-0000-0000-0000-00000000000A');
    insert into "Odd" (k, at) values ('none', '1970-01-01 00:00:01+00');
    """)
    case = Case(text, tmp_path, server, spark)
    case.run()
    assert server.query("select * from copy where k = 'full'") == server.query("""
    select k, b, t, i, l::bigint, f, d::double precision, n::numeric(20, 4), x, day, at, local at time zone 'UTC',
      list::text[], days, m, '{"a": 1, "b": ["c"]}'::jsonb, doc::text, u::text, 1777849323123::bigint
    from "Odd" where k = 'full'
    """)
    assert server.query("select * from copy where k = 'none'")[0][1:10] == (None,) * 9


def test_a_value_out_of_range_makes_a_bad_row(tmp_path: Path, server: PostgresServer, spark: SparkSession) -> None:
    text = f"""
    stream found (k int, t tinyint, n decimal(4, 1), at timestamp, m map<string, int>)
    from jdbc (url = '${{url}}', table = 't', {LOGIN});
    sink found to files (path = '${{out}}', format = 'json');
    """
    server.query("create table t (k int, t int2, n numeric, at timestamptz, m json); insert into t values "
                 "(1, 128, 1, now(), '{}'), (2, 1, 1.25, now(), '{}'), (3, 1, 1, 'infinity', '{}'), "
                 "(4, 1, 'NaN', now(), '{}'), (5, 1, 1, now(), '[1]'), (6, -128, -999.9, null, 'null')")  # fmt: skip
    case = Case(text, tmp_path, server, spark)
    [report] = case.run()
    assert [r["k"] for r in written(tmp_path)] == [6]
    assert (report.read["found"], report.written) == (6, {"sink-0": 1})
    case.variables["out"] = str(tmp_path / "again")
    case.folder = tmp_path / "again"
    error = case.refused(max_bad="0")
    assert error.code == "VSC901" and "column 't' (tinyint) cannot hold 128" in error.message


def test_an_empty_table(tmp_path: Path, server: PostgresServer, spark: SparkSession) -> None:
    server.query("create table rates (currency text, rate float8)")
    case = Case(RATES, tmp_path, server, spark)
    case.file(0, {"id": 1, "currency": "EUR", "at": 5})
    case.run()
    assert [r["id"] for r in written(tmp_path)] == [1]


def test_a_large_table_in_one_epoch_after_another(
    tmp_path: Path, server: PostgresServer, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vsc.runtime.spark.connectors.snapshot.ROWS_A_FILE", 20_000)
    server.query(
        "create table rates as select 'c' || i as currency, i::float8 as rate from generate_series(1, 50000) i"
    )
    case = Case(RATES, tmp_path, server, spark)
    case.file(0, *({"id": i, "currency": f"c{i}", "at": i} for i in (1, 25_000, 50_000)))
    case.run()
    assert len(list((tmp_path / "ck/vsc/sources/0").glob("*.parquet"))) == 3
    assert sorted((r["id"], r["rate"]) for r in written(tmp_path)) == [(1, 1.0), (25_000, 25_000.0), (50_000, 50_000.0)]


@pytest.mark.parametrize(
    ("setup", "code", "words"),
    [
        ("", "VSC919", "there is no table 'rates'"),
        ("create table rates (currency text, rat float8)", "VSC919", "has no column 'rate' (double)"),
        ("create table rates (currency text, rate numeric)", "VSC919",
         "column 'rate' is numeric there, and double cannot hold it"),
    ],
)  # fmt: skip
def test_a_table_that_does_not_fit_is_refused_before_there_is_a_checkpoint(
    setup: str, code: str, words: str, tmp_path: Path, server: PostgresServer, spark: SparkSession
) -> None:
    if setup:
        server.query(setup)
    case = Case(RATES, tmp_path, server, spark)
    case.file(0, {"id": 1, "currency": "EUR", "at": 5})
    error = case.refused()
    assert error.code == code and error.help
    assert words in error.message
    assert not (tmp_path / "ck").exists()


def test_a_snapshot_that_is_gone(tmp_path: Path, server: PostgresServer, spark: SparkSession) -> None:
    server.query("create table rates as select 'EUR' as currency, 1::float8 as rate")
    case = Case(RATES, tmp_path, server, spark)
    case.file(0, {"id": 1, "currency": "EUR", "at": 5})
    case.run()
    (tmp_path / "ck/vsc/sources/0").rename(tmp_path / "aside")
    error = case.refused()
    assert error.code == "VSC904" and "is missing from the checkpoint" in error.message
