"""Topics whose schemas are in a real registry: what Confluent's client wrote is read, and it reads what vsc writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass

from servers.kafka import Broker, Record
from servers.registry import RegistryServer
from tests.runtime.spark.support import compiled, run_once
from vsc.runtime.spark import start
from vsc.runtime.spark.connectors.kafka.registry.protoc import compiled as compiled_proto
from vsc.runtime.spark.connectors.kafka.registry.protoc import message_at
from vsc.runtime.spark.exchange.counters import EpochReport

pytestmark = pytest.mark.spark

FIRST = {"type": "record", "name": "Payment", "namespace": "org.example", "fields": [
    {"name": "amount", "type": "int"},
    {"name": "paid", "type": {"type": "long", "logicalType": "timestamp-millis"}}]}  # fmt: skip
SECOND = {**FIRST, "fields": [
    {"name": "amount", "type": ["null", "long"]}, FIRST["fields"][1],
    {"name": "currency", "type": "string", "default": "EUR"}]}  # fmt: skip
THIRD = {**SECOND, "fields": [*SECOND["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
READ = """
stream payments (id bigint, amount bigint, paid timestamp, currency string)
from kafka (bootstrap_servers = '${brokers}', topic = '${in}', format = 'avro', key_format = 'avro',
            registry = '${registry}')
key id timestamp paid;
sink payments to kafka (bootstrap_servers = '${brokers}', topic = '${out}', format = 'json');
sink payments to kafka (bootstrap_servers = '${brokers}', topic = '${avro}', format = 'avro', key_format = 'avro',
                        registry = '${registry}', register = true);
"""


def written(client: SchemaRegistryClient, topic: str, schema: Any, value: Any, part: str = "value") -> bytes:
    """What Confluent's serializer makes of a value; it registers the schema."""
    serializer = AvroSerializer(client, json.dumps(schema))
    found = serializer(value, SerializationContext(topic, MessageField.VALUE if part == "value" else MessageField.KEY))
    assert found is not None
    return bytes(found)


@pytest.fixture
def client(registry: RegistryServer) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


@pytest.mark.seam("a schema registry")
def test_schemas_evolve_during_a_run_and_are_kept(
    spark: Any, tmp_path: Path, broker: Broker, registry: RegistryServer, client: SchemaRegistryClient,
    topic: Callable[..., str],
) -> None:  # fmt: skip
    names = {"in": topic(1), "out": topic(1), "avro": topic(1)}
    key = written(client, names["in"], KEY, {"id": 5}, "key")

    def add(schema: Any, in_header: bool = False, **value: Any) -> None:
        found = written(client, names["in"], schema, {"paid": 7000, **value})
        about: tuple[tuple[str, bytes | None], ...] = (("trace", b"x"),)
        if in_header:
            about, found = (*about, ("__value_schema_id", found[:5])), found[5:]
        broker.write(names["in"], [Record(key, found, 1, headers=about)])

    add(FIRST, amount=1)
    add(SECOND, amount=1 << 40, currency="USD")
    broker.write(
        names["in"], [Record(key, b"{}", 1), Record(key, b"\0\0\0\x03\xe7ab", 1), Record(key, key[:5] + b"ab", 1)]
    )
    plan = compiled(READ)
    variables = {"brokers": broker.address, "registry": registry.url, **names}
    reports: list[EpochReport] = []
    query = start(
        plan, spark, checkpoint=tmp_path / "ck", on_epoch=reports.append, trigger="20 ms", variables=variables,
        partitions=1,
    )  # fmt: skip
    query.processAllAvailable()
    add(THIRD, in_header=True, amount=None, currency="CHF", note="met in an epoch")
    query.processAllAvailable()
    query.stop()
    dropped = [report.metrics.as_dict()["dropped_records"] for report in reports if report.read["payments"]]
    assert dropped[0] == {"payments": {"unreadable": 3}}

    add(FIRST, amount=2)  # now without the registry
    run_once(plan, spark, tmp_path / "ck", variables={**variables, "registry": "http://127.0.0.1:9"})
    at = {"paid": "1970-01-01T00:00:07.000000Z"}
    assert [record.json for record in broker.read(names["out"])] == [
        {"amount": 1, **at, "currency": "EUR"}, {"amount": 1 << 40, **at, "currency": "USD"},
        {**at, "currency": "CHF"}, {"amount": 2, **at, "currency": "EUR"},
    ]  # fmt: skip
    context = SerializationContext(names["avro"], MessageField.VALUE)
    assert [AvroDeserializer(client)(record.value, context) for record in broker.read(names["avro"])] == [
        {"amount": amount, "paid": datetime.fromtimestamp(7, UTC), "currency": currency}
        for amount, currency in ((1, "EUR"), (1 << 40, "USD"), (None, "CHF"), (2, "EUR"))
    ]
    kept: Mapping[str, Any] = json.loads((tmp_path / "ck/vsc/schemas/0.json").read_text())
    assert len(kept["value"]["ids"]) == 4  # with that of the key, which a value bears


PROTO = """
syntax = "proto3";
package org.example;
import "place.proto";
import "google/protobuf/timestamp.proto";
enum Kind { NONE = 0; CARD = 1; }
message Payment {
  int64 amount = 1;
  Kind kind = 2;
  org.example.Place place = 3;
  google.protobuf.Timestamp paid = 4;
  oneof means { string card = 5; int32 voucher = 6; }
}
"""
PLACE = 'syntax = "proto3"; package org.example; message Place { string street = 1; }'
THROUGH = """
stream payments (id string, amount bigint, kind string, place struct<street: string>, paid timestamp, card string)
from kafka (bootstrap_servers = '${brokers}', topic = '${in}', format = 'protobuf', registry = '${registry}')
key id timestamp paid;
table counts = aggregate payments group by id window tumbling (size = 1 minute) select count(*) as n;
sink payments to kafka (bootstrap_servers = '${brokers}', topic = '${out}', format = 'protobuf',
                        registry = '${registry}', register = true, record_name = 'org.example.Paid');
sink counts to kafka (bootstrap_servers = '${brokers}', topic = '${counts}', format = 'json', registry = '${registry}',
                      register = true, key_format = 'windowed');
"""


def test_protobuf_and_windowed_keys(
    spark: Any, tmp_path: Path, broker: Broker, registry: RegistryServer, client: SchemaRegistryClient,
    topic: Callable[..., str],
) -> None:  # fmt: skip
    names = {"in": topic(1), "out": topic(1), "counts": topic(1)}
    client.register_schema("place.proto", Schema(PLACE, "PROTOBUF"))
    reference = SchemaReference("place.proto", "place.proto", 1)
    id = client.register_schema(f"{names['in']}-value", Schema(PROTO, "PROTOBUF", [reference]))
    kind = GetMessageClass(message_at(compiled_proto(PROTO, {"place.proto": PLACE}), (0,)))
    payment = kind(amount=7, kind=1, card="c")
    payment.place.street, payment.paid.seconds = "S", 61
    value = b"\0" + id.to_bytes(4, "big") + b"\0" + payment.SerializeToString()
    broker.write(names["in"], [Record(b"a", value, 1), Record(b"b", value[:5] + b"\0", 1)])
    [report] = run_once(
        compiled(THROUGH), spark, tmp_path / "ck",
        variables={"brokers": broker.address, "registry": registry.url, **names}, partitions=1,
    )  # fmt: skip
    assert report.metrics.as_dict()["dropped_records"] == {"payments": {"null_timestamp": 1}}
    [written] = broker.read(names["out"])
    assert written.value is not None
    schema = client.get_schema(int.from_bytes(written.value[1:5], "big")).schema_str or ""
    paid = GetMessageClass(message_at(compiled_proto(schema, {}), (0,)))
    found = ProtobufDeserializer(paid, {"use.deprecated.format": False})(
        written.value, SerializationContext(names["out"], MessageField.VALUE)
    )
    assert (paid.DESCRIPTOR.full_name, found.amount, found.kind, found.card) == ("org.example.Paid", 7, "CARD", "c")
    assert (found.place.street, found.paid.seconds) == ("S", 61)
    [counted] = broker.read(names["counts"])
    assert (counted.key, (counted.value or b"")[5:]) == (b"a" + (60_000).to_bytes(8, "big"), b'{"n":1}')
