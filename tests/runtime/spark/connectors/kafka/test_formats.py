"""Headers and Avro on a real broker: read, carried through a topology, written; what cannot be read is counted."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer

from servers.kafka import Broker, Record
from tests.runtime.spark.support import compiled, run_once
from vsc.runtime.errors import BadRowError, SinkError
from vsc.runtime.spark.query.failures import translated

pytestmark = [pytest.mark.spark, pytest.mark.release]

PAYMENT = {
    "type": "record", "name": "Payment", "fields": [
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
        {"name": "paid", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "lines", "type": {"type": "array", "items": {
            "type": "record", "name": "Line", "fields": [{"name": "item", "type": "string"},
                                                         {"name": "pieces", "type": ["null", "int"]}]}}},
        {"name": "internal", "type": ["null", "string"], "default": None},
    ],
}  # fmt: skip
LINE = {"type": "record", "name": "L", "fields": [
    {"name": "item", "type": ["null", "string"]}, {"name": "pieces", "type": ["null", "int"]}]}  # fmt: skip
KEY = {"type": "record", "name": "PaymentKey", "fields": [{"name": "id", "type": "long"}]}
THROUGH = """
table payments (
  id bigint, amount decimal(9, 2), paid timestamp, lines array<struct<item: string, pieces: int>>,
  h array<struct<key: string, value: binary>>
)
from kafka (bootstrap_servers = '${brokers}', topic = '${in}', format = 'avro', schema = '${schemas}/payment.avsc',
            schema_id = 'any', key_format = 'avro', key_schema = '${schemas}/key.avsc', key_schema_id = 7,
            headers = 'h')
key id;
sink payments to kafka (bootstrap_servers = '${brokers}', topic = '${avro}', format = 'avro', schema_id = 12,
                        key_format = 'avro', headers = 'h');
sink payments to kafka (bootstrap_servers = '${brokers}', topic = '${json}', format = 'json');
"""
HEADERS = (("trace", b"\xff1"), ("trace", b"2"), ("empty", None))


def avro(schema: Any, value: Any, id: int) -> bytes:
    out = io.BytesIO(b"\0" + id.to_bytes(4, "big"))
    out.seek(5)
    schemaless_writer(out, parse_schema(schema), value)
    return out.getvalue()


@pytest.mark.seam("formats of Kafka")
def test_a_table_in_avro_with_headers(spark: Any, tmp_path: Path, broker: Broker, topic: Callable[..., str]) -> None:
    (tmp_path / "payment.avsc").write_text(json.dumps(PAYMENT))
    (tmp_path / "key.avsc").write_text(json.dumps(KEY))
    names = {"in": topic(1), "avro": topic(1), "json": topic(1)}
    at = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
    payment = {"amount": Decimal("12.50"), "paid": at, "lines": [{"item": "pen", "pieces": None}], "internal": "x"}
    key, value = avro(KEY, {"id": 5}, 7), avro(PAYMENT, payment, 3)
    broker.write(
        names["in"],
        [
            Record(key, value, 1000, headers=HEADERS), Record(avro(KEY, {"id": 6}, 7), avro(PAYMENT, payment, 4), 1001),
            Record(key, None, 2000),
            Record(key, value[:-1], 3000), Record(avro(KEY, {"id": 5}, 8), value, 3001), Record(None, value, 3002),
        ],
    )  # fmt: skip
    plan = compiled(THROUGH)
    run = {"variables": {"brokers": broker.address, "schemas": str(tmp_path), **names}, "partitions": 1}
    with pytest.raises(Exception) as caught:
        run_once(plan, spark, tmp_path / "strict", on_bad_row="fail", **run)
    known = translated(caught.value)
    assert isinstance(known, BadRowError)
    assert (
        f"row 3 of {names['in']}-000000 cannot be read: its value is not of its Avro schema: it ends" in known.message
    )

    [report] = run_once(plan, spark, tmp_path / "ck", on_bad_row="drop", **run)
    assert report.metrics.as_dict()["dropped_records"]["payments"] == {"unreadable": 2, "null_key": 1}
    read = sorted((r.key, r.timestamp, r.json, r.headers) for r in broker.read(names["json"]))
    line = {"amount": 12.5, "paid": "2026-05-04T03:02:01.000000Z", "lines": [{"item": "pen"}]}
    whole = {**line, "h": [{"key": "trace", "value": "/zE="}, {"key": "trace", "value": "Mg=="}, {"key": "empty"}]}
    assert read == [
        (b'{"id":5}', 1000, whole, ()), (b'{"id":5}', 2000, None, ()), (b'{"id":6}', 1001, line, ()),
    ]  # fmt: skip

    written = sorted(broker.read(names["avro"]), key=lambda r: (r.key, r.timestamp))
    assert [(r.key, r.timestamp, r.headers) for r in written] == [(b"\x0a", 1000, HEADERS), (b"\x0a", 2000, ()),
                                                                  (b"\x0c", 1001, ())]  # fmt: skip
    first = written[0].value or b""
    assert (first[:5], written[1].value) == (b"\0\0\0\0\x0c", None)
    derived = {"type": "record", "name": "V", "fields": [
        {"name": "amount", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]},
        {"name": "paid", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "lines", "type": ["null", {"type": "array", "items": ["null", LINE]}]},
    ]}  # fmt: skip
    del payment["internal"]
    assert schemaless_reader(io.BytesIO(first[5:]), parse_schema(derived), None) == payment


STREAM = """
stream rows (id string, x int, h map<string, binary>, part int, place bigint)
from kafka (bootstrap_servers = '${brokers}', topic = '${in}', format = 'json', headers = 'h',
            partition = 'part', offset = 'place') key id;
stream traced = map rows select x, element_at(h, 'trace') is not null as traced, h, 10 * part + place as read;
sink traced to kafka (bootstrap_servers = '${brokers}', topic = '${out}', format = 'avro', schema = '${schema}',
                      with_timestamp = true, headers = 'h');
"""
TRACED = {
    "type": "record", "name": "Traced", "fields": [
        {"name": "_timestamp", "type": "long"}, {"name": "x", "type": "int"}, {"name": "traced", "type": "boolean"},
        {"name": "read", "type": "long"},
    ],
}  # fmt: skip


def test_a_stream_with_headers_in_a_map_its_places_and_a_schema_given(
    spark: Any, tmp_path: Path, broker: Broker, topic: Callable[..., str]
) -> None:
    names = {"in": topic(1), "out": topic(1)}
    (tmp_path / "traced.avsc").write_text(json.dumps(TRACED))
    broker.write(
        names["in"], [Record(b"a", b'{"x": 1}', 1000, headers=HEADERS), Record(b"b", b'{"place": 7, "x": 2}', 1001)]
    )  # fmt: skip
    plan = compiled(STREAM)
    variables = {"brokers": broker.address, "schema": str(tmp_path / "traced.avsc"), **names}
    run_once(plan, spark, tmp_path / "ck", variables=variables, partitions=1)
    schema = parse_schema(TRACED)
    found = [(r.key, schemaless_reader(io.BytesIO(r.value or b""), schema, None), r.headers)
             for r in broker.read(names["out"])]  # fmt: skip
    assert found == [
        (b"a", {"_timestamp": 1000, "x": 1, "traced": True, "read": 0}, (("trace", b"2"), ("empty", None))),
        (b"b", {"_timestamp": 1001, "x": 2, "traced": False, "read": 1}, ()),
    ]

    broker.write(names["in"], [Record(b"c", b"{}", 1002)])
    with pytest.raises(Exception) as caught:
        run_once(plan, spark, tmp_path / "ck", variables=variables, partitions=1)
    known = translated(caught.value)
    assert isinstance(known, SinkError)
    assert "the sink of 'traced' (line 6): {x: None" in known.message
    assert len(broker.read(names["out"])) == 2
