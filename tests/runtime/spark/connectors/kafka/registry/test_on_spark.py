"""Topics whose schemas are in a real registry: what Confluent's client wrote is read, and it reads what vsc writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from servers.kafka import Broker, Record
from servers.registry import RegistryServer
from tests.runtime.spark.support import compiled, run_once
from vsc.runtime.spark import start
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

    def add(schema: Any, **value: Any) -> None:
        broker.write(names["in"], [Record(key, written(client, names["in"], schema, {"paid": 7000, **value}), 1)])

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
    add(THIRD, amount=None, currency="CHF", note="met in an epoch")
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
