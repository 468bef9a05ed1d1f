"""Which staged rows a table takes, and what is kept of the others: against a real PostgreSQL, without Spark."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext

from servers.postgres import PostgresServer
from vsc.plan.nodes import Connector
from vsc.plan.types import BIGINT, BOOLEAN, STRING, DataType
from vsc.runtime.spark.connectors.jdbc_copy import Copy
from vsc.runtime.spark.connectors.jdbc_database import Database
from vsc.runtime.spark.connectors.jdbc_epochs import RefusedRows
from vsc.runtime.spark.connectors.jdbc_merge import Merge, merged
from vsc.runtime.spark.connectors.jdbc_table import found_table
from vsc.runtime.spark.options import Options

COLUMNS: tuple[tuple[str, DataType], ...] = (("k", STRING), ("n", BIGINT), ("ok", BOOLEAN))
CHECK = 'new row for relation "rates" violates check constraint "rates_n_check"'
Row = tuple[str, int | None, bool]
"""Key, number, whether it is gone."""


def bring(server: PostgresServer, rows: list[Row], upsert: bool) -> tuple[dict[int, Any], list[Any]]:
    """What is refused, by row number, and what the table holds then."""
    with server.connect() as connection:
        table = found_table(connection, "rates", "sink", ("r",))
        assert table is not None
        merge = Merge(table, "public.staged", COLUMNS, 1, upsert)
        connection.execute(f"drop table if exists staged; create table staged ({merge.staging_columns})")
        for number, (k, n, gone) in enumerate(rows):
            number_text = None if n is None else str(n)
            connection.execute("insert into staged values (1, %s, %s, %s, %s, 't')", [number, gone, k, number_text])
        connection.execute("insert into staged values (2, 99, false, 'of another attempt', '1', 't')")
        with connection.transaction():
            found = merged(connection, merge, [1])
        kept = RefusedRows(table, "c", "sink-0")
        kept.create(connection)
        kept.keep(connection, 5, found, 3)
        kept.keep(connection, 6, {}, 4)
        assert kept.of(connection, 5) == [found[number] for number in sorted(found)]
        kept.forget_after(connection, 4)
        assert kept.of(connection, 5) == []
    return found, server.query("select k, n from rates order by 1, 2")


def test_changes_of_a_table(server: PostgresServer) -> None:
    server.query("create table rates (k varchar(4) primary key, n int check (n <> 7), ok boolean)")
    rows: list[Row] = [
        ("a", 1, False), ("b", 7, False), ("a", 2, False), ("a", 7, False), ("c", 3, False), ("c", None, True),
        ("longer", 1, False), ("d", 7, False), ("d", 4, False), ("e", 2**40, False),
    ]  # fmt: skip
    found, there = bring(server, rows, upsert=True)
    assert there == [("a", 2), ("d", 4)]
    assert sorted(found) == [1, 3, 6, 9]
    assert [json.loads(found[n].key)["k"] for n in (1, 3, 6, 9)] == ["b", "a", "longer", "e"]
    assert found[3].value == '{"n":7,"ok":true}'
    assert found[3].message == f"{CHECK} (Failing row contains (a, 7, t).)"
    assert [found[n].message for n in (6, 9)] == [
        "value too long for type character varying(4)",
        'value "1099511627776" is out of range for type integer',
    ]


def test_records_of_a_stream(server: PostgresServer) -> None:
    server.query("create table rates (k varchar(4), n int unique, ok boolean)")
    rows: list[Row] = [("a", 1, False), ("a", 2, False), ("b", 1, False), ("longer", 3, False), ("c", None, False)]
    found, there = bring(server, rows, upsert=False)
    assert there == [("a", 1), ("a", 2), ("c", None)]
    assert {n: (row.key, row.value) for n, row in found.items()} == {
        2: ('{"k":"b"}', '{"n":1,"ok":true}'), 3: ('{"k":"longer"}', '{"n":3,"ok":true}'),
    }  # fmt: skip
    assert (
        found[2].message == 'duplicate key value violates unique constraint "rates_n_key" (Key (n)=(1) already exists.)'
    )


def test_nothing_is_refused(server: PostgresServer) -> None:
    server.query("create table rates (k text primary key, n int, ok boolean)")
    assert bring(server, [("a", 1, False), ("a", 2, False)], upsert=True) == ({}, [("a", 2)])


def test_texts_with_a_nul(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a task copies them, among rows that are stored."""
    task = SimpleNamespace(taskAttemptId=lambda: 1, partitionId=lambda: 2)
    monkeypatch.setattr(TaskContext, "get", lambda: task)
    spark = (("user", "vsc"), ("password", server.password))
    database = Database.of(Options("here", Connector("jdbc", (("url", server.url()),), spark)))
    columns = (("k", STRING), ("more", STRING), ("n", BIGINT))
    rows = [("a", 'b\\"', 1), ("a\0", None, 2), ("c", "\0\n", None), (None, "\\0", 4)]
    names = ["k", "more", "n"]
    batch = pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    server.query("create table rates (k text, more text, n bigint)")
    with server.connect() as connection:
        table = found_table(connection, "rates", "sink", ("r",))
        assert table is not None
        merge = Merge(table, "public.staged", columns, 1, False)
        connection.execute(f"create table staged ({merge.staging_columns})")
        copy = Copy(database, merge, "here", keeps=True)
        assert [told.to_pylist() for told in copy([batch])] == [[{"attempt": 1}]]
        with connection.transaction():
            found = merged(connection, merge, [1])
    first = 2 << 40
    problem = "the text in column '{}' has a NUL character, which PostgreSQL refuses"
    assert {number - first: (row.key, row.value, row.message) for number, row in found.items()} == {
        1: ('{"k":"a\\u0000"}', '{"n":2}', problem.format("k")),
        2: ('{"k":"c"}', '{"more":"\\u0000\\n"}', problem.format("more")),
    }
    assert server.query("select * from rates order by n") == [rows[0], rows[3]]
