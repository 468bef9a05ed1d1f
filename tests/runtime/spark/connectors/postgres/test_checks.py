"""Which tables of a real PostgreSQL are refused, with which words, before a row is read: without Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from servers.postgres import PostgresServer
from vsc.plan.types import parse_type
from vsc.runtime.errors import DatabaseTableError
from vsc.runtime.spark.connectors.postgres.checks import check_table
from vsc.runtime.spark.connectors.postgres.table import found_table
from vsc.runtime.spark.connectors.postgres.types import fits

SETUP = """
create extension citext;
create type kind as enum ('a', 'b');
create domain short as varchar(3);
create domain shorter as short check (value <> 'no');
create domain free as text check (value <> 'no');
create domain day as timestamptz(0);
create domain amounts as numeric(5, 2)[];
create domain must as int not null;
create domain may as must default 5;
create collation anycase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
"""
HOLDS = {
    "string": ["text", "varchar", "citext", "uuid", "json", "jsonb", "xml", "kind", "free", "inet", "cidr"],
    "timestamp": ["timestamptz", "timestamp", "timestamptz(6)", "timestamp(6)"],
    "decimal(5,2)": ["numeric", "numeric(5,2)", "numeric(7,4)", "numeric(7,2)"],
    "tinyint": ["smallint", "numeric(3,0)", "numeric(5,2)"],
    "int": ["int", "bigint", "numeric(10)", "numeric(12,2)"],
    "bigint": ["bigint", "numeric", "numeric(19,0)"],
    "float": ["real", "double precision"],
    "array<string>": ["text[]", "varchar[]", "jsonb"],
    "array<timestamp>": ["timestamptz[]", "timestamptz(6)[]"],
    "array<decimal(5,2)>": ["numeric[]", "numeric(5,2)[]", "amounts"],
    "array<float>": ["real[]", "double precision[]"],
}
CHANGES = {
    "string": ["varchar(3)", "varchar(10485760)", "char(3)", "bpchar", "char", '"char"', "name", "short", "shorter",
               "bytea", "bit(3)", "money", "interval", "int", "text[]"],
    "timestamp": [*(f"timestamptz({n})" for n in range(6)), *(f"timestamp({n})" for n in range(6)), "day", "date",
                  "time", "time(3)", "text"],
    "decimal(5,2)": ["numeric(5,1)", "numeric(4,2)", "numeric(5,3)", "numeric(5,-2)", "numeric(2,4)", "real", "money"],
    "tinyint": ["numeric(2,0)", "numeric(4,2)", "real"],
    "int": ["smallint", "numeric(9,0)", "numeric(10,1)", "numeric(12,-1)", "double precision"],
    "bigint": ["int", "numeric(18,0)", "numeric(19,1)"],
    "double": ["real", "numeric"],
    "array<string>": ["varchar(3)[]", "char(3)[]", "name[]", "short[]"],
    "array<timestamp>": ["timestamptz(3)[]", "timestamp(0)[]", "day[]"],
    "array<decimal(5,2)>": ["numeric(4,2)[]", "numeric(5,1)[]"],
    "array<double>": ["real[]"],
}  # fmt: skip


@pytest.mark.parametrize(("cases", "expected"), [(HOLDS, True), (CHANGES, False)], ids=["holds", "changes"])
def test_which_columns_hold_all_values(cases: dict[str, list[str]], expected: bool, server: PostgresServer) -> None:
    pairs = [(type, column) for type, columns in cases.items() for column in columns]
    server.query(SETUP)
    server.query(f"create table t ({', '.join(f'c{i} {column}' for i, (_, column) in enumerate(pairs))})")
    with server.connect() as connection:
        table = found_table(connection, "t", "here")
    assert table is not None
    found = {pair: fits(parse_type(pair[0]), table.columns[f"c{i}"]) for i, pair in enumerate(pairs)}
    assert [pair for pair, holds in found.items() if holds is not expected] == []


def refusal(server: PostgresServer, columns: dict[str, str], key: Sequence[str]) -> tuple[str, str] | None:
    """Why the table `t` is refused, and what to do."""
    with server.connect() as connection:
        table = found_table(connection, "t", "here")
        assert table is not None
        types = {name: parse_type(type) for name, type in columns.items()}
        try:
            check_table(connection, table, types, key, "here")
        except DatabaseTableError as error:
            return error.message.removeprefix("here: the table 'public.t'").strip(), str(error.help)
    return None


ALTER = "alter table public.t"
TO_TEXT = f'{ALTER} alter column k type text collate "C"'
EQUAL = "treats different keys as equal"


@pytest.mark.parametrize(
    ("table", "message", "statement"),
    [
        ("k citext primary key, v int", f": the key column 'k' is citext there, which {EQUAL}", TO_TEXT),
        ("k inet primary key, v int", f": the key column 'k' is inet there, which {EQUAL}", TO_TEXT),
        ("k jsonb primary key, v int", f": the key column 'k' is jsonb there, which {EQUAL}", TO_TEXT),
        ("k text collate anycase primary key, v int", f": the key column 'k' has a collation that {EQUAL}", TO_TEXT),
        ("k char(3) primary key, v int", ": column 'k' is character(3) there, which cannot hold string",
         f"{ALTER} alter column k type text"),
        ("k text primary key, v smallint", ": column 'v' is smallint there, which cannot hold int",
         f"{ALTER} alter column v type integer"),
        ("k text primary key", "has no column 'v' (int)", f"{ALTER} add column v integer"),
        ("x int", "has no columns 'k' (string), 'v' (int)", f"{ALTER} add column k text, add column v integer"),
        ("k text, v int", "has no unique key over (k), by which rows are replaced and deleted",
         f"{ALTER} add primary key (k)"),
        ("k text primary key, v int, other must", "has a column 'other' that is not null and has no default; it is not "
         "written", ""),
        ("k text primary key, v int, other may", "", ""),
        ("k varchar primary key, v int", "", ""),
        ("k kind primary key, v int", "", ""),
        ("k uuid primary key, v int", "", ""),
        ("k free primary key, v int", "", ""),
    ],
)  # fmt: skip
def test_a_table_is_refused_with_the_statement_that_fixes_it(
    table: str, message: str, statement: str, server: PostgresServer
) -> None:
    server.query(f"{SETUP}; create table t ({table})")
    columns = {"k": "string", "v": "int"}
    for _ in range(3):  # a second thing may be missing
        found = refusal(server, columns, ["k"])
        if found is None:
            break
        if message:
            assert found[0] == message
            assert statement in found[1]
        message = ""
        if not statement:
            return
        server.query(found[1][found[1].index("alter table") :])
    assert message == "" and refusal(server, columns, ["k"]) is None


def test_a_unique_index_with_a_collation_of_its_own(server: PostgresServer) -> None:
    server.query(f"{SETUP}; create table t (k text primary key, v int); "
                 "create unique index other on t (k collate anycase)")  # fmt: skip
    assert refusal(server, {"k": "string", "v": "int"}, ["k"]) == (
        f"has a unique index other over (k), whose collation {EQUAL}",
        "drop it, or make it with another collation: drop index other",
    )


def test_names_that_need_quotes(server: PostgresServer) -> None:
    server.query("create table t (x int)")
    found = refusal(server, {"Select": "int", "order": "string"}, [])
    assert found is not None
    assert found[1].endswith(f'{ALTER} add column "Select" integer, add column "order" text')


def test_keys_of_a_stream_are_not_compared(server: PostgresServer) -> None:
    server.query(f"{SETUP}; create table t (k citext, v text collate anycase)")
    assert refusal(server, {"k": "string", "v": "string"}, []) is None
