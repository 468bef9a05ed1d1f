"""Change events of Debezium whose schemas are in a registry, in Avro and in JSON, without Kafka and Spark."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_writer

from tests.runtime.spark.connectors.kafka.registry.double import Double, running
from tests.runtime.spark.connectors.kafka.registry.test_sources import source
from vsc.plan.nodes import Node
from vsc.runtime.errors import AvroSchemaError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.layout import layout
from vsc.runtime.spark.connectors.kafka.registry.reader import RegistryReader
from vsc.runtime.spark.connectors.kafka.registry.schemas import Known, WriterSchema
from vsc.runtime.spark.connectors.kafka.registry.sources import check_source, registered_parts, settled
from vsc.runtime.spark.connectors.kafka.texts import texts_reader
from vsc.runtime.spark.formats.source_columns import BAD, DELETED, TIME, VALUE

TEXT = """
table customers (id bigint, name string, credit decimal(10, 2), since date, seen timestamp, born timestamp,
                 score double, photo binary, tags array<string>, level int)
from kafka (bootstrap_servers = 'b:1', topic = 'bank.public.customers', format = 'debezium',
            registry = '${registry}')
key id;
sink customers to console ();
"""
MICROS = {"type": "long", "connect.version": 1, "connect.name": "io.debezium.time.MicroTimestamp"}
CREDIT = {"type": "bytes", "scale": 2, "precision": 10, "connect.version": 1, "logicalType": "decimal",
          "connect.parameters": {"scale": "2", "connect.decimal.precision": "10"},
          "connect.name": "org.apache.kafka.connect.data.Decimal"}  # fmt: skip
ROW: list[dict[str, Any]] = [
    {"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"], "default": None},
    {"name": "credit", "type": ["null", CREDIT], "default": None},
    {"name": "since", "type": ["null", {"type": "int", "connect.name": "io.debezium.time.Date"}], "default": None},
    {"name": "seen", "type": ["null", MICROS], "default": None},
    {"name": "born", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
    {"name": "score", "type": ["null", "double"], "default": None},
    {"name": "photo", "type": ["null", "bytes"], "default": None},
    {"name": "tags", "type": ["null", {"type": "array", "items": ["null", "string"]}], "default": None},
]  # fmt: skip


def envelope(*added: dict[str, Any]) -> dict[str, Any]:
    """The schema of the events of a table, as Debezium writes it."""
    row = {"type": "record", "name": "Value", "fields": [*ROW, *added]}
    return {"type": "record", "name": "Envelope", "namespace": "bank.public.customers", "fields": [
        {"name": "before", "type": ["null", row], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": [
            {"name": "ts_ms", "type": "long"}, {"name": "snapshot", "type": ["string", "null"], "default": "false"}]}},
        {"name": "op", "type": "string"}, {"name": "ts_ms", "type": ["null", "long"], "default": None}]}  # fmt: skip


LEVEL = {"name": "level", "type": "int", "default": 3}
FIRST, SECOND = envelope(), envelope(LEVEL)


@pytest.fixture
def registry() -> Iterator[Double]:
    with running() as found:
        yield found


def event(id: int, schema: Any, op: str, time: int, **rows: Any) -> bytes:
    out = io.BytesIO()
    found = {
        "op": op,
        "source": {"ts_ms": time, "snapshot": None},
        "ts_ms": None,
        "before": None,
        "after": None,
        **rows,
    }
    schemaless_writer(out, parse_schema(schema), found)
    return b"\0" + id.to_bytes(4, "big") + out.getvalue()


def row(id: int, **values: Any) -> dict[str, Any]:
    return {"id": id, **{field["name"]: None for field in ROW[1:]}, **values}


def read(node: Node, options: Options, known: Known, *values: bytes | None) -> list[Any]:
    """What a source makes of records: a row with its time, `-` and the key for a deletion, or why it cannot be read."""
    record = layout(options, node, node.source.columns, "read")
    reader = texts_reader(record, node.source.columns, frozenset({"id"}), options)
    [texts] = reader.texts
    assert isinstance(texts.reader, RegistryReader)
    object.__setattr__(texts.reader, "known", known)
    columns = node.source.columns
    given = {VALUE: pa.array(values, pa.binary()), TIME: pa.array([0] * len(values), pa.int64())}
    [rows] = reader([pa.record_batch(given)])
    rows = rows.rename_columns([*(c.name for c in columns), *rows.schema.names[len(columns) :]])
    shown: list[Any] = []
    for one in rows.to_pylist():
        if one[BAD] is not None:
            shown.append(one[BAD])
        else:
            shown.append((one[TIME], f"-{one['id']}" if one[DELETED] else [one[c.name] for c in columns]))
    return shown


def test_events_in_avro_are_the_rows_of_the_table_whatever_their_schema(registry: Double) -> None:
    first, second = (registry.add("bank.public.customers-value", one) for one in (FIRST, SECOND))
    node, options = source(TEXT, registry.url)
    check_source(node, options)
    [part] = registered_parts(node, options)
    known = settled(options, part, Known())
    assert list(known.ids) == ["1", "2"]
    at = datetime(2026, 3, 1, 8, 30, 0, 123456, UTC)
    old, new = {**row(1), "level": 4}, {**row(2, score=float("nan")), "level": 5}
    whole = {"name": "Ann", "credit": Decimal("12.50"), "since": 20513, "born": at.replace(microsecond=0), "score": 0.1,
             "seen": int(at.timestamp() * 1_000_000), "photo": b"\xff\0", "tags": ["a", None]}  # fmt: skip
    found = read(
        node, options, known,
        event(first, FIRST, "c", 1000, after=row(1, **whole)),
        event(second, SECOND, "u", 2000, before=old, after=new),
        None, event(first, FIRST, "d", 3000, before=row(7)),
        event(first, FIRST, "c", 1000, after=row(1))[:-3], b"{}", b"\0\0\0\0\x63ab",
        event(first, FIRST, "t", 1000),
    )  # fmt: skip
    values = ["Ann", Decimal("12.50"), date(2026, 3, 1), at, at.replace(microsecond=0), 0.1, b"\xff\0", ["a", None]]
    assert found[0] == (1000, [1, *values, 3])  # `level`: the default of the newest schema
    assert found[1] == (2000, "-1")
    assert (found[2][0], found[2][1][0], found[2][1][-1], str(found[2][1][6])) == (2000, 2, 5, "nan")
    assert found[3:] == [
        (3000, "-7"),
        "its value cannot be read: schema id 1: it ends too early, or was written with another schema",
        "its value cannot be read: it does not begin with a schema id",
        "its value cannot be read: its schema id is 99, which the registry does not have",
        "its value cannot be read: it empties the whole table (op 't')",
    ]


def test_events_in_json_behind_an_id_need_what_events_without_a_schema_need(registry: Double) -> None:
    text = TEXT.replace("format = 'debezium'", "format = 'debezium', decimals = 'base64', times = 'microseconds'")
    id = registry.add("bank.public.customers-value", {"type": "object", "title": "Envelope"}, "JSON")
    node, options = source(text, registry.url)
    check_source(node, options)
    [part] = registered_parts(node, options)
    known = settled(options, part, Known())
    value = {"op": "c", "source": {"ts_ms": 5}, "after": {"id": 1, "credit": "BOI=", "seen": 1_000_000}}
    header = b"\0" + id.to_bytes(4, "big")
    [(time, values)] = read(node, options, known, header + json.dumps(value).encode())
    assert (time, values[0], values[2], values[4]) == (5, 1, Decimal("12.50"), datetime.fromtimestamp(1, UTC))


def test_a_schema_that_is_none_of_events_or_lacks_a_column_is_refused(registry: Double) -> None:
    registry.add("bank.public.customers-value", FIRST)
    node, options = source(TEXT, registry.url)
    with pytest.raises(AvroSchemaError, match="does not fit the columns: its rows have no field 'level'"):
        check_source(node, options)
    registry.add("u-value", {"type": "record", "name": "R", "fields": ROW})
    registry.add("v-value", "syntax = 'proto3';", "PROTOBUF")
    for topic, why in (("u", "none of change events"), ("v", "one of protobuf, not of avro or json")):
        with pytest.raises(AvroSchemaError, match=why):
            check_source(*source(TEXT.replace("bank.public.customers", topic), registry.url))
    known = Known(ids={"1": WriterSchema("avro", json.dumps(FIRST))})  # of which no newer one is known
    assert read(node, options, known, event(1, FIRST, "c", 1000, after=row(1))) == [
        "its value cannot be read: schema id 1: its rows have no field 'level'"
    ]
