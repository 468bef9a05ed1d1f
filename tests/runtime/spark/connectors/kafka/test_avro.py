"""Avro without Kafka: columns to bytes and back, schemas that fit columns or do not, bytes that are not a record."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer

from vsc.plan.nodes import Column
from vsc.plan.types import parse_type
from vsc.runtime.spark.connectors.kafka.avro import AvroForm, decoded, encoded
from vsc.runtime.spark.connectors.kafka.avro_schema import derived, loaded, misfit
from vsc.runtime.values import from_python, to_array, to_python, to_values


def columns(**types: str) -> tuple[Column, ...]:
    return tuple(Column(name, parse_type(type)) for name, type in types.items())


ALL = columns(
    a="boolean", b="tinyint", c="smallint", d="int", e="bigint", f="float", g="double", h="decimal(10,2)", i="string",
    j="binary", k="date", l="timestamp", m="array<struct<x:int,y:string>>", n="map<string,array<date>>",
    o="struct<z:decimal(3,1),w:struct<z:boolean>>",
)  # fmt: skip
ROW = {
    "a": True, "b": -128, "c": 300, "d": -5, "e": 1 << 40, "f": 1.5, "g": 0.1, "h": Decimal("-12.34"), "i": "grün",
    "j": b"\0\xff", "k": date(1969, 12, 31), "l": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    "m": [{"x": 1, "y": None}, None], "n": {"p": [date(2026, 1, 1), None], "q": None},
    "o": {"z": Decimal("1.5"), "w": {"z": False}},
}  # fmt: skip
NOTHING = dict.fromkeys(ROW)


def arrays(of: tuple[Column, ...], *rows: dict[str, Any]) -> list[pa.Array]:
    return [to_array([from_python(row.get(c.name), c.type) for row in rows], c.type) for c in of]


def rows(form: AvroForm, *values: bytes | None) -> list[Any]:
    """The rows of the values, and in their place why one cannot be read."""
    found, problems = decoded(form, pa.array(values, pa.binary()))
    lists = [[to_python(v, c.type) for v in to_values(a, c.type)] for a, c in zip(found, form.columns, strict=True)]
    read = [dict(zip((c.name for c in form.columns), row, strict=True)) for row in zip(*lists, strict=True)]
    return [row if problem is None else problem for row, problem in zip(read, problems, strict=True)]


def test_every_type_there_and_back_with_a_derived_schema() -> None:
    form = AvroForm(derived("rates", ALL, nullable=True), ALL, False, None)
    found = encoded(form, arrays(ALL, ROW, {})).to_pylist()
    schema = parse_schema(json.loads(form.schema))
    assert [schemaless_reader(io.BytesIO(one), schema, None) for one in found] == [ROW, NOTHING]
    assert rows(form, *found, None) == [ROW, NOTHING, NOTHING]
    assert misfit(form.schema, ALL, "read") is misfit(form.schema, ALL, "write") is None


def test_the_schema_id_is_written_and_checked() -> None:
    of = columns(x="int")
    schema = derived("r", of, nullable=True)
    found = encoded(AvroForm(schema, of, False, 7), arrays(of, {"x": 3})).to_pylist()
    assert found == [b"\0\0\0\0\7\2\6"]
    assert rows(AvroForm(schema, of, False, 7), *found, b"\2\6") == [{"x": 3}, "it does not begin with a schema id"]
    assert rows(AvroForm(schema, of, False, 8), *found) == ["its schema id is 7, not 8"]
    assert rows(AvroForm(schema, of, False, "any"), *found, b"\0\0\0\0\x08\2\6") == [{"x": 3}, {"x": 3}]
    assert rows(AvroForm(schema, of, False, None), *found) == [
        "6 of its 7 bytes are behind the record; it may begin with a schema id (option `schema_id`)"
    ]


GIVEN = {
    "type": "record", "name": "Order", "namespace": "org.example", "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
        {"name": "paid", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}]},
        {"name": "small", "type": "int"},
        {"name": "to", "type": {"type": "record", "name": "Place", "fields": [{"name": "street", "type": "string"},
                                                                            {"name": "floor", "type": "int"}]}},
        {"name": "from", "type": ["null", "Place"], "default": None},
    ],
}  # fmt: skip
ORDER = {
    "id": "12345678-1234-5678-1234-567812345678", "at": datetime(2026, 1, 1, tzinfo=UTC),
    "local": datetime(2026, 1, 1, 12), "kind": "B", "hash": b"ab", "paid": Decimal("1.25"), "small": 7,
    "to": {"street": "S", "floor": 3}, "from": {"street": "T", "floor": 4},
}  # fmt: skip


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(GIVEN))
    return loaded(str(path))


def test_a_given_schema_is_read_by_the_names_of_the_columns(schema: str) -> None:
    of = columns(
        to="struct<floor:int>", id="string", kind="string", at="timestamp", local="timestamp", hash="binary",
        paid="decimal(8,3)", small="bigint", **{"from": "struct<street:string>"},
    )  # fmt: skip
    assert misfit(schema, of, "read") is None
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(GIVEN), ORDER)
    [row] = rows(AvroForm(schema, of, False, None), out.getvalue())
    assert row == {
        "to": {"floor": 3}, "id": ORDER["id"], "kind": "B", "at": ORDER["at"],
        "local": datetime(2026, 1, 1, 12, tzinfo=UTC), "hash": b"ab", "paid": Decimal("1.250"), "small": 7,
        "from": {"street": "T"},
    }  # fmt: skip


def test_what_does_not_fit_a_column_is_told(schema: str) -> None:
    of = columns(small="tinyint")
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(GIVEN), {**ORDER, "small": 300})
    assert rows(AvroForm(schema, of, False, None), out.getvalue()) == [
        "column 'small': 300 is not a value of type tinyint"
    ]
    later = "it ends too early, or was written with another schema"
    assert rows(AvroForm(schema, of, False, None), b"", b"\xff" * 40, out.getvalue()[:-3]) == [later] * 3


@pytest.mark.parametrize(
    ("types", "use", "problem"),
    [
        ({"id": "string", "more": "int"}, "read", "it has no field 'more'"),
        ({"small": "string"}, "read", "column 'small' (string) cannot be read from its type 'int'"),
        ({"at": "bigint"}, "read", "column 'at' (bigint) cannot be read from its type 'timestamp-millis'"),
        ({"paid": "decimal(5,2)"}, "read", "column 'paid' (decimal(5,2)) cannot be read from its type 'decimal(6,2)'"),
        ({"to": "struct<street:int>"}, "read", "column 'to.street' (int) cannot be read from its type 'string'"),
        ({"to": "struct<town:int>"}, "read", "it has no field 'to.town'"),
        ({"to": "struct<street:string,floor:int>"}, "write", "its field 'id' has no default, and no column"),
        (
            {"paid": "decimal(7,2)"},
            "write",
            "column 'paid' (decimal(7,2)) cannot be written as its type 'decimal(6,2)'",
        ),
        ({"small": "bigint"}, "write", "column 'small' (bigint) cannot be written as its type 'int'"),
    ],
)
def test_a_schema_that_does_not_fit(types: dict[str, str], use: Any, problem: str, schema: str) -> None:
    assert misfit(schema, columns(**types), use) == problem


def test_one_column_may_be_the_value_itself() -> None:
    of = columns(id="bigint")
    form = AvroForm('"long"', of, True, None)
    assert misfit('"long"', of, "read") is misfit('"long"', of, "write") is None
    assert misfit('"string"', of, "read") == "column 'id' (bigint) cannot be read from its type 'string'"
    assert misfit('"long"', columns(a="int", b="int"), "read") == "the columns cannot be read from its type 'long'"
    found = encoded(form, arrays(of, {"id": 3})).to_pylist()
    assert found == [b"\6"]
    assert rows(form, *found) == [{"id": 3}]


def test_a_record_that_the_schema_cannot_hold_is_shown() -> None:
    of = columns(id="string", x="int")
    form = AvroForm(derived("r", of, nullable=False), of, False, None)
    with pytest.raises(ValueError, match=r"\{id: 'a', x: None\} does not fit its Avro schema: "):
        encoded(form, arrays(of, {"id": "b", "x": 1}, {"id": "a"}))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not JSON"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "Nowhere"}]}', "uses the type 'Nowhere'"),
        ('{"type": "record", "fields": []}', "is not an Avro schema"),
    ],
)
def test_a_file_that_is_no_schema(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "s").write_text(text)
    with pytest.raises(ValueError, match=problem):
        loaded(str(tmp_path / "s"))
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        loaded(str(tmp_path / "t"))
