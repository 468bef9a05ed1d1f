"""Change events of Debezium as rows: which rows, of when, with which values; and what gives none."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from vsc.plan.nodes import Column, Connector
from vsc.plan.types import parse_type
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.formats.debezium import column_names, debezium_reader
from vsc.runtime.spark.formats.text_rows import Wanted

PLACEHOLDER = "__debezium_unavailable_value"


def read(declared: str, *texts: object, key: str = "id", whole: bool = True, **options: str) -> list[dict[str, Any]]:
    """The rows of texts, or of events as JSON: their columns, and what there is of `time`, `deleted`, `problem`."""
    pairs = (one.split(" ", 1) for one in declared.split("; "))
    columns = tuple(Column(name, parse_type(type)) for name, type in pairs)
    given = Options("source 's'", Connector("kafka", tuple(options.items())))
    reader = debezium_reader(Wanted(columns, frozenset(key.split(",")), whole=whole), given)
    data = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in texts]
    rows = reader.read(pa.array(data, pa.binary()))
    assert rows.times is not None
    assert rows.deleted is not None
    more = zip(rows.places.tolist(), rows.times.to_pylist(), rows.deleted.to_pylist(), rows.problems.to_pylist(),
               rows.texts.to_pylist(), strict=True)  # fmt: skip
    return [
        ({"problem": problem, "text": text} if problem is not None else
         {column.name: array[i].as_py() for column, array in zip(columns, rows.columns, strict=True)}
         | {"time": time} | ({"deleted": True} if deleted else {})) | {"place": place}
        for i, (place, time, deleted, problem, text) in enumerate(more)
    ]  # fmt: skip


def event(op: str, before: object, after: object, time: object = 5) -> dict[str, Any]:
    return {"before": before, "after": after, "source": {"ts_ms": time, "table": "t"}, "op": op, "ts_ms": 99}


def test_each_operation_is_the_row_that_it_leaves() -> None:
    assert read(
        "id bigint; v string",
        event("r", None, {"id": 1, "v": "a"}, 3), event("c", None, {"id": 2, "v": "b", "w": 7}, 4),
        event("u", {"id": 1, "v": "a"}, {"id": 1, "v": None}), event("u", None, {"id": 2}),
        event("d", {"id": 2, "v": "b"}, None, 6),
    ) == [
        {"id": 1, "v": "a", "time": 3, "place": 0}, {"id": 2, "v": "b", "time": 4, "place": 1},
        {"id": 1, "v": None, "time": 5, "place": 2}, {"id": 2, "v": None, "time": 5, "place": 3},
        {"id": 2, "v": None, "time": 6, "deleted": True, "place": 4},
    ]  # fmt: skip


def test_a_tombstone_is_no_row() -> None:
    found = read("id bigint", event("d", {"id": 1}, None), b"null", {"schema": None, "payload": None})
    assert found == [{"id": 1, "time": 5, "deleted": True, "place": 0}]


def test_an_update_of_the_key_deletes_the_old_row_first() -> None:
    found = read("id bigint; k string; v bigint",
                 event("u", {"id": 1, "k": "a", "v": 1}, {"id": 1, "k": "b", "v": 2}), key="k")  # fmt: skip
    assert found == [
        {"id": None, "k": "a", "v": None, "time": 5, "deleted": True, "place": 0},
        {"id": 1, "k": "b", "v": 2, "time": 5, "place": 0},
    ]


def test_keys_are_compared_as_values_and_only_if_they_are_known() -> None:
    same = event("u", {"id": "1.50"}, {"id": 1.5})
    unknown = event("u", {"id": None}, {"id": 2})
    found = read("id decimal(5,2)", same, unknown, decimals="text")
    assert found == [{"id": Decimal("1.50"), "time": 5, "place": 0}, {"id": Decimal("2.00"), "time": 5, "place": 1}]


def test_of_a_deletion_only_the_key_is_read() -> None:
    [found] = read("id bigint; v int", event("d", {"id": 1, "v": "not a number"}, None))
    assert found == {"id": 1, "v": None, "time": 5, "deleted": True, "place": 0}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"id": 1}, "it has no `op`"),
        ([1], "it has no `op`"),
        (event("t", None, None), "it empties the whole table (op 't')"),
        (event("m", None, None), "it is a message, not a change of a row (op 'm')"),
        (event("x", None, {"id": 1}), "its `op` is 'x', none of c, r, u, d"),
        (event("d", None, None), "it is a deletion without `before`: which row is gone?"),
        (event("c", None, '{"id": 1}'), "its `after` is not an object"),
        (event("u", 7, {"id": 1}), "its `before` is not an object"),
        (event("c", None, {"id": 1}, None), "it has no `source.ts_ms`"),
        (event("c", None, {"id": 1}, True), "it has no `source.ts_ms`"),
        (event("c", None, {"id": 2**40}), "column 'id' (int) cannot hold '1099511627776'"),
        (b"{", "'{' is not JSON"),
        (b"{}{}", "'{}{}' is not one JSON object"),
        (b"\xff", "it is not UTF-8 text"),
    ],
)
def test_what_is_not_a_change_is_a_bad_row(given: object, problem: str) -> None:
    [found] = read("id int", given)
    assert found["problem"].startswith(problem)
    assert found["text"]


def test_a_bad_event_of_a_file_is_shown_alone() -> None:
    good, bad = event("c", None, {"id": 1}), event("c", None, {"id": "x"})
    line = f"{json.dumps(good)} {json.dumps(bad)} null".encode()
    found = read("id int", line, [good], whole=False)
    assert [row.get("id") for row in found] == [1, None, 1]
    assert json.loads(found[1]["text"]) == bad
    assert [row["place"] for row in found] == [0, 0, 1]


# ---------------------------------------------------------------------------------------------------------- values


def encoded(unscaled: int) -> str:
    size = unscaled.bit_length() // 8 + 1
    return base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()


def with_schema(value: object, **of_field: object) -> dict[str, Any]:
    row = {"type": "struct", "fields": [{"type": "int64", "field": "id"}, {"field": "v", **of_field}]}
    fields = [{**row, "field": "before"}, {**row, "field": "after"}, {"type": "string", "field": "op"}]
    payload = event("c", None, {"id": 1, "v": value})
    return {"schema": {"type": "struct", "fields": fields}, "payload": payload}


@pytest.mark.parametrize("unscaled", [0, 1, -1, 127, 128, -128, -129, 255, 256, 10**20, -(10**37)])
def test_decimals_in_base64_have_the_scale_that_is_declared(unscaled: int) -> None:
    given = event("c", None, {"id": 1, "v": encoded(unscaled)})
    [found] = read("id bigint; v decimal(38,4)", given, decimals="base64")
    assert found["v"] == Decimal(f"{unscaled}e-4")


def test_a_decimal_of_38_digits_is_exact() -> None:
    digits = 12345678901234567890123456789012345678
    [found] = read("id bigint; v decimal(38,4)", event("c", None, {"id": 1, "v": encoded(-digits)}), decimals="base64")
    assert str(found["v"]) == "-1234567890123456789012345678901234.5678"


def test_what_looks_like_both_is_what_the_option_says() -> None:
    given = event("c", None, {"id": 1, "v": "1234"})
    [as_text] = read("id bigint; v decimal(10,0)", given, decimals="text")
    [as_bytes] = read("id bigint; v decimal(10,0)", given, decimals="base64")
    assert (as_text["v"], as_bytes["v"]) == (Decimal(1234), Decimal(0xD76DF8 - (1 << 24)))


@pytest.mark.parametrize(
    ("type", "value", "missing"),
    [
        ("decimal(10,0)", "1234", "is it base64 or text? say so with the option `decimals`"),
        ("array<decimal(10,0)>", ["1234"], "is it base64 or text?"),
        ("timestamp", 1772442000000, "in which unit is it counted? say so with the option `times`"),
    ],
)
def test_what_is_not_known_is_not_guessed(type: str, value: object, missing: str) -> None:
    [found] = read(f"id bigint; v {type}", event("c", None, {"id": 1, "v": value}))
    assert missing in found["problem"]


@pytest.mark.parametrize(
    ("type", "value", "options", "expected"),
    [
        ("decimal(10,2)", 1.5, {}, Decimal("1.50")),
        ("decimal(10,2)", 7, {}, Decimal("7.00")),
        ("decimal(10,2)", {"scale": 1, "value": encoded(-15)}, {}, Decimal("-1.50")),
        ("array<decimal(4,1)>", [encoded(15), None], {"decimals": "base64"}, [Decimal("1.5"), None]),
        ("date", 20514, {}, date(2026, 3, 2)),
        ("date", "2026-03-02", {}, date(2026, 3, 2)),
        ("timestamp", 1772442000123, {"times": "milliseconds"}, datetime(2026, 3, 2, 9, 0, 0, 123000, UTC)),
        ("timestamp", 1772442000123456, {"times": "microseconds"}, datetime(2026, 3, 2, 9, 0, 0, 123456, UTC)),
        ("timestamp", 1772442000123456789, {"times": "nanoseconds"}, datetime(2026, 3, 2, 9, 0, 0, 123456, UTC)),
        ("timestamp", -1, {"times": "nanoseconds"}, datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
        ("timestamp", "2026-03-02T10:00:00.5+01:00", {}, datetime(2026, 3, 2, 9, 0, 0, 500000, UTC)),
        ("boolean", True, {}, True),
        ("double", 1.5, {}, 1.5),
        ("string", {"a": [1]}, {}, '{"a": [1]}'),
        ("binary", "AAE=", {}, b"\x00\x01"),
    ],
)
def test_values(type: str, value: object, options: dict[str, Any], expected: object) -> None:
    [found] = read(f"id bigint; v {type}", event("c", None, {"id": 1, "v": value}), **options)
    assert found.get("v") == expected


@pytest.mark.parametrize(
    ("type", "value", "options"),
    [
        ("decimal(4,2)", encoded(10**4), {"decimals": "base64"}),
        ("decimal(4,2)", "not base64", {"decimals": "base64"}),
        ("decimal(4,2)", {"scale": 3, "value": encoded(1)}, {}),
        ("decimal(4,2)", {"value": encoded(1)}, {}),
        ("decimal(4,2)", True, {}),
        ("date", 10**7, {}),
        ("date", 1.5, {}),
        ("timestamp", 10**18, {"times": "microseconds"}),
        ("timestamp", 1.5, {"times": "microseconds"}),
        ("binary", 1e39, {}),
    ],
)
def test_what_does_not_fit_exactly_is_a_bad_row(type: str, value: object, options: dict[str, Any]) -> None:
    [found] = read(f"id bigint; v {type}", event("c", None, {"id": 1, "v": value}), **options)
    assert found["problem"].startswith("column 'v' (")


@pytest.mark.parametrize(
    ("type", "value", "of_field", "expected"),
    [
        (
            "decimal(10,4)", encoded(15),
            {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "1"}},
            Decimal("1.5000"),
        ),
        ("decimal(10,0)", "1234", {"type": "string"}, Decimal(1234)),
        ("timestamp", 1000, {"type": "int64", "name": "io.debezium.time.Timestamp"},
         datetime(1970, 1, 1, 0, 0, 1, 0, UTC)),
        ("timestamp", 1000, {"type": "int64", "name": "io.debezium.time.MicroTimestamp"},
         datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)),
        ("timestamp", 1000, {"type": "int64", "name": "io.debezium.time.NanoTimestamp"},
         datetime(1970, 1, 1, 0, 0, 0, 1, UTC)),
        ("timestamp", 1000, {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"},
         datetime(1970, 1, 1, 0, 0, 1, 0, UTC)),
        ("date", 20514, {"type": "int32", "name": "io.debezium.time.Date"}, date(2026, 3, 2)),
        ("date", 20514, {"type": "int32"}, date(2026, 3, 2)),
        ("timestamp", 20514, {"type": "int32", "name": "io.debezium.time.Date"}, datetime(2026, 3, 2, tzinfo=UTC)),
        ("int", 2026, {"type": "int32", "name": "io.debezium.time.Year"}, 2026),
        (
            "array<decimal(10,2)>", [encoded(15)],
            {"type": "array", "items": {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
                                        "parameters": {"scale": "2"}}},
            [Decimal("0.15")],
        ),
    ],
)  # fmt: skip
def test_the_schema_says_how_values_are_written(
    type: str, value: object, of_field: dict[str, Any], expected: object
) -> None:
    options: dict[str, Any] = {"decimals": "text" if "bytes" in str(of_field) else "base64", "times": "seconds"}
    [found] = read(f"id bigint; v {type}", with_schema(value, **of_field), **options)
    assert found["v"] == expected


@pytest.mark.parametrize(
    ("type", "name"),
    [
        ("date", "io.debezium.time.Time"), ("date", "io.debezium.time.Year"), ("date", "io.debezium.time.Timestamp"),
        ("timestamp", "io.debezium.time.MicroTime"), ("timestamp", "io.debezium.time.Year"),
        ("timestamp", "io.debezium.time.MicroDuration"), ("timestamp", "org.apache.kafka.connect.data.Time"),
    ],
)  # fmt: skip
def test_numbers_of_which_the_schema_says_that_they_are_no_such_times_are_bad_rows(type: str, name: str) -> None:
    [found] = read(f"id bigint; v {type}", with_schema(2026, type="int64", name=name), times="milliseconds")
    assert found["problem"] == f"column 'v' ({type}) cannot hold '2026'"


def test_a_schema_may_change_from_event_to_event() -> None:
    milli, micro = ({"type": "int64", "name": f"io.debezium.time.{name}Timestamp"} for name in ("", "Micro"))
    found = read("id bigint; v timestamp", with_schema(1000, **milli), with_schema(1000, **micro),
                 with_schema(2000, **milli))  # fmt: skip
    assert [row["v"].timestamp() for row in found] == [1, 0.001, 2]


@pytest.mark.parametrize(
    ("type", "sign"), [("string", PLACEHOLDER), ("binary", base64.b64encode(PLACEHOLDER.encode()).decode()),
                       ("array<string>", [PLACEHOLDER])]
)  # fmt: skip
def test_what_postgres_has_not_sent_is_that_of_before_or_not_known(type: str, sign: object) -> None:
    value = {"string": "long", "binary": "AAE=", "array<string>": ["x"]}[type]
    known = event("u", {"id": 1, "v": value}, {"id": 1, "v": sign})
    unknown = event("u", None, {"id": 1, "v": sign})
    found = read(f"id bigint; v {type}", known, unknown)
    assert found[0]["v"] == {"string": "long", "binary": b"\x00\x01", "array<string>": ["x"]}[type]
    assert found[1]["problem"].startswith("column 'v' has not changed, and PostgreSQL did not send it")


def test_the_names_of_columns_are_those_of_the_rows() -> None:
    one = event("u", {"id": 1}, {"id": 1, "v": 2})
    assert {*column_names(one)} == {*column_names({"schema": {}, "payload": one})} == {"id", "v"}
    assert {*column_names({"payload": None})} == set()
