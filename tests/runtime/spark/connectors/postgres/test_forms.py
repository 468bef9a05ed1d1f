"""What needs no server of the jdbc connector: URLs, and values as PostgreSQL reads them."""

from __future__ import annotations

import json
import socket

import pyarrow as pa
import pytest

from vsc.plan import Connector
from vsc.plan.types import parse_type
from vsc.runtime.errors import DatabaseError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.postgres.database import Database
from vsc.runtime.spark.connectors.postgres.types import copied, created_type, texts
from vsc.runtime.values import to_array


def database(url: str, **spark: str) -> Database:
    return Database.of(Options("here", Connector("jdbc", (("url", url), ("table", "t")), tuple(spark.items()))))


@pytest.mark.parametrize(
    ("url", "name", "parameters"),
    [
        ("jdbc:postgresql://db.example:6543/shop", "'shop' at db.example:6543",
         {"host": "db.example", "port": "6543", "dbname": "shop"}),
        ("jdbc:postgresql://a,b:1/my%20shop?sslmode=require", "'my shop' at a:5432, b:1",
         {"host": "a,b", "port": "5432,1", "dbname": "my shop", "sslmode": "require"}),
        ("jdbc:postgresql://[::1]:7/d?user=u&password=p%26w", "'d' at ::1:7",
         {"host": "::1", "port": "7", "dbname": "d", "user": "u", "password": "p&w"}),
        ("jdbc:postgresql:d", "'d' at localhost:5432", {"host": "localhost", "port": "5432", "dbname": "d"}),
        ("jdbc:postgresql://h/?ApplicationName=app&connectTimeout=3", "'' at h:5432",
         {"host": "h", "port": "5432", "application_name": "app", "connect_timeout": "3"}),
    ],
)  # fmt: skip
def test_a_url_is_read_as_the_driver_reads_it(url: str, name: str, parameters: dict[str, str]) -> None:
    found = database(url)
    assert found.name == f"the database {name}"
    shown = {name: value for name, value in found.parameters if not name.startswith("keepalives_")}
    assert shown == {"application_name": "vsc", "connect_timeout": "10"} | parameters


def test_executors_connect_to_any_of_the_hosts() -> None:
    found = database("jdbc:postgresql://a:1,[::1]/shop")
    assert found.servers == (("a", 1), ("::1", 5432))


def test_options_are_parameters_too_and_passwords_are_not_shown() -> None:
    found = database("jdbc:postgresql://h/d?user=no&currentSchema=s", User="me", password="hidden")
    assert found.search_path == "s"
    assert dict(found.parameters)["user"] == "me"
    assert dict(found.parameters)["password"] == "hidden" and "hidden" not in repr(found)


@pytest.mark.parametrize(
    ("url", "spark", "words"),
    [
        ("jdbc:mysql://h/secret", {}, "the url is not one of PostgreSQL"),
        ("postgresql://me:secret@h/d", {}, "the url is not one of PostgreSQL"),
        ("jdbc:postgresql://me:secret@h/d", {}, "the url has a host that cannot be read"),
        ("jdbc:postgresql://h/d?reWriteBatchedInserts=secret", {}, "connection parameter 'reWriteBatchedInserts'"),
        ("jdbc:postgresql://h/d", {"driver": "secret"}, "connection parameter 'driver'"),
        ("jdbc:postgresql://h/d?connectTimeout=0", {}, "connectTimeout is a number of seconds from 1 to 3600"),
    ],
)
def test_what_cannot_be_understood_is_refused(url: str, spark: dict[str, str], words: str) -> None:
    with pytest.raises(DatabaseError) as raised:
        database(url, **spark)
    assert words in raised.value.message and "secret" not in str(raised.value)


def test_a_server_that_does_not_answer_is_not_waited_for() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        found = database(f"jdbc:postgresql://127.0.0.1:{silent.getsockname()[1]}/d", connectTimeout="2", password="no")
        with pytest.raises(DatabaseError) as raised, found.connected("here"):
            pass
    assert "here: cannot connect to the database 'd' at 127.0.0.1:" in raised.value.message
    assert "timeout expired" in raised.value.message


@pytest.mark.parametrize(
    ("type", "values", "json", "expected"),
    [
        ("boolean", [True, None, False], False, ["true", None, "false"]),
        ("tinyint", [-128, 127], False, ["-128", "127"]),
        ("float", [1.5, float("inf")], False, ["1.5", "inf"]),
        ("double", [0.1, 1e300, float("nan")], False, ["0.1", "1e+300", "nan"]),
        ("date", [-1, None], False, ["1969-12-31", None]),
        ("timestamp", [-1, None], False, ["1969-12-31 23:59:59.999999+00", None]),
        ("binary", [b"\x00\xff", None, b""], False, ["\\x00ff", None, "\\x"]),
        ("array<string>", [['a"\\', None, "", "NULL"], None, []], False, ['{"a\\"\\\\",NULL,"","NULL"}', None, "{}"]),
        ("array<timestamp>", [[0]], False, ['{"1970-01-01 00:00:00.000000+00"}']),
        ("array<int>", [[1, None]], True, ["[1,null]"]),
        ("map<string, int>", [{"a": 1}, None], True, ['{"a":1}', None]),
    ],
)
def test_values_as_text(type: str, values: list[object], json: bool, expected: list[str | None]) -> None:
    parsed = parse_type(type)
    array = to_array([None, *values, values[0]], parsed).slice(1, len(values))  # a part of an array is what comes
    assert texts(array, parsed, json).to_pylist() == expected


def test_the_lines_of_a_copy() -> None:
    columns = [pa.array(["1", None, "\\N"]), pa.array(["a\tb\nc\rd\\.", "", None])]
    assert bytes(copied(columns)) == b"1\ta\\tb\\nc\\rd\\\\.\n\\N\t\n\\\\N\t\\N\n"


def test_the_types_of_a_table_that_is_made() -> None:
    made = {
        name: created_type(parse_type(name)) for name in ("decimal(5,2)", "array<decimal(5,2)>", "array<array<int>>")
    }
    assert list(made.values()) == ["numeric(5,2)", "numeric(5,2)[]", "jsonb"]


def test_json_has_all_digits_of_a_time() -> None:
    type = parse_type("struct<at: timestamp, l: array<timestamp>, m: map<timestamp,timestamp>>")
    micros = (1_000, 1, -1)
    rows = [(at, [at, None], {at: at}) for at in micros]
    shown = "1970-01-01T00:00:00.001Z", "1970-01-01T00:00:00.000001Z", "1969-12-31T23:59:59.999999Z"
    keys = "1970-01-01 00:00:00.001", "1970-01-01 00:00:00.000001", "1969-12-31 23:59:59.999999"
    assert [json.loads(text) for text in texts(to_array(rows, type), type, True).to_pylist()] == [
        {"at": at, "l": [at, None], "m": {key: at}} for at, key in zip(shown, keys, strict=True)
    ]
