"""The jdbc sink against a real PostgreSQL: what a table holds after epochs, repeats, kills and refusals."""

from __future__ import annotations

import datetime
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from servers.postgres import PostgresServer
from tests.runtime.spark.connectors.postgres.support import LOGIN, Case
from tests.runtime.spark.support import compiled
from vsc.runtime.spark.base.options import resolve_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]

RATES = """
table rates (currency string, rate double, at bigint, gone boolean)
from files (path = '${in}', format = 'json', 'maxFilesPerTrigger' = '1')
key currency timestamp at delete when gone %s;
sink rates to jdbc (url = '${url}', table = 'rates', %s%s);
"""


def rate(currency: str, value: float | None, at: int, gone: bool = False) -> dict[str, Any]:
    return {"currency": currency, "rate": value, "at": at, "gone": gone}


@pytest.mark.seam("jdbc sink")
def test_a_table_is_upserted_and_deleted_by_key(tmp_path: Path, server: PostgresServer, spark: SparkSession) -> None:
    text = (
        RATES % ("", LOGIN, ", create = true")
        + f"""
    stream changes = to_stream rates;
    sink changes to jdbc (
      url = '${{url}}', table = 'changes', create = true, mode = 'upsert', with_timestamp = true, {LOGIN}
    );
    """
    )
    case = Case(text, tmp_path, server, spark)
    case.file(0, rate("EUR", 1.0, 1), rate("USD", 2.0, 2), rate("EUR", 1.5, 3), rate("CHF", 9.0, 3))
    case.run()
    of_stream = "select currency, rate, at, _timestamp from changes order by 1"
    assert server.query(of_stream) == [("CHF", 9.0, 3, 3), ("EUR", 1.5, 3, 3), ("USD", 2.0, 2, 2)]
    assert server.query("select currency, rate, at from rates order by 1") == [
        ("CHF", 9.0, 3), ("EUR", 1.5, 3), ("USD", 2.0, 2),
    ]  # fmt: skip
    case.file(1, rate("EUR", None, 4, gone=True), rate("USD", 2.5, 1), rate("JPY", 7.0, 4), rate("JPY", 0, 5, True))
    case.run()
    # Unversioned: what comes later is the newest, whatever its time.
    assert server.query("select currency, rate, at from rates order by 1") == [("CHF", 9.0, 3), ("USD", 2.5, 1)]
    # So does a stream that is upserted: a record without a value deletes.
    assert server.query(of_stream) == [("CHF", 9.0, 3, 3), ("USD", 2.5, 1, 1)]
    assert server.query("select epoch, rows from vsc_epochs order by 1") == [(0, 4), (0, 4), (1, 4), (1, 4)]
    assert server.query("select relname from pg_class where relname like 'vsc_stage%%'") == []


def test_of_a_versioned_table_only_the_newest_of_a_key_counts(
    tmp_path: Path, server: PostgresServer, spark: SparkSession
) -> None:
    clause = "materialize versioned (retention = 1 day)"
    text = RATES % (clause, LOGIN, ", create = true")
    text += "sink rates to files (path = '${out}', format = 'json');\n"
    text += "table named = map rates select rate * 10 as tenfold;\n"
    text += f"sink named to jdbc (url = '${{url}}', table = 'named', create = true, {LOGIN});\n"
    case = Case(text, tmp_path, server, spark)
    case.file(0, rate("EUR", 3.0, 30), rate("EUR", 2.0, 20), rate("USD", 5.0, 5), rate("GBP", 1.0, 10))
    case.run()
    expected = [("EUR", 3.0), ("GBP", 1.0), ("USD", 5.0)]
    assert server.query("select currency, rate from rates order by 1") == expected
    # Older versions come in later epochs, one of them of a key that is gone; none of them is seen.
    case.file(1, rate("EUR", 2.5, 25), rate("USD", 0, 50, gone=True), rate("GBP", 0, 5, gone=True))
    case.run()
    case.file(2, rate("USD", 6.0, 40), rate("EUR", 4.0, 30))
    reports = case.run()
    expected = [("EUR", 4.0), ("GBP", 1.0)]
    assert server.query("select currency, rate from rates order by 1") == expected
    assert server.query("select currency, tenfold from named order by 1") == [(c, 10 * r) for c, r in expected]
    assert reports[-1].written == {"sink-0": 1, "sink-1": 2, "sink-2": 1}
    files = [json.loads(line) for path in (tmp_path / "out").glob("*.json") for line in path.read_text().splitlines()]
    assert len(files) == 4 + 3 + 2  # every change


def test_a_stream_is_appended(tmp_path: Path, server: PostgresServer, spark: SparkSession) -> None:
    text = f"""
    stream orders (id bigint, note string, at bigint)
    from files (path = '${{in}}', format = 'json', 'maxFilesPerTrigger' = '1') timestamp at;
    sink orders to jdbc (url = '${{url}}', table = 'Shop.Orders', with_timestamp = true, {LOGIN});
    """
    server.query("create schema shop; create table shop.orders (n serial, _timestamp bigint, at int8, "
                 "id numeric(19,0), note varchar not null default 'x')")  # fmt: skip
    case = Case(text, tmp_path, server, spark)
    odd = "a\tb\\n\n\r\\."
    case.file(0, {"id": 1, "note": odd, "at": 10}, {"id": 1, "note": "", "at": 11})
    case.file(1, {"id": 2, "note": "\\N", "at": 9})
    case.run()
    assert server.query("select id, note, at, _timestamp from shop.orders order by n") == [
        (1, odd, 10, 10), (1, "", 11, 11), (2, "\\N", 9, 9),
    ]  # fmt: skip


def test_all_types(tmp_path: Path, server: PostgresServer, spark: SparkSession) -> None:
    text = f"""
    stream values_ (
      k string, b boolean, t tinyint, s smallint, i int, l bigint, f float, d double, n decimal(20, 4), x binary,
      day date, at timestamp, list array<string>, times array<timestamp>, nested array<array<int>>,
      m map<string, double>, r struct<a: int, b: array<string>>
    )
    from files (path = '${{in}}', format = 'json') key k;
    sink values_ to jdbc (url = '${{url}}', table = 'made', create = true, {LOGIN});
    """
    row = {
        "k": "full", "b": True, "t": -128, "s": 7, "i": -5, "l": 2**62, "f": 0.1, "d": 1e-300, "n": "1234.5000",
        "x": "AAH/", "day": "1582-10-04", "at": "2026-05-04T01:02:03.123456Z", "list": ["a\"b", None, "\\{,}", ""],
        "times": ["1969-12-31T23:59:59.999999Z"], "nested": [[1], [], [2, None]], "m": {"x": 1.5},
        "r": {"a": 1, "b": ["ä"]},
    }  # fmt: skip
    case = Case(text, tmp_path, server, spark)
    case.file(0, row, {"k": "none"}, {"k": "nan", "d": "NaN", "f": "-Infinity", "list": []})
    case.run()
    types = dict(server.query("select attname, format_type(atttypid, atttypmod) from pg_attribute "
                              "where attrelid = 'made'::regclass and attnum > 0"))  # fmt: skip
    assert types == {
        "k": "text", "b": "boolean", "t": "smallint", "s": "smallint", "i": "integer", "l": "bigint", "f": "real",
        "d": "double precision", "n": "numeric(20,4)", "x": "bytea", "day": "date", "at": "timestamp with time zone",
        "list": "text[]", "times": "timestamp with time zone[]", "nested": "jsonb", "m": "jsonb", "r": "jsonb",
    }  # fmt: skip
    utc = datetime.UTC
    found = {row[0]: row[1:] for row in server.query("select * from made")}
    instant = datetime.datetime(2026, 5, 4, 1, 2, 3, 123456, utc)
    assert found["full"] == (
        True, -128, 7, -5, 2**62, pytest.approx(0.1, rel=1e-6), 1e-300, Decimal("1234.5000"), b"\x00\x01\xff",
        datetime.date(1582, 10, 4), instant, ["a\"b", None, "\\{,}", ""],
        [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, utc)], [[1], [], [2, None]], {"x": 1.5},
        {"a": 1, "b": ["ä"]},
    )  # fmt: skip
    assert found["none"] == (None,) * 16
    assert str(found["nan"][6]) == "nan" and found["nan"][5] == float("-inf") and found["nan"][11] == []


@pytest.mark.seam("jdbc sink")
def test_an_epoch_that_comes_again_changes_nothing(tmp_path: Path, server: PostgresServer, spark: SparkSession) -> None:
    text = f"""
    stream orders (id bigint, at bigint) from files (path = '${{in}}', format = 'json', 'maxFilesPerTrigger' = '1')
    timestamp at;
    sink orders to jdbc (url = '${{url}}', table = 'orders', create = true, {LOGIN});
    sink orders to files (path = '${{out}}', format = 'json');
    """
    case = Case(text, tmp_path, server, spark)
    case.file(0, {"id": 1, "at": 1})
    case.file(1, {"id": 2, "at": 2})
    case.run()
    # As if the driver had died between the database's commit and Spark's.
    (tmp_path / "ck/commits/1").unlink()
    (tmp_path / "ck/commits/.1.crc").unlink()
    case.file(2, {"id": 3, "at": 3})
    assert [r.epoch for r in case.run()] == [1, 2]
    assert server.query("select id from orders order by 1") == [(1,), (2,), (3,)]
    assert server.query("select epoch, rows from vsc_epochs order by 1") == [(1, 1), (2, 1)]
    files = [json.loads(line)["id"] for path in (tmp_path / "out").glob("*.json") for line in path.open()]
    assert sorted(files) == [1, 2, 3]
    # Another content of the epoch is an error, not a second set of rows.
    (tmp_path / "ck/commits/2").unlink()
    (tmp_path / "ck/commits/.2.crc").unlink()
    server.query("update vsc_epochs set rows = 7 where epoch = 2")
    error = case.refused()
    assert (error.code, error.help is not None) == ("VSC906", True)
    assert "epoch 2 was written before with 7 rows, now it has 1" in error.message
    assert "--back-to 1" in str(error.help)


def test_going_back_writes_the_epochs_again(tmp_path: Path, server: PostgresServer, spark: SparkSession) -> None:
    case = Case(RATES % ("", LOGIN, ", create = true"), tmp_path, server, spark)
    for number in range(3):
        case.file(number, rate("EUR", float(number), number), rate(str(number), 1.0, number))
    case.run()
    assert [r.epoch for r in case.run(back_to=0)] == [1, 2]
    found = server.query("select currency, rate from rates order by 1")
    assert found == [("0", 1.0), ("1", 1.0), ("2", 1.0), ("EUR", 2.0)]


def test_a_database_that_was_restored_or_has_lost_the_target_is_refused(
    tmp_path: Path, server: PostgresServer, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    def rows() -> list[tuple[Any, ...]]:
        return server.query("select currency, rate from rates order by 1")

    case = Case(RATES % ("", LOGIN, ", create = true"), tmp_path, server, spark)
    for number in range(3):
        case.file(number, rate("EUR", float(number), number), rate(str(number), 1.0, number))
        if number == 2:
            server.query("create table kept as select * from rates")
            server.query("create table kept_epochs as select * from vsc_epochs")
        case.run()
    assert server.query("select max(epoch) from vsc_epochs") == [(2,)]
    server.query("truncate rates; insert into rates select * from kept")
    server.query("truncate vsc_epochs; insert into vsc_epochs select * from kept_epochs")
    case.file(3, rate("3", 1.0, 3))
    error = case.refused()
    assert error.code == "VSC906"
    assert error.message.endswith(
        " has epoch 1 of this checkpoint as the newest; the checkpoint has written up to epoch 2"
    )
    assert error.help == (
        "run with --back-to 1, which writes the later epochs again; --back-to 2 goes on without what is missing"
    )
    assert rows() == [("0", 1.0), ("1", 1.0), ("EUR", 1.0)]  # nothing was written
    assert [r.epoch for r in case.run(back_to=1)] == [2, 3]
    assert rows() == [("0", 1.0), ("1", 1.0), ("2", 1.0), ("3", 1.0), ("EUR", 2.0)]

    server.query("drop table rates")
    case.file(4, rate("4", 1.0, 4))
    for _ in range(2):  # nothing has been created
        error = case.refused()
        assert re.search(r"the table '[a-z_.]*rates' in the database .* is gone; .* up to epoch 3$", error.message)
        assert error.help == (
            "restore it, or run with a new checkpoint, which writes everything; "
            "--back-to 3 goes on without what is missing"
        )
    caplog.clear()
    case.run(back_to=3)
    assert rows() == [("4", 1.0)]
    assert [r.getMessage() for r in caplog.records if "holds nothing of what this checkpoint wrote" in r.getMessage()]

    server.query("drop table vsc_epochs")
    error = case.refused()
    assert "has nothing of this checkpoint; the checkpoint has written up to epoch 4" in error.message


def test_what_is_bad_stays_unseen(tmp_path: Path, server: PostgresServer, spark: SparkSession) -> None:
    case = Case(RATES % ("", LOGIN, ", create = true"), tmp_path, server, spark)
    case.file(0, rate("EUR", 1.0, 1), rate("USD", 1.0, -1))
    error = case.refused(max_bad="0")
    assert error.code == "VSC901"
    assert server.query("select count(*) from rates") == [(0,)]
    assert server.query("select relname from pg_class where relname like 'vsc_stage%%'") == []


@pytest.mark.parametrize(
    ("column", "rows", "words"),
    [
        ("rate double precision, at bigint, gone boolean, currency text primary key check (length(currency) < 4)",
         [rate("EUR", 1.0, 1), rate("EURO", 1.0, 2), rate("USD", 1.0, 3)],
         ", epoch 0: the table 'public.rates' refuses the row of currency = 'EURO': new row for relation"),
        ("currency text primary key, at bigint, gone boolean, rate double precision check (rate > 0)",
         [rate("EUR", 1.0, 1), rate("USD", -1.0, 2), rate("ABC", 1.0, 3)],
         'refuses the row of currency = \'USD\': new row for relation "rates" violates check constraint'),
        ("currency text primary key, at bigint, gone boolean, rate double precision unique",
         [rate("EUR", 1.0, 1), rate("USD", 1.0, 2), rate("ABC", 2.0, 3)],
         "Key (rate)=(1) already exists."),
        ("currency text primary key, at bigint, gone boolean, rate double precision not null",
         [rate("EUR", 1.0, 1), rate("USD", None, 2)],
         "refuses the row of currency = 'USD': null value in column \"rate\""),
        ("currency text primary key, at bigint, gone boolean, rate double precision",
         [rate("EUR", 1.0, 1), rate("U\0D", 1.0, 2)],
         "the row of currency = 'U\\x00D': the text in column 'currency' has a NUL character"),
    ],
)  # fmt: skip
def test_a_row_that_the_table_refuses_is_named(
    column: str, rows: list[dict[str, Any]], words: str, tmp_path: Path, server: PostgresServer, spark: SparkSession
) -> None:
    server.query(f"create table rates ({column})")
    case = Case(RATES % ("", LOGIN, ""), tmp_path, server, spark)
    case.file(0, *rows)
    error = case.refused()
    assert error.code == "VSC920"
    assert words in error.message
    assert server.query("select count(*) from rates") == [(0,)]
    assert server.query("select count(*) from vsc_epochs") == [(0,)]
    assert server.query("select relname from pg_class where relname like 'vsc_stage%%'") == []


def test_refused_rows_go_to_the_sink_of_what_is_dropped(
    tmp_path: Path, server: PostgresServer, spark: SparkSession
) -> None:
    server.query("create domain code as text check (length(value) < 4); create table rates (currency code primary key, "
                 "at bigint, gone boolean, rate double precision check (rate <> 77))")  # fmt: skip
    text = "sink dropped of rates to files (path = '${out}', format = 'json');\n" + RATES % ("", LOGIN, "")
    case = Case(text, tmp_path, server, spark)
    case.file(0, *(rate(f"c{i}", float(i), i) for i in range(70, 80)), rate("EURO", 1.0, 2))
    # In place of a change that is refused, the one before it of its key counts.
    case.file(1, rate("USD", 1.0, 1), rate("USD", 2.0, 2), rate("USD", 77.0, 3), rate("c78", 0, 9, gone=True),
              rate("U\0D", 5.0, 4))  # fmt: skip
    first = case.run()

    def dropped() -> list[tuple[Any, ...]]:
        lines = [one for path in (tmp_path / "out").glob("*.json") for one in path.read_text().splitlines()]
        found = [json.loads(line) for line in lines]
        assert {(r["node"], r["reason"], r["source"]) for r in found} == {("rates", "refused", "rates")}
        return sorted((json.loads(r["key"])["currency"], json.loads(r["value"]), r["message"]) for r in found)

    check = 'new row for relation "rates" violates check constraint "rates_rate_check"'
    expected = [
        ("EURO", {"rate": 1.0, "at": 2, "gone": False}, 'value for domain code violates check constraint "code_check"'),
        ("U\0D", {"rate": 5.0, "at": 4, "gone": False},
         "the text in column 'currency' has a NUL character, which PostgreSQL refuses"),
        ("USD", {"rate": 77.0, "at": 3, "gone": False}, f"{check} (Failing row contains (USD, 3, f, 77).)"),
        ("c77", {"rate": 77.0, "at": 77, "gone": False}, f"{check} (Failing row contains (c77, 77, f, 77).)"),
    ]  # fmt: skip
    assert dropped() == expected
    rates = [("USD", 2.0), *((f"c{i}", float(i)) for i in range(70, 80) if i not in (77, 78))]
    assert server.query("select currency, rate from rates order by 1") == rates
    assert [r.metrics.as_dict()["dropped_records"] for r in first] == [
        {"rates": {"refused": 2}}, {"rates": {"refused": 2}},
    ]  # fmt: skip
    assert [r.written for r in first] == [{"sink-0": 2, "sink-1": 11}, {"sink-0": 2, "sink-1": 5}]
    case.run(back_to=0)
    assert (dropped(), server.query("select currency, rate from rates order by 1")) == (expected, rates)
    assert server.query("select relname from pg_class where relname like 'vsc_stage%%'") == []


def test_the_first_of_many_rows_that_is_refused(tmp_path: Path, server: PostgresServer, spark: SparkSession) -> None:
    server.query("create table rates (currency text primary key, at bigint, gone boolean, rate double precision "
                 "check (rate <> 77))")  # fmt: skip
    case = Case(RATES % ("", LOGIN, ""), tmp_path, server, spark)
    # 'late' was wrong once, and is right in the end.
    case.file(0, rate("late", 77.0, 0), *(rate(f"c{i}", float(i), i) for i in range(200)), rate("late", 1.0, 300))
    assert "refuses the row of currency = 'c77'" in case.refused().message
    server.query("alter table rates drop constraint rates_rate_check")
    case.run()
    assert server.query("select count(*) from rates") == [(201,)]


GOOD = "currency text primary key, rate double precision, at bigint, gone boolean"


@pytest.mark.parametrize(
    ("setup", "code", "words"),
    [
        ("", "VSC919", "there is no table 'rates' in the database 'vsc' at 127.0.0.1:"),
        ("create table rates (currency text primary key, rat double precision, at bigint, gone boolean)", "VSC919",
         "the table 'public.rates' has no column 'rate' (double)"),
        ("create table rates (currency text primary key, rate real, at bigint, gone boolean)", "VSC919",
         "column 'rate' is real there, which cannot hold double"),
        ("create table rates (currency int primary key, rate double precision, at bigint, gone boolean)", "VSC919",
         "column 'currency' is integer there, which cannot hold string"),
        ("create table rates (currency text, rate double precision, at bigint, gone boolean)", "VSC919",
         "has no unique key over (currency), by which rows are replaced and deleted"),
        ("create table rates (currency varchar(3) primary key, rate double precision, at bigint, gone boolean)",
         "VSC919", "column 'currency' is character varying(3) there, which cannot hold string"),
        ("create table rates (currency text, rate double precision, at bigint, gone boolean, "
         "unique (currency) deferrable)", "VSC919", "has no unique key over (currency)"),
        (f"create table rates ({GOOD}, other int not null)", "VSC919",
         "has a column 'other' that is not null and has no default"),
        ("create table rates (currency text primary key, at bigint, gone boolean, "
         "rate double precision generated always as (at) stored)", "VSC919",
         "the server itself fills the column 'rate'"),
        (f"create table r ({GOOD}); create view rates as select * from r", "VSC919", "'rates' is not a table"),
    ],
)  # fmt: skip
def test_a_table_that_does_not_fit_is_refused_before_a_row_is_read(
    setup: str, code: str, words: str, tmp_path: Path, server: PostgresServer, spark: SparkSession
) -> None:
    if setup:
        server.query(setup)
    case = Case(RATES % ("", LOGIN, ""), tmp_path, server, spark)
    case.file(0, rate("EUR", 1.0, 1))
    error = case.refused()
    assert error.code == code and error.help
    assert words in error.message
    assert not (tmp_path / "ck").exists()


def test_a_user_without_privileges(tmp_path: Path, server: PostgresServer, spark: SparkSession) -> None:
    server.query(f"create table rates ({GOOD}); create role reader login password 'r'; grant select on rates to reader")
    try:
        login = "'user' = 'reader', 'password' = 'r'"
        case = Case(RATES % ("", login.replace("'r'", "'${rpw}'"), ""), tmp_path, server, spark)
        case.variables["rpw"] = "r"
        case.file(0, rate("EUR", 1.0, 1))
        error = case.refused()
        assert error.code == "VSC919"
        assert "the user 'reader' has no privilege to insert on the table 'public.rates'" in error.message
        server.query("grant insert, update, delete on rates to reader")
        assert "may not create tables in the schema 'public'" in case.refused().message
        server.query("grant create on schema public to reader")
        case.run()
        assert server.query("select currency from rates") == [("EUR",)]
    finally:
        server.query("drop owned by reader; drop role reader")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"url": "jdbc:postgresql://127.0.0.1:1/vsc"}, "cannot connect to the database 'vsc' at 127.0.0.1:1: "),
        ({"url": "nowhere"}, "cannot connect to the database 'nowhere' at 127.0.0.1:"),
        ({"pw": "wrong-secret"}, 'password authentication failed for user "vsc"'),
    ],
)
def test_a_database_that_cannot_be_had(
    change: dict[str, str], words: str, tmp_path: Path, server: PostgresServer, spark: SparkSession
) -> None:
    case = Case(RATES % ("", LOGIN, ""), tmp_path, server, spark)
    if change.get("url") == "nowhere":
        change = {"url": server.url("nowhere")}
    case.variables |= change
    case.file(0, rate("EUR", 1.0, 1))
    error = case.refused()
    assert error.code == "VSC918" and error.help
    assert words in error.message and "wrong-secret" not in str(error)


def test_resolved_plans_are_not_shown(server: PostgresServer) -> None:
    from vsc.runtime.spark.connectors.postgres.database import Database
    from vsc.runtime.spark.connectors.registry import Ends

    plan = resolve_plan(compiled(RATES % ("", LOGIN, "")), {"in": "x", "url": server.url(), "pw": server.password})
    database = Database.of(Ends(plan).sinks[0].options)
    assert dict(database.parameters)["password"] == server.password
    assert server.password not in repr(database)


def test_what_goes_makes_room_for_what_comes(tmp_path: Path, server: PostgresServer, spark: SparkSession) -> None:
    server.query("create table rates (currency text primary key, at bigint, gone boolean, "
                 "rate double precision unique)")  # fmt: skip
    case = Case(RATES % ("", LOGIN, ""), tmp_path, server, spark)
    case.file(0, rate("EUR", 1.0, 1), rate("USD", 2.0, 2))
    case.file(1, rate("ABC", 1.0, 3), rate("EUR", 0.0, 4, gone=True))
    case.run()
    assert server.query("select currency, rate from rates order by 1") == [("ABC", 1.0), ("USD", 2.0)]


def test_names_that_need_quotes(tmp_path: Path, server: PostgresServer, spark: SparkSession) -> None:
    text = f"""
    table t (`a%s "b"` string, `select` int) from files (path = '${{in}}', format = 'json') key `a%s "b"`;
    sink t to jdbc (url = '${{url}}', table = '"50%s"."T ""x"" y"', create = true, {LOGIN});
    """
    server.query('create schema "50%s"')
    case = Case(text, tmp_path, server, spark)
    case.file(0, {'a%s "b"': "k", "select": 1})
    case.run()
    assert server.query('select * from "50%s"."T ""x"" y"') == [("k", 1)]
    case.run(back_to=0)
    case.file(1, {'a%s "b"': "k", "select": None})
    case.run()
    assert server.query('select * from "50%s"."T ""x"" y"') == [("k", None)]


def test_columns_that_are_called_like_those_that_files_add(
    tmp_path: Path, server: PostgresServer, spark: SparkSession
) -> None:
    text = f"""
    table t (k string, _change string, _timestamp bigint) from files (path = '${{in}}', format = 'json') key k
    delete when _change = 'gone';
    sink t to jdbc (url = '${{url}}', table = 't', create = true, {LOGIN});
    """
    case = Case(text, tmp_path, server, spark)
    case.file(0, {"k": "a", "_change": "delete", "_timestamp": 1}, {"k": "b", "_change": "x"})
    case.file(1, {"k": "b", "_change": "gone"})
    case.run()
    assert server.query("select * from t") == [("a", "delete", 1)]


def test_columns_of_other_types_that_hold_every_value(
    tmp_path: Path, server: PostgresServer, spark: SparkSession
) -> None:
    text = f"""
    table t (id string, kind string, at timestamp, n int, list array<int>, doc string)
    from files (path = '${{in}}', format = 'json') key id;
    sink t to jdbc (url = '${{url}}', table = 't', {LOGIN});
    """
    server.query("create type kind as enum ('a', 'b'); create domain small as text check (value <> 'no'); "
                 "create table t (id uuid, kind kind, at timestamp, n numeric, list jsonb, doc json, "
                 "more int default 5, primary key (id))")  # fmt: skip
    case = Case(text, tmp_path, server, spark)
    one, two = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"
    row = {"kind": "a", "at": "2026-05-04T01:02:03Z", "n": 7, "list": [1, None], "doc": '{"x": [1]}'}
    case.file(0, {"id": one, **row}, {"id": two, **row})
    case.run()
    assert server.query("select id::text, kind::text, at, n, list, doc, more from t where id = %s", [one]) == [
        (one, "a", datetime.datetime(2026, 5, 4, 1, 2, 3), Decimal(7), [1, None], {"x": [1]}, 5)
    ]
    server.query("alter table t alter doc type small using 'x'")
    case.file(1, {"id": one, **row, "doc": "no"})
    assert f"refuses the row of id = '{one}': value for domain small violates" in case.refused().message
    server.query("alter table t alter kind type text, alter doc type text using 'x'")
    case.file(2, {"id": two, **row, "kind": "c"})
    case.run()
    assert server.query("select kind, doc from t order by id") == [("a", "no"), ("c", '{"x": [1]}')]


def test_local_days_over_both_changes_of_the_clocks(
    tmp_path: Path, server: PostgresServer, spark: SparkSession
) -> None:
    """Closed days of shops in Berlin, as `date`, are those of Spark SQL."""
    text = f"""
    stream sales (shop string, amount bigint, at timestamp)
    from files (path = '${{in}}', format = 'json', 'maxFilesPerTrigger' = '1') timestamp at;
    table days = aggregate sales group by shop
      window tumbling (size = 1 day, zone = 'Europe/Berlin', grace = 90 minutes) emit final
      select sum(amount) as amount;
    table daily =
      aggregate days group by shop, to_date(from_utc_timestamp(window_start, 'Europe/Berlin')) as day
      select sum(amount) as amount;
    sink daily to jdbc (url = '${{url}}', table = 'daily', {LOGIN});
    """
    server.query("create table daily (shop text, day date, amount bigint, primary key (shop, day))")
    sales = []
    for first in (datetime.datetime(2025, 3, 28), datetime.datetime(2025, 10, 24)):
        for n in range(180):  # every half an hour; each seventh sale comes an hour late
            at = first + datetime.timedelta(minutes=30 * (n - 2 if n % 7 == 2 else n))
            sales.append({"shop": "ab"[n % 3 == 0], "amount": 1 << n % 20, "at": f"{at.isoformat()}Z"})
    case = Case(text, tmp_path, server, spark)
    case.file(0, *sales[:250])
    case.file(1, *sales[250:], {"shop": "a", "amount": 1, "at": "2025-12-01T00:00:00Z"})
    case.run()
    rows = spark.createDataFrame(
        [(s["shop"], s["amount"], s["at"]) for s in sales], "shop string, amount long, at string"
    )
    rows.createOrReplaceTempView("sold")
    expected = spark.sql("""
        select shop, to_date(from_utc_timestamp(to_timestamp(at), 'Europe/Berlin')) as day, sum(amount)
        from sold group by 1, 2 order by 1, 2""").collect()
    assert server.query("select shop, day, amount from daily order by 1, 2") == list(map(tuple, expected))
    assert len(expected) == 16
