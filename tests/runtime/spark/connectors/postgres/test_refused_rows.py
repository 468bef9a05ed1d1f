"""Which staged rows a table takes, and what is kept of the others: against a real PostgreSQL, without Spark."""

from __future__ import annotations

import hashlib
import json
from types import SimpleNamespace
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyspark import TaskContext

from servers.postgres import PostgresServer
from vsc.plan.nodes import Connector
from vsc.plan.types import BIGINT, BOOLEAN, FLOAT, STRING, ArrayType, DataType
from vsc.runtime.errors import RefusedRowError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.postgres.copy import Copy
from vsc.runtime.spark.connectors.postgres.database import Database
from vsc.runtime.spark.connectors.postgres.epochs import RefusedRows
from vsc.runtime.spark.connectors.postgres.merge import Merge, merged, together
from vsc.runtime.spark.connectors.postgres.table import found_table
from vsc.runtime.values import to_array

COLUMNS: tuple[tuple[str, DataType], ...] = (("k", STRING), ("n", BIGINT), ("ok", BOOLEAN))
CHECK = 'new row for relation "rates" violates check constraint "rates_n_check"'
Row = tuple[str, int | None, bool]
"""Key, number, whether it is gone."""


def bring(server: PostgresServer, rows: list[Row], upsert: bool) -> tuple[dict[int, Any], list[Any]]:
    """What is refused, by row number, and what the table holds then."""
    with server.connect() as connection:
        table = found_table(connection, "rates", "sink")
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


KEEPS_BACK = """
create function keep() returns trigger language plpgsql as $$ begin
  if new.k like 'x%' then return null; end if; return new; end $$;
create trigger keep before insert or update on {} for each row execute function keep()
"""


@pytest.mark.parametrize("upsert", [True, False])
@pytest.mark.parametrize(
    "code",
    [
        KEEPS_BACK.format("rates"),
        KEEPS_BACK.format("others"),
        "create rule keep as on insert to rates where new.k like 'x%' do instead nothing",
    ],
)
def test_what_the_table_s_own_code_keeps_back_is_told(
    code: str, upsert: bool, server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.query("create table rates (k text primary key, n int, ok boolean) partition by list (k)")
    server.query("create table others partition of rates default")
    assert bring(server, [("z", 1, False)], upsert) == ({}, [("z", 1)])
    server.query(code)
    rows: list[Row] = [("a", 1, False), ("b", 1, False), ("c", None, upsert)]
    if upsert:
        rows = [("a", 0, False), *rows]
    there = [("a", 1), ("b", 1), *([] if upsert else [("c", None)]), ("z", 1)]
    assert bring(server, rows, upsert) == ({}, there)
    assert not caplog.messages
    server.query("delete from rates where k <> 'z'")
    assert bring(server, [*rows, ("x", 1, False)], upsert) == ({}, there)
    took = "2 of 3 rows" if upsert else "3 of 4 rows"
    assert caplog.messages == [f"the table 'public.rates' took {took}: a trigger or a rule of it keeps the others back"]


def test_nothing_is_refused(server: PostgresServer) -> None:
    server.query("create table rates (k text primary key, n int, ok boolean)")
    assert bring(server, [("a", 1, False), ("a", 2, False)], upsert=True) == ({}, [("a", 2)])


def staged(
    server: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
    columns: tuple[tuple[str, DataType], ...],
    rows: list[tuple[Any, ...]],
    keys: int,
    keeps: bool,
) -> dict[int, Any]:
    """What is refused of rows that a task copies, by their number in it. With `keys` they are changes, which
    end in whether they delete."""
    task = SimpleNamespace(taskAttemptId=lambda: 1, partitionId=lambda: 2)
    monkeypatch.setattr(TaskContext, "get", lambda: task)
    spark = (("user", "vsc"), ("password", server.password))
    database = Database.of(Options("here", Connector("jdbc", (("url", server.url()),), spark)))
    arrays = [to_array([row[i] for row in rows], type) for i, (_, type) in enumerate(columns)]
    if keys:
        arrays += [pa.array(["delete" if row[-1] else "upsert" for row in rows]), pa.array([0] * len(rows))]
    batch = pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))])
    with server.connect() as connection:
        table = found_table(connection, "rates", "sink", ("r",))
        assert table is not None
        merge = Merge(table, "public.staged", columns, max(keys, 1), bool(keys))
        connection.execute(f"drop table if exists staged; create table staged ({merge.staging_columns})")
        copy = Copy(database, merge, "here", keeps)
        assert [told.to_pylist() for told in copy([batch])] == [[{"attempt": 1}]]
        with connection.transaction():
            if keeps:
                return {number - (2 << 40): row for number, row in merged(connection, merge, [1]).items()}
            merge.apply(connection, merge.staged([1]))
    return {}


def test_texts_with_a_nul(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a task copies them, among rows that are stored."""
    columns = (("k", STRING), ("more", STRING), ("n", BIGINT))
    rows = [("a", 'b\\"', 1), ("a\0", None, 2), ("c", "\0\n", None), (None, "\\0", 4)]
    server.query("create table rates (k text, more text, n bigint)")
    found = staged(server, monkeypatch, columns, rows, 0, keeps=True)
    problem = "the text in column '{}' has a NUL character, which PostgreSQL refuses"
    assert {number: (row.key, row.value, row.message) for number, row in found.items()} == {
        1: ('{"k":"a\\u0000"}', '{"n":2}', problem.format("k")),
        2: ('{"k":"c"}', '{"more":"\\u0000\\n"}', problem.format("more")),
    }
    assert server.query("select * from rates order by n") == [rows[0], rows[3]]


ONE, OTHER = "00000000-0000-0000-0000-00000000000a", "{00000000-0000-0000-0000-00000000000A}"


def test_a_uuid_in_another_spelling_does_not_touch_its_twin(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.query(f"create table rates (k uuid primary key, v uuid); insert into rates values ('{ONE}')")
    columns = (("k", STRING), ("v", STRING))
    problem = (
        "the key in column 'k' is not a uuid in PostgreSQL's spelling (lower case, four hyphens), so that another text "
        "could mean the same row"
    )
    twins = [(OTHER, None, True), (ONE.upper(), ONE, False), ("none", None, False), (ONE[:-1] + "b", OTHER, False)]
    found = staged(server, monkeypatch, columns, twins, 1, keeps=True)
    assert {number: (json.loads(row.key)["k"], row.message) for number, row in found.items()} == {
        0: (OTHER, problem), 1: (ONE.upper(), problem), 2: ("none", problem),
    }  # fmt: skip
    assert server.query("select k::text, v::text from rates order by k") == [(ONE, None), (ONE[:-1] + "b", ONE)]
    with pytest.raises(RefusedRowError) as raised:
        staged(server, monkeypatch, columns, twins[:1], 1, keeps=False)
    assert raised.value.message == f"here: the row of k = '{OTHER}': {problem}"


def test_keys_that_only_the_table_can_refuse(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.query("create table rates (k text primary key, n bigint); create unique index on rates (lower(k))")
    long = "".join(hashlib.sha256(bytes([i])).hexdigest() for i in range(99))  # incompressible, and too long to index
    rows = [("A", 1, False), (long, 2, False), ("a", 3, False), ("b", 4, False)]
    found = staged(server, monkeypatch, (("k", STRING), ("n", BIGINT)), rows, 1, keeps=True)
    assert sorted(json.loads(row.key)["k"] for row in found.values()) == [long, "a"]
    assert "index row size" in found[1].message and "(lower(k))=(a) already exists" in found[2].message
    assert server.query("select k, n from rates order by k") == [("A", 1), ("b", 4)]


def test_rows_that_are_refused_only_together(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.query("create table rates (k text, n bigint)")
    server.query("""
    create function one() returns trigger language plpgsql as $$ begin
      if (select count(*) from new) > 1 then raise 'one at a time'; end if; return null; end $$;
    create trigger t after insert on rates referencing new table as new for each statement execute function one()
    """)
    columns = (("k", STRING), ("n", BIGINT))
    with pytest.raises(psycopg.Error) as raised:
        staged(server, monkeypatch, columns, [("a", 1), ("b", 2)], 0, keeps=False)
    with server.connect() as connection:
        table = found_table(connection, "rates", "sink", ("r",))
        assert table is not None
        merge = Merge(table, "public.staged", columns, 1, False)
        assert merge.refused(connection, [1], "here") is None
        assert together(merge, raised.value, "here").message == (
            "here: the table 'public.rates' takes each row of the epoch, but not all of them at once: one at a time"
        )


def test_a_float_is_the_same_number_as_a_double(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.query("create table rates (k float8, many float8[])")
    staged(server, monkeypatch, (("k", FLOAT), ("many", ArrayType(FLOAT))), [(0.1, [0.1, None])], 0, keeps=False)
    assert server.query("select * from rates") == [(0.10000000149011612, [0.10000000149011612, None])]
