"""`vsc run` refuses what a real PostgreSQL shows to be wrong before it starts Spark, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.ports import free_port
from servers.postgres import PostgresServer
from vsc.cli import main

LOGIN = "'user' = '${user}', 'password' = '${pw}'"
SINK = f"""
table rates (currency string, rate double) from files (path = 'in', format = 'json') key currency;
sink rates to jdbc (url = '${{url}}', table = '${{table}}', {LOGIN});
"""
SOURCE = f"""
stream rates (currency string, rate double) from jdbc (url = '${{url}}', table = '${{table}}', {LOGIN});
sink rates to noop ();
"""
SPARK_STARTS = 42
GOOD = "currency text primary key, rate double precision"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("vsc.cli.run.check_java", lambda: None)
    monkeypatch.setattr("vsc.cli.run._run", lambda *_: SPARK_STARTS)
    (tmp_path / "in").mkdir()
    (tmp_path / "sink.vdsl").write_text(SINK)
    (tmp_path / "made.vdsl").write_text(SINK.replace("table =", "create = true, table ="))
    (tmp_path / "source.vdsl").write_text(SOURCE)
    return tmp_path


@pytest.fixture
def reader(server: PostgresServer) -> Iterator[None]:
    server.query("create role reader login password 'r'")
    yield
    server.query("drop owned by reader; drop role reader")


def run(server: PostgresServer, capsys: pytest.CaptureFixture[str], kind: str, **variables: str) -> tuple[int, str]:
    """The exit status, and what is said."""
    given = {"url": server.url(), "table": "rates", "user": "vsc", "pw": server.password}
    given |= variables
    arguments = [part for name, value in given.items() for part in ("--var", f"{name}={value}")]
    status = main(["run", f"{kind}.vdsl", "--checkpoint", "ck", "--progress", "none", *arguments])
    out, err = capsys.readouterr()
    assert out == "" and server.password not in err
    return status, " ".join(err.split())


@pytest.mark.parametrize("kind", ["sink", "source"])
def test_servers_and_databases(
    kind: str, folder: Path, server: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(**variables: str) -> str:
        status, said = run(server, capsys, kind, **variables)
        assert status == 1 and not (folder / "ck").exists()
        return said

    nowhere = f"127.0.0.1:{free_port()}"
    assert f"cannot connect to the database 'vsc' at {nowhere}: " in refused(url=f"jdbc:postgresql://{nowhere}/vsc")
    assert 'database "nowhere" does not exist' in refused(url=server.url("nowhere"))
    assert 'password authentication failed for user "vsc"' in refused(pw="wrong")
    assert "error[VSC919]" in (said := refused()) and "there is no table 'rates' in the database 'vsc'" in said
    server.query("create table rates (currency text primary key)")
    assert "the table 'public.rates' has no column 'rate' (double)" in refused()


def test_the_statement_that_fixes_a_table_for_a_sink(
    folder: Path, server: PostgresServer, reader: None, capsys: pytest.CaptureFixture[str]
) -> None:
    server.query("create table rates (currency varchar(3) primary key)")
    fixed = []
    for _ in range(6):
        status, said = run(server, capsys, "sink", user="reader", pw="r")
        if status == SPARK_STARTS:
            break
        statement = said[min(said.index(word) for word in ("alter table", "grant ") if word in said) :]
        fixed.append(statement)
        server.query(statement)
    assert fixed == [
        "alter table public.rates add column rate double precision",
        "alter table public.rates alter column currency type text",
        "grant insert, update, delete, select on public.rates to reader",
        "grant create on schema public to reader",
    ]
    assert server.query("select relname from pg_class where relname like 'vsc_%%'") == []  # nothing is made
    server.query("create table vsc_epochs (x int)")
    status, said = run(server, capsys, "sink", user="reader", pw="r")
    assert (status, said[said.index("grant") :]) == (1, "grant select, insert, delete on public.vsc_epochs to reader")


def test_policies_that_hide_rows(
    folder: Path, server: PostgresServer, reader: None, capsys: pytest.CaptureFixture[str]
) -> None:
    server.query(f"create table rates ({GOOD}); grant all on rates to reader; grant create on schema public to reader; "
                 "alter table rates enable row level security")  # fmt: skip
    status, said = run(server, capsys, "sink", user="reader", pw="r")
    assert status == 1 and "row-level security may hide rows of the table 'public.rates'" in said
    server.query(said[said.index("alter role") :])
    assert run(server, capsys, "sink", user="reader", pw="r")[0] == SPARK_STARTS


@pytest.mark.parametrize(
    ("kind", "setup", "table", "words"),
    [
        ("made", "", "rates", ""),
        ("made", "", "shop.rates", "there is no schema 'shop' to create the table in"),
        ("made", "", "a.b.c", "'a.b.c' is not the name of a table"),
        ("sink", "create view rates as select 'EUR' as currency", "rates", "'rates' is not a table"),
        ("sink", f"create table rates ({GOOD}); alter database vsc set default_transaction_read_only = on", "rates",
         "is read-only: it is a standby server, or is set to be"),
        ("sink", f"create table rates ({GOOD})", "rates", ""),
    ],
)  # fmt: skip
def test_what_else_is_refused_of_a_sink(
    kind: str, setup: str, table: str, words: str, folder: Path, server: PostgresServer,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    if setup:
        server.query(setup)
    status, said = run(server, capsys, kind, table=table)
    assert words in said and status == (1 if words else SPARK_STARTS)


def test_a_database_that_cannot_hold_every_text(
    folder: Path, server: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.query("create database latin template template0 encoding 'LATIN1' locale 'C'", database="postgres")
    try:
        status, said = run(server, capsys, "made", url=server.url("latin"))
        assert status == 1 and "holds text in LATIN1, which cannot hold every string" in said
    finally:
        server.query("drop database latin", database="postgres")


def test_a_source_that_may_not_be_read(
    folder: Path, server: PostgresServer, reader: None, capsys: pytest.CaptureFixture[str]
) -> None:
    server.query(f"create table rates ({GOOD})")
    status, said = run(server, capsys, "source", user="reader", pw="r")
    assert status == 1
    assert "the user 'reader' has no privilege to select on the table 'public.rates'" in said
    server.query(said[said.index("grant select") :])
    assert run(server, capsys, "source", user="reader", pw="r")[0] == SPARK_STARTS
