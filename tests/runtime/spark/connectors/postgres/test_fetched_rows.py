"""What is read of the rows of a real PostgreSQL, whatever its settings are: without Spark."""

from __future__ import annotations

import datetime
from typing import Any

from servers.postgres import PostgresServer
from tests.runtime.spark.support import compiled
from vsc.plan.types import parse_type
from vsc.runtime.spark.base.options import resolve_plan
from vsc.runtime.spark.connectors.postgres.connector import _Fetch, _look_at_table
from vsc.runtime.spark.connectors.registry import Ends

UTC = datetime.UTC
SETTINGS = (
    "extra_float_digits = -3", "bytea_output = 'escape'", "array_nulls = off", "datestyle = 'German'",
    "timezone = 'Asia/Kolkata'", "client_encoding = 'LATIN1'",
)  # fmt: skip


def fetched(server: PostgresServer, columns: dict[str, str]) -> list[dict[str, Any]]:
    """The rows of the table `t`, and why one is bad; the database has settings of its own."""
    for setting in SETTINGS:
        server.query(f"alter database vsc set {setting}")
    declared = ", ".join(f"{name} {type}" for name, type in columns.items())
    text = f"""
    stream rows ({declared}) from jdbc (url = '${{url}}', table = 't', 'user' = 'vsc', 'password' = '${{pw}}');
    sink rows to noop ();
    """
    plan = resolve_plan(compiled(text), {"url": server.url(), "pw": server.password})
    [source] = Ends(plan).sources
    source.reach()
    database, table = _look_at_table(source.node.source, source.options)
    chosen = tuple((name, parse_type(type), table.columns[name]) for name, type in columns.items())
    batches = _Fetch(database, table.sql, source.place, chosen)([])
    return [row for batch in batches for row in batch.to_pylist()]


def test_no_digit_is_lost(server: PostgresServer) -> None:
    server.query("""create table t (r real, d real, e float8, rs real[], es float8[], s text, x bytea, n numeric,
                 at timestamptz, ds real)""")
    server.query("""insert into t values (7.038531e-26, 0.1, 0.30000000000000004, '{0.1,NULL}', '{0.30000000000000004}',
                 'é€', '\\x00ff', 1e-20, '2262-04-11 23:47:16.854775+00', 16777216)""")
    [row] = fetched(server, {
        "r": "float", "d": "double", "e": "double", "rs": "array<double>", "es": "array<double>", "s": "string",
        "x": "string", "n": "string", "at": "timestamp", "ds": "string",
    })  # fmt: skip
    assert row.pop("at") == datetime.datetime(2262, 4, 11, 23, 47, 16, 854775, UTC)
    assert row == {
        "r": 7.038530691851209e-26, "d": 0.10000000149011612, "e": 0.30000000000000004,
        "rs": [0.10000000149011612, None], "es": [0.30000000000000004], "s": "é€", "x": "\\x00ff",
        "n": "0.00000000000000000001", "ds": "1.6777216e+07", "_vsc_bad": None,
    }  # fmt: skip


def test_times_in_arrays(server: PostgresServer) -> None:
    server.query("create table t (k int, days date[], times timestamptz[], local timestamp[])")
    server.query("""insert into t values
      (1, '{2026-01-02,NULL}', '{2026-01-02 03:04:05.1+05:30,1969-12-31 23:59:59.999999+00}', '{0001-01-01 00:00:00}'),
      (2, '{infinity}', null, null), (3, null, '{-infinity}', null), (4, '{0044-03-15 BC}', null, null),
      (5, null, '{{2026-01-01 00:00:00+00},{2026-01-01 00:00:00+00}}', null), (6, '{}', null, '{10000-01-01}'),
      (7, '{}', '{}', '[5:5]={2026-01-01}')""")
    rows = fetched(server, {
        "k": "int", "days": "array<date>", "times": "array<timestamp>", "local": "array<timestamp>",
    })  # fmt: skip
    problems = {row["k"]: row.pop("_vsc_bad") for row in rows}
    assert [k for k, problem in problems.items() if problem] == [2, 3, 4, 5, 6]
    assert problems[2] == "column 'days' (array<date>) cannot hold ['infinity']"
    assert rows[0] == {
        "k": 1, "days": [datetime.date(2026, 1, 2), None],
        "times": [datetime.datetime(2026, 1, 1, 21, 34, 5, 100000, UTC),
                  datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)],
        "local": [datetime.datetime(1, 1, 1, tzinfo=UTC)],
    }  # fmt: skip
    assert rows[6] == {"k": 7, "days": [], "times": [], "local": [datetime.datetime(2026, 1, 1, tzinfo=UTC)]}


def test_instants_of_a_timestamp(server: PostgresServer) -> None:
    server.query("""create table t (at timestamptz, local timestamp, day date);
                 insert into t values ('1883-11-18 12:03:58.000001+00', '0001-01-01 00:00:00.000001', '0001-01-01'),
                   ('-infinity', null, null), (null, null, 'infinity'), ('294276-12-31 23:59:59+00', null, null),
                 (null, '4713-01-01 BC', null), (null, null, '5874897-12-31'), (null, null, '10000-01-01')""")
    rows = fetched(server, {"at": "timestamp", "local": "timestamp", "day": "date"})
    problems = [row.pop("_vsc_bad") for row in rows]
    assert problems[0] is None and all(problems[1:])
    assert problems[3] == "column 'at' (timestamp) cannot hold '294276-12-31 23:59:59+00'"
    assert rows[0] == {
        "at": datetime.datetime(1883, 11, 18, 12, 3, 58, 1, UTC), "local": datetime.datetime(1, 1, 1, 0, 0, 0, 1, UTC),
        "day": datetime.date(1, 1, 1),
    }  # fmt: skip
