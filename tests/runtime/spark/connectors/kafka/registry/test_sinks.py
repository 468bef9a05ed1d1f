"""The schemas that a sink writes with, without Kafka and Spark: registered, the newest, or refused; Confluent's client
reads what they write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.runtime.spark.connectors.kafka.registry.double import Double, running
from tests.runtime.spark.support import compiled
from vsc.plan.types import parse_type
from vsc.runtime.errors import AvroSchemaError, SinkError
from vsc.runtime.spark.base.checksummed import LocalFiles
from vsc.runtime.spark.base.options import Options, resolve_plan
from vsc.runtime.spark.connectors.kafka.layout import Layout, Part, layout
from vsc.runtime.spark.connectors.kafka.registry.reader import RegistryReader
from vsc.runtime.spark.connectors.kafka.registry.schemas import Known, WriterSchema
from vsc.runtime.spark.connectors.kafka.registry.sinks import check_sink, settled
from vsc.runtime.spark.connectors.kafka.sink import _Encoder
from vsc.runtime.spark.connectors.kafka.windowed import WindowedReader
from vsc.runtime.values import arrow_type

TEXT = """
stream payments (id bigint, amount bigint, currency string)
from files (path = 'p', format = 'json')
key id;
sink payments to kafka (bootstrap_servers = 'b:1', topic = 't', format = 'avro', key_format = 'avro',
                        registry = '${registry}', OPTIONS);
"""
NEWEST: dict[str, Any] = {"type": "record", "name": "Payment", "fields": [
    {"name": "amount", "type": ["null", "long"]}, {"name": "currency", "type": ["null", "string"]},
    {"name": "note", "type": ["null", "string"], "default": None}]}  # fmt: skip
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
CONTEXT = SerializationContext("t", MessageField.VALUE)


class Files(LocalFiles):
    def write(self, name: str, text: str) -> None:
        path = Path(self.root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Target:
    """A sink of the topology, with a checkpoint."""

    def __init__(self, url: str, folder: Path, options: str, text: str = TEXT) -> None:
        plan = resolve_plan(compiled(text.replace("OPTIONS", options)), {"registry": url})
        self.node = node = plan.node(plan.sinks[0].node)
        self.options = Options.of_sink(plan.sinks[0])
        self.record = layout(self.options, node, [*node.schema.key, *node.schema.value], "write")
        self.files: Any = Files(str(folder))

    def check(self) -> None:
        check_sink(self.options, "payments", self.record)

    def settle(self) -> Layout:
        return settled(self.options, "payments", self.record, self.files, "sink-0")


def written(part: Part | None, **columns: list[Any]) -> list[bytes]:
    assert part is not None and part.writer is not None
    arrays = [pa.array(columns[c.name], arrow_type(parse_type(str(c.type)))) for c in part.columns]
    found: list[bytes] = part.writer.encoded(arrays).to_pylist()
    return found


@pytest.fixture
def registry() -> Iterator[Double]:
    with running() as found:
        yield found


def posted(registry: Double) -> Mapping[str, int]:
    return {path: n for path, n in registry.asked.items() if path.startswith("POST /subjects")}


def test_a_sink_registers_the_schema_of_its_columns_once_it_is_claimed(registry: Double, tmp_path: Path) -> None:
    target = Target(registry.url, tmp_path, "register = true, record_name = 'com.example.Payment'")
    target.check()
    assert registry.subjects() == {}
    record = target.settle()
    assert registry.subjects() == {"t-key": [1], "t-value": [2]}
    [value] = written(record.value, amount=[7], currency=[None])
    [key] = written(record.key, id=[5])
    client = SchemaRegistryClient({"url": registry.url})
    assert AvroDeserializer(client)(value, CONTEXT) == {"amount": 7, "currency": None}
    assert AvroDeserializer(client)(key, SerializationContext("t", MessageField.KEY)) == {"id": 5}
    assert json.loads(client.get_schema(2).schema_str)["name"] == "com.example.Payment"

    gone = Target("http://127.0.0.1:9", tmp_path, "register = true, record_name = 'com.example.Payment'")
    assert gone.settle() == record
    assert posted(registry) == {"POST /subjects/t-key/versions": 1, "POST /subjects/t-value/versions": 1}


def test_without_register_the_newest_schema_is_written(registry: Double, tmp_path: Path) -> None:
    registry.add("t-key", KEY)
    id = registry.add("t-value", NEWEST)
    target = Target(registry.url, tmp_path, "register = false")
    target.check()
    [value] = written(target.settle().value, amount=[7], currency=["EUR"])
    assert value[:5] == b"\0" + id.to_bytes(4, "big")
    client = SchemaRegistryClient({"url": registry.url})
    assert AvroDeserializer(client)(value, CONTEXT) == {"amount": 7, "currency": "EUR", "note": None}
    newer = registry.add("t-value", {**NEWEST, "fields": NEWEST["fields"][:2]})
    [same] = written(target.settle().value, amount=[7], currency=["EUR"])
    assert (same, newer) == (value, id + 1)


def test_what_does_not_fit_is_refused_and_nothing_registered(registry: Double, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="has no subject 't-key'") as missing:
        Target(registry.url, tmp_path, "register = false").check()
    assert missing.value.help == "write `register = true`, or register a schema"
    registry.add("t-key", KEY)
    registry.add("t-value", {**NEWEST, "fields": NEWEST["fields"][:1]})
    with pytest.raises(AvroSchemaError) as caught:
        Target(registry.url, tmp_path, "register = false").check()
    assert caught.value.message == (
        "the sink of 'payments' (line 5): the newest schema of 't-value' (version 1, id 2) does not fit the columns: "
        'it has no field \'currency\'; the schema has {amount: ["null", "long"]}, the columns are '
        "(amount bigint, currency string)"
    )
    registry.incompatible = lambda old, new: "currency" in new
    with pytest.raises(SinkError, match=r"refuses the schema of 't-value', which is not compatible: it has \{amount"):
        Target(registry.url, tmp_path, "register = true").check()
    assert posted(registry) == {}


@pytest.mark.parametrize(
    ("strategy", "subject"), [("topic", "t-value"), ("record", "com.example.P"), ("topic-record", "t-com.example.P")]
)
def test_subjects_go_by_the_strategy(registry: Double, tmp_path: Path, strategy: str, subject: str) -> None:
    options = f"register = true, record_name = 'com.example.P', subject_name_strategy = '{strategy}'"
    Target(registry.url, tmp_path, options).settle()
    assert set(registry.subjects()) == {"t-key", subject}


def test_a_schema_in_a_file_is_that_of_the_sink(registry: Double, tmp_path: Path) -> None:
    (tmp_path / "p.avsc").write_text(json.dumps(NEWEST))
    registry.add("t-key", KEY)
    registry.add("t-value", {**NEWEST, "doc": "another"})
    options = f"schema = '{tmp_path}/p.avsc'"
    id = registry.add("t-value", json.dumps(NEWEST))
    registry.add("t-value", {**NEWEST, "doc": "a third"})
    [value] = written(Target(registry.url, tmp_path, options).settle().value, amount=[1], currency=["X"])
    assert value[:5] == b"\0" + id.to_bytes(4, "big")
    (tmp_path / "p.avsc").write_text(json.dumps({**NEWEST, "doc": "a fourth"}))
    with pytest.raises(SinkError, match="is not among those of 't-value'"):
        Target(registry.url, tmp_path / "new", options).check()


def test_json_is_written_with_the_id_of_its_schema(registry: Double, tmp_path: Path) -> None:
    text = TEXT.replace("'avro'", "'json'")
    record = Target(registry.url, tmp_path, "register = true", text).settle()
    [value] = written(record.value, amount=[7], currency=["EUR"])
    assert value == b'\0\0\0\0\2{"amount":7,"currency":"EUR"}'
    client = SchemaRegistryClient({"url": registry.url})
    schema = client.get_schema(2).schema_str
    found = JSONDeserializer(schema, schema_registry_client=client)(value, CONTEXT)
    assert found == {"amount": 7, "currency": "EUR"}
    Target(registry.url, tmp_path / "new", "register = false", text).check()
    less = text.replace("currency string", "money string")
    with pytest.raises(AvroSchemaError, match="it has no property 'money'"):
        Target(registry.url, tmp_path / "other", "register = false", less).check()


def test_a_windowed_key_may_have_its_schema_in_the_registry(registry: Double, tmp_path: Path) -> None:
    text = """
stream rows (id bigint, other string, v int) from files (path = 'p', format = 'json') key id;
table counts = aggregate rows group by id, other window tumbling (size = 1 minute) select count(*) as n;
sink counts to kafka (bootstrap_servers = 'b:1', topic = 't', format = 'json', registry = '${registry}',
                      key_format = 'windowed', inner_key_format = 'avro', OPTIONS);
"""
    target = Target(registry.url, tmp_path, "register = true", text)
    record = target.settle()
    assert record.key is not None
    assert [column.name for column in record.key.columns] == ["id", "other"]
    at = [datetime.fromtimestamp(60 * i, UTC) for i in (1, 2)]
    values = {"id": [5], "other": ["x"], "window_start": at[:1], "window_end": at[1:], "n": [1]}
    columns = (*target.node.schema.key, *target.node.schema.value)
    arrays = [pa.array(values[c.name], arrow_type(c.type)) for c in columns]
    batch = pa.RecordBatch.from_arrays(
        [*arrays, pa.array(["upsert"]), pa.array([0], pa.int64())], names=[f"c{i}" for i in range(len(columns) + 2)]
    )
    [key] = _Encoder.of(target.node, record, "the sink")(batch).column("key").to_pylist()
    assert key[-8:] == (60_000).to_bytes(8, "big")
    client = SchemaRegistryClient({"url": registry.url})
    found = AvroDeserializer(client)(key[:-8], SerializationContext("t", MessageField.KEY))
    assert found == {"id": 5, "other": "x"}
    known = Known(ids={"1": WriterSchema("avro", client.get_schema(1).schema_str or "")})
    bounds = record.key.bounds
    assert bounds is not None
    reader = WindowedReader(RegistryReader(0, "key", "avro", record.key.columns, known=known), bounds)
    rows = reader.read(pa.array([key, key[8:]], pa.binary()))
    assert [column.to_pylist()[0] for column in rows.columns] == [5, "x", *at]
    assert rows.problems.to_pylist() == [None, "it does not begin with a schema id"]
