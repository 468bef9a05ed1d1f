"""Protobuf with a registry, without Kafka and Spark: what Confluent's serializer writes is read, and it reads ours."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass

from tests.runtime.spark.connectors.kafka.registry.double import Double, running
from tests.runtime.spark.connectors.kafka.registry.test_sinks import Target
from tests.runtime.spark.connectors.kafka.registry.test_sources import source
from vsc.plan.nodes import Column, Node
from vsc.plan.types import parse_type
from vsc.runtime.errors import AvroSchemaError, SourceError
from vsc.runtime.spark.connectors.kafka.registry.protobuf_reading import decoded
from vsc.runtime.spark.connectors.kafka.registry.protobuf_writing import derived, encoded, write_misfit
from vsc.runtime.spark.connectors.kafka.registry.protoc import compiled, message_at
from vsc.runtime.spark.connectors.kafka.registry.reader import RegistryReader
from vsc.runtime.spark.connectors.kafka.registry.schemas import Known
from vsc.runtime.spark.connectors.kafka.registry.sources import check_source, fetched, registered_parts, settled
from vsc.runtime.values import from_python, to_array, to_python, to_values

PLACE = 'syntax = "proto3"; package a; message Place { string street = 1; optional int32 floor = 2; }'
PAYMENT = """
syntax = "proto3";
package a.b;
import "place.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/type/date.proto";
import "confluent/type/decimal.proto";
message Other { string unused = 1; }
message Payment {
  enum Kind { NONE = 0; CARD = 1; }
  message Line { string item = 1; optional int32 pieces = 2; }
  string id = 1;
  int64 plain = 2;
  optional int64 optional = 3;
  google.protobuf.Int64Value wrapped = 4;
  Kind kind = 5;
  google.protobuf.Timestamp paid = 6;
  oneof means { string card = 7; int32 voucher = 8; }
  repeated Line lines = 9;
  map<string, a.Place> places = 10;
  a.Place place = 11;
  confluent.type.Decimal amount = 12;
  google.type.Date day = 13;
  uint64 big = 14;
  bytes raw = 15;
  float rate = 16;
}
"""
COLUMNS = """
  plain bigint, optional bigint, wrapped bigint, kind string, paid timestamp, card string, voucher int,
  lines array<struct<item: string, pieces: int>>, places map<string, struct<street: string, floor: int>>,
  place struct<floor: int>, amount decimal(10, 2), day date, big decimal(20, 0), raw binary, rate double
"""
TEXT = """
stream payments (id string, COLUMNS)
from kafka (bootstrap_servers = 'b:1', topic = 't', format = 'protobuf', registry = '${registry}', OPTIONS)
key id;
sink payments to console ();
"""
FULL: dict[str, Any] = {
    "plain": 7, "optional": 0, "wrapped": 8, "kind": "CARD", "paid": datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
    "card": None, "voucher": 3, "lines": [{"item": "pen", "pieces": None}, {"item": "ink", "pieces": 0}],
    "places": {"home": {"street": "S", "floor": None}}, "place": {"floor": 2}, "amount": Decimal("-12.34"),
    "day": date(2026, 5, 4), "big": Decimal(2**64 - 1), "raw": b"\xff", "rate": 0.5,
}  # fmt: skip
EMPTY: dict[str, Any] = {
    "plain": 0, "optional": None, "wrapped": None, "kind": "NONE", "paid": None, "card": None, "voucher": None,
    "lines": [], "places": {}, "place": None, "amount": None, "day": None, "big": Decimal(0), "raw": b"", "rate": 0.0,
}  # fmt: skip
CONTEXT = SerializationContext("t", MessageField.VALUE)


@pytest.fixture
def registry() -> Iterator[Double]:
    with running() as found:
        yield found


def payment_type(text: str = PAYMENT) -> Any:
    message = message_at(compiled(text, {"place.proto": PLACE}), (1,))
    assert message is not None
    return GetMessageClass(message)


def full(kind: Any) -> Any:
    found = kind(id="x", plain=7, optional=0, kind=1, voucher=3, big=2**64 - 1, raw=b"\xff", rate=0.5)
    found.wrapped.value = 8
    found.paid.seconds, found.paid.nanos = 1_767_323_045, 6999
    found.lines.add(item="pen")
    found.lines.add(item="ink", pieces=0)
    found.places["home"].street = "S"
    found.place.floor = 2
    found.amount.value, found.amount.scale = (-1234).to_bytes(2, "big", signed=True), 2
    found.day.year, found.day.month, found.day.day = 2026, 5, 4
    return found


def read(known: Known, columns: tuple[Column, ...], *values: bytes) -> list[Any]:
    rows = RegistryReader(0, "value", "protobuf", columns, known=known).read(pa.array(values, pa.binary()))
    lists = [[to_python(v, c.type) for v in to_values(a, c.type)] for a, c in zip(rows.columns, columns, strict=True)]
    return [
        dict(zip((c.name for c in columns), row, strict=True)) if problem is None else problem
        for *row, problem in zip(*lists, rows.problems.to_pylist(), strict=True)
    ]


def source_of(url: str, columns: str = COLUMNS, options: str = "record_name = 'a.b.Payment'") -> tuple[Node, Any]:
    return source(TEXT.replace("COLUMNS", columns).replace("OPTIONS", options), url)


def test_what_confluents_serializer_wrote_is_read(registry: Double) -> None:
    client = SchemaRegistryClient({"url": registry.url})
    kind = payment_type()
    write = ProtobufSerializer(kind, client, {"use.deprecated.format": False})
    values = [write(full(kind), CONTEXT), write(kind(id="y"), CONTEXT)]
    node, options = source_of(registry.url)
    check_source(node, options)
    [part] = registered_parts(node, options)
    known = settled(options, part, Known())
    broken = values[0][:-1]
    assert read(known, node.schema.value, *values, broken, values[0][:5], values[0][:5] + b"\2\x0c") == [
        FULL, EMPTY, "schema id 2: it is not a message of its schema",
        "schema id 2: it does not say which message of its schema it is",
        "schema id 2: its schema has no message at [6]",
    ]  # fmt: skip


def test_numbers_out_of_range_are_bad_rows() -> None:
    schema = compiled(
        'syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/type/date.proto"; import '
        '"confluent/type/decimal.proto"; message M { google.protobuf.Timestamp a = 1; google.type.Date b = 2; '
        "confluent.type.Decimal c = 3; uint64 d = 4; }", {}
    )  # fmt: skip
    types = {"a": "timestamp", "b": "date", "c": "decimal(4, 2)", "d": "bigint"}
    columns = tuple(Column(name, parse_type(type)) for name, type in types.items())
    message = message_at(schema, (0,))
    kind = GetMessageClass(message)
    values = [kind(d=2**63), kind(), kind(), kind(), kind()]
    values[1].a.seconds = 2**62
    values[2].b.month = 13
    values[3].c.scale, values[3].c.value = 2**31 - 1, b"\1"
    values[4].c.scale, values[4].c.value = 0, b"\x7f" * 40
    bodies = pa.array([b"\0" + one.SerializeToString() for one in values], pa.binary())
    problems = decoded(schema, None, columns, bodies)[1]
    assert all(problem is not None for problem in problems), problems


def test_fields_of_another_version_are_renamed_or_have_their_defaults(registry: Double) -> None:
    old = 'syntax = "proto3"; package a.b; message Payment { string ident = 1; int32 plain = 2; string gone = 9; }'
    first = registry.add("t-value", old, "PROTOBUF")
    new = 'syntax = "proto3"; package a.b; message Payment { string name = 1; int64 plain = 2; string note = 3;'
    registry.add("t-value", new + " optional string more = 4; repeated int32 many = 5; }", "PROTOBUF")
    columns = "name string, plain bigint, note string, more string, many array<int>"
    node, options = source_of(registry.url, columns, "subject_name_strategy = 'topic'")
    [part] = registered_parts(node, options)
    known = settled(options, part, Known())
    kind = GetMessageClass(message_at(known.ids[str(first)].text, (0,)))
    framed = b"\0\0\0\0" + bytes([first]) + b"\0" + kind(ident="a", plain=-3, gone="x").SerializeToString()
    assert read(known, node.schema.value, framed) == [{"name": "a", "plain": -3, "note": "", "more": None, "many": []}]
    other = registry.add("u", 'syntax = "proto3"; package a.b; message Payment { bytes plain = 2; }', "PROTOBUF")
    known = fetched(options, part, known, [str(other)], 0)
    assert read(known, node.schema.value, b"\0\0\0\0" + bytes([other]) + b"\0") == [
        "schema id 3: column 'plain' (bigint) cannot be read from its type 'binary'"
    ]


def test_a_schema_without_a_column_is_refused_with_both(registry: Double) -> None:
    registry.add(
        "t-value", 'syntax = "proto3"; package a; message P { string id = 1; repeated a.P of = 2; }', "PROTOBUF"
    )
    node, options = source_of(registry.url, "plain bigint", "subject_name_strategy = 'topic'")
    with pytest.raises(AvroSchemaError) as caught:
        check_source(node, options)
    assert caught.value.message.endswith(
        "(version 1, id 1) does not fit the columns: it has no field 'plain'; the schema has "
        "a.P {string id; repeated a.P of}, the columns are (plain bigint)"
    )
    registry.add("u-value", "message {", "PROTOBUF")
    text = TEXT.replace("COLUMNS", "plain bigint").replace(", OPTIONS", "").replace("'t'", "'u'")
    with pytest.raises(SourceError, match=r"does not take a schema of Protobuf: line 1:9: Expected message name"):
        check_source(*source(text, registry.url))


def test_confluents_deserializer_reads_what_a_sink_writes(registry: Double, tmp_path: Path) -> None:
    text = """
stream payments (id bigint, amount decimal(10, 2), day date, at timestamp, place struct<street: string>, n int,
                 tags array<string>, m map<string, double>)
from files (path = 'p', format = 'json') key id;
sink payments to kafka (bootstrap_servers = 'b:1', topic = 't', format = 'protobuf', key_format = 'protobuf',
                        registry = '${registry}', OPTIONS);
"""
    record = Target(registry.url, tmp_path, "register = true, record_name = 'com.example.Payment'", text).settle()
    assert record.value.writer is not None
    row: dict[str, Any] = {
        "amount": Decimal("-12.30"), "day": date(1, 1, 2), "at": datetime(1969, 12, 31, 23, 59, 59, 5, UTC),
        "place": {"street": None}, "n": None, "tags": ["a"], "m": {"3": 0.5},
    }  # fmt: skip
    columns = record.value.columns
    arrays = [to_array([from_python(row[c.name], c.type)], c.type) for c in columns]
    [value] = record.value.writer.encoded(arrays).to_pylist()
    client = SchemaRegistryClient({"url": registry.url})
    id = int.from_bytes(value[1:5], "big")
    schema = compiled(client.get_schema(id).schema_str or "", {})
    kind = GetMessageClass(message_at(schema, (0,)))
    found = ProtobufDeserializer(kind, {"use.deprecated.format": False})(value, CONTEXT)
    assert (kind.DESCRIPTOR.full_name, found.amount.value, found.amount.scale) == (
        "com.example.Payment",
        b"\xfb\x32",
        2,
    )
    assert (found.day.year, found.at.seconds, found.at.nanos) == (1, -1, 5000)
    assert (found.HasField("place"), found.place.HasField("street"), found.HasField("n")) == (True, False, False)
    assert (list(found.tags), dict(found.m)) == (["a"], {"3": 0.5})
    back, problems = decoded(compiled(client.get_schema(id).schema_str or "", {}), None, columns, pa.array([value[5:]]))
    assert problems == [None]
    assert [to_python(to_values(a, c.type)[0], c.type) for a, c in zip(back, columns, strict=True)] == list(
        row.values()
    )


def test_a_new_column_keeps_the_numbers_of_the_others() -> None:
    def columns(**types: str) -> tuple[Column, ...]:
        return tuple(Column(name, parse_type(type)) for name, type in types.items())

    first = derived("a.B", columns(x="int", y="struct<p:int>"), None)
    second = derived("a.B", columns(new="string", y="struct<q:int,p:int>", x="int"), compiled(first, {}))
    message = message_at(compiled(second, {}), (0,))
    assert message is not None
    assert {field.name: field.number for field in message.fields} == {"x": 1, "y": 2, "new": 3}
    inner = message.fields_by_name["y"].message_type
    assert {field.name: field.number for field in inner.fields} == {"p": 1, "q": 2}


def test_what_a_message_cannot_hold_is_told() -> None:
    schema = compiled('syntax = "proto3"; enum K { A = 0; B = 1; } message M { int32 x = 1; K k = 2; }', {})
    columns = (Column("x", parse_type("int")), Column("k", parse_type("string")))
    arrays = [pa.array([1, None], pa.int32()), pa.array(["B", "B"])]
    assert encoded(schema, None, columns, [a.slice(0, 1) for a in arrays]) == [b"\0\x08\1\x10\1"]
    with pytest.raises(ValueError, match=r"'x' is null, and its field has no presence"):
        encoded(schema, None, columns, arrays)
    with pytest.raises(ValueError, match="'C' is not a value of its enum"):
        encoded(schema, None, columns, [arrays[0].slice(0, 1), pa.array(["C"])])
    assert write_misfit(schema, (Column("x", parse_type("bigint")),), None) == (
        "column 'x' (bigint) cannot be written as its type 'int'"
    )
    assert write_misfit(schema, (Column("z", parse_type("int")),), None) == "it has no field 'z'"
    assert write_misfit(schema, columns, "N") == "it has no message 'N'"
