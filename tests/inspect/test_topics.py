"""``vsc inspect --registry``: a topic in, a statement out that the compiler takes and its schemas fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.connectors.kafka.registry.double import Double, running
from tests.runtime.spark.connectors.kafka.registry.test_debezium import SECOND as ENVELOPE
from tests.runtime.spark.connectors.kafka.registry.test_protobuf import PAYMENT, PLACE
from tests.runtime.spark.connectors.kafka.registry.test_sources import source
from vsc.cli import main
from vsc.runtime.spark.connectors.kafka.registry.sources import check_source

VALUE: dict[str, Any] = {"type": "record", "name": "P", "fields": [
    {"name": "amount", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A"]}},
    {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "L", "fields": [
        {"name": "item", "type": "string"}, {"name": "of", "type": {"type": "map", "values": "long"}}]}}},
    {"name": "either", "type": ["int", "string"]},
    {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
    {"name": "order by", "type": "double"}]}  # fmt: skip
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}


@pytest.fixture
def registry() -> Iterator[Double]:
    with running() as found:
        yield found


def inspect(capsys: pytest.CaptureFixture[str], registry: Double, *arguments: str) -> str:
    """What the command writes: a source that a run would take."""
    assert main(["inspect", "--registry", registry.url, *arguments]) == 0
    out = capsys.readouterr().out
    name = "payments"
    check_source(*source(out + f"sink {name} to console ();", registry.url, brokers="b:1"))
    return out


def test_avro_with_a_key(capsys: pytest.CaptureFixture[str], registry: Double) -> None:
    value = {**VALUE, "fields": VALUE["fields"][:6]}
    registry.add("payments-value", value)
    registry.add("payments-key", KEY)
    assert inspect(capsys, registry, "payments") == (
        "-- schemas of payments: version 1 of its value (id 1), version 1 of its key (id 2)\n"
        "-- either is not read: it is a union\n"
        "-- clock is not read: it is time-millis\n"
        "stream payments (\n"
        "  id     bigint,\n"
        "  amount decimal(9,2),\n"
        "  at     timestamp,\n"
        "  kind   string,\n"
        "  lines  array<struct<item:string,of:map<string,bigint>>>\n"
        ")\n"
        "from kafka (\n"
        "  bootstrap_servers = '${brokers}',\n"
        "  topic = 'payments',\n"
        "  format = 'avro',\n"
        "  key_format = 'avro',\n"
        "  registry = '${registry}'\n"
        ")\n"
        "key id;\n"
    )


def test_protobuf_of_a_message(capsys: pytest.CaptureFixture[str], registry: Double) -> None:
    registry.add("place", PLACE, "PROTOBUF")
    references = [{"name": "place.proto", "subject": "place", "version": 1}]
    registry.add("payments-value", PAYMENT, "PROTOBUF", references)
    out = inspect(capsys, registry, "payments", "--record", "a.b.Payment", "--key", "id", "--kind", "table")
    assert "table payments (" in out
    assert "  wrapped  bigint,\n" in out
    assert "  places   map<string,struct<street:string,floor:int>>,\n" in out
    assert "  big      decimal(20,0),\n" in out
    assert out.endswith("  record_name = 'a.b.Payment',\n  registry = '${registry}'\n)\nkey id;\n")
    assert "  key_format = 'none',\n" in out


def test_change_events_are_a_table(capsys: pytest.CaptureFixture[str], registry: Double) -> None:
    registry.add("payments-value", ENVELOPE)
    registry.add("payments-key", KEY)
    assert inspect(capsys, registry, "payments").split("\n")[1:] == [
        "table payments (", "  id     bigint,", "  name   string,", "  credit decimal(10,2),", "  since  date,",
        "  seen   timestamp,", "  born   timestamp,", "  score  double,", "  photo  binary,", "  tags   array<string>,",
        "  level  int", ")", "from kafka (", "  bootstrap_servers = '${brokers}',", "  topic = 'payments',",
        "  format = 'debezium',", "  registry = '${registry}'", ")", "key id;", "",
    ]  # fmt: skip
    assert "stream payments (\n  id " in (out := inspect(capsys, registry, "payments", "--kind", "stream"))
    assert "  op     string,\n" in out


def test_json_schema(capsys: pytest.CaptureFixture[str], registry: Double) -> None:
    properties = {
        "a": {"type": ["null", "integer"]},
        "b": {"oneOf": [{"type": "null"}, {"type": "string", "format": "date-time"}]},
        "c": {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "number"}}}},
        "e": {"type": "object", "additionalProperties": {"type": "boolean"}}, "f": {"enum": [1, "x"]},
    }  # fmt: skip
    registry.add("payments-value", {"type": "object", "properties": properties}, "JSON")
    out = inspect(capsys, registry, "payments")
    assert "  a bigint,\n  b timestamp,\n  c array<struct<d:double>>,\n  e map<string,boolean>\n)\n" in out
    assert "-- f is not read: it is a schema without a type\n" in out


def test_what_cannot_be_told(capsys: pytest.CaptureFixture[str], registry: Double, tmp_path: Path) -> None:
    assert main(["inspect", "--registry", registry.url, "payments"]) == 2
    assert "has no subject payments-value" in capsys.readouterr().err
    assert main(["inspect", "--registry", registry.url, "--registry-auth", "me:secret", "payments"]) == 2
    assert "names a file" in capsys.readouterr().err
    registry.login = "me:secret"
    registry.add("payments-value", json.dumps(VALUE))
    assert main(["inspect", "--registry", registry.url, "payments"]) == 2
    assert "refuses the credentials" in capsys.readouterr().err
    (tmp_path / "auth").write_text("me:secret")
    assert main(["inspect", "--registry", registry.url, "--registry-auth", f"file:{tmp_path}/auth", "payments"]) == 0
    out = capsys.readouterr().out
    assert "`order by` double" in out
    assert "registry_auth = '${registry_auth}'" in out


def test_what_to_do_names_what_the_command_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "--registry", "http://127.0.0.1:9", "payments"]) == 2
    said = capsys.readouterr().err
    assert "does not answer" in said and said.endswith(" = help: start it, or correct `--registry`\n")
    given = ["--registry", "http://127.0.0.1:9", "--registry-auth", "file:missing"]
    assert main(["inspect", *given, "payments"]) == 2
    assert "the file of `--registry-auth` cannot be read: No such file or directory" in capsys.readouterr().err
