"""A source's schemas in a registry, without Kafka and Spark: fetched once, resolved to the columns, or refused."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_writer

from tests.runtime.spark.connectors.kafka.registry.double import Double, running
from tests.runtime.spark.connectors.kafka.registry.test_sinks import Files
from tests.runtime.spark.support import compiled
from vsc.plan.nodes import Node
from vsc.runtime.errors import AvroSchemaError, ConfigurationError, SourceError
from vsc.runtime.spark.base.checksummed import read_checksummed, with_checksum
from vsc.runtime.spark.base.options import Options, resolve_plan
from vsc.runtime.spark.connectors.kafka.registry.client import Registry
from vsc.runtime.spark.connectors.kafka.registry.framing import NO_ID
from vsc.runtime.spark.connectors.kafka.registry.reader import RegistryReader
from vsc.runtime.spark.connectors.kafka.registry.schemas import Known, WriterSchema
from vsc.runtime.spark.connectors.kafka.registry.source_schemas import inherit
from vsc.runtime.spark.connectors.kafka.registry.sources import (
    check_source,
    fetched,
    looked_at,
    registered_parts,
    settled,
)
from vsc.runtime.spark.formats.json_rows import JsonReader

TEXT = """
stream payments (id string, amount bigint, currency string, at timestamp, place struct<street: string, floor: int>)
from kafka (bootstrap_servers = 'b:1', topic = 't', format = 'avro', registry = '${registry}')
key id;
sink payments to console ();
"""
PLACE = {"type": "record", "name": "Place", "fields": [{"name": "street", "type": "string"}]}
FIRST: dict[str, Any] = {"type": "record", "name": "Payment", "namespace": "a", "fields": [
    {"name": "amount", "type": "int"},
    {"name": "time", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "place", "type": PLACE}]}  # fmt: skip
SECOND: dict[str, Any] = {**FIRST, "fields": [
    {"name": "amount", "type": ["null", "long"]},
    {"name": "currency", "type": ["string", "null"], "default": "EUR"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "aliases": ["time"]},
    {"name": "place", "type": ["null", {**PLACE, "fields": [
        *PLACE["fields"], {"name": "floor", "type": "int", "default": 9}]}], "default": None}]}  # fmt: skip


TEXT_READER = JsonReader(compiled(TEXT).sources[0].schema.value, UTC, True, False)


@pytest.fixture
def registry() -> Iterator[Double]:
    with running() as found:
        yield found


def source(text: str, url: str, **variables: str) -> tuple[Node, Options]:
    [node] = resolve_plan(compiled(text), {"registry": url, **variables}).sources
    return node, Options.of_source(node)


def written(id: int, schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema), value)
    return b"\0" + id.to_bytes(4, "big") + out.getvalue()


def read(known: Known, node: Node, *values: bytes) -> list[Any]:
    """The rows of the values, and in their place why one cannot be read."""
    columns = node.schema.value
    rows = RegistryReader(0, "value", "avro", columns, known=known).read(pa.array(values, pa.binary()))
    lists = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    return [
        dict(zip((column.name for column in columns), row, strict=True)) if problem is None else problem
        for row, problem in zip(lists, rows.problems.to_pylist(), strict=True)
    ]


def test_older_and_newer_schemas_are_resolved_to_the_columns(registry: Double) -> None:
    first, second = registry.add("t-value", FIRST), registry.add("t-value", SECOND)
    node, options = source(TEXT, registry.url)
    check_source(node, options)
    [part] = registered_parts(node, options)
    known = settled(options, part, Known())
    assert list(known.ids) == [str(first), str(second)]
    assert registry.asked == {
        "GET /subjects/t-value/versions/latest": 1, "GET /subjects/t-value/versions": 1,
        "GET /subjects/t-value/versions/1": 1, "GET /subjects/t-value/versions/2": 1,
    }  # fmt: skip
    assert Known.load(json.loads(json.dumps(known.dump()))) == known
    rows = read(
        known, node, written(second, SECOND, {"amount": None, "currency": None, "at": 0, "place": None}),
        written(first, FIRST, {"amount": 7, "time": 1500, "place": {"street": "S"}}),
        b"", b"{}", written(first, FIRST, {"amount": 7, "time": 1500, "place": {"street": "S"}})[:-1],
    )  # fmt: skip
    at = rows[1].pop("at")
    assert (at.timestamp(), rows[0].pop("at").timestamp()) == (1.5, 0)
    assert rows == [
        {"amount": None, "currency": None, "place": None},
        {"amount": 7, "currency": "EUR", "place": {"street": "S", "floor": 9}},
        "it does not begin with a schema id", "it does not begin with a schema id",
        "schema id 1: it ends too early, or was written with another schema",
    ]  # fmt: skip


def test_a_new_id_is_fetched_once_and_one_that_is_not_there_is_a_bad_row(registry: Double) -> None:
    registry.add("t-value", SECOND)
    node, options = source(TEXT, registry.url)
    [part] = registered_parts(node, options)
    known = settled(options, part, Known())
    less = {**SECOND, "name": "Less", "fields": SECOND["fields"][1:]}
    id = registry.add("other", less)
    known = fetched(options, part, known, [str(id), "99", registry.guid(id), registry.guid(50)], epoch=3)
    assert [registry.asked[f"GET /schemas/ids/{one}"] for one in (id, 99)] == [1, 1]
    found = read(
        known, node, written(id, less, {"currency": "EUR", "at": 0, "place": None}), b"\0\0\0\0\x63x",
        b"\1" + bytes(8) + bytes(7) + b"\2" + b"x", b"\1" + (50).to_bytes(8, "big") + (7).to_bytes(8, "big"),
    )  # fmt: skip
    assert found[0] == "schema id 2: it has no field 'amount'"
    assert found[1] == "its schema id is 99, which the registry does not have"
    assert known.after(2).unknown == {"99": 3, registry.guid(50): 3}
    later = Known.load(json.loads(json.dumps(known.after(3).dump())))
    assert not later.unknown
    assert later.former == {"99", registry.guid(50)}
    gone = source(TEXT, "http://127.0.0.1:9")[1]
    assert fetched(gone, part, later, ["99"], epoch=4).unknown == {"99": 4}
    with pytest.raises(SourceError, match="does not answer"):
        fetched(gone, part, later, ["98"], epoch=4)
    late = registry.add("late", SECOND)
    assert fetched(options, part, later, [str(late)], epoch=4).ids[str(late)].kind == "avro"


def test_bytes_that_only_look_like_ids_cost_a_bounded_number_of_questions(
    registry: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.add("t-value", SECOND)
    node, options = source(TEXT, registry.url)
    [part] = registered_parts(node, options)
    known, garbage = settled(options, part, Known()), [str(id) for id in range(1000, 6000)]
    for epoch in range(50):  # each meets a hundred, of which one message names some
        met = [id for id in garbage[100 * epoch : 100 * epoch + 100] if not known.has(id)][:60]
        known = fetched(options, part, known, met, epoch) if met else known
    assert sum(n for path, n in registry.asked.items() if path.startswith("GET /schemas/")) == 120
    assert known.closed == 1
    value = b"\0" + (5999).to_bytes(4, "big")
    assert read(known, node, value, b"\0" + (1000).to_bytes(4, "big")) == [
        "its schema id is 5999, which the subject does not have; after 100 unknown ids, the run asks for no others",
        "its schema id is 1000, which the registry does not have",
    ]
    new = registry.add("t-value", {**SECOND, "doc": "registered meanwhile"})
    body = {"amount": 7, "currency": "EUR", "at": 0, "place": None}
    assert isinstance(read(known, node, written(new, SECOND, body))[0], str)
    now = looked_at(options, part, known, 60)
    assert read(now, node, written(new, SECOND, body))[0]["amount"] == 7
    assert registry.asked["GET /subjects/t-value/versions/1"] == 1
    assert now.closed == 60
    again = Known.load(json.loads(json.dumps(now.dump()))).after(59)  # the epoch is repeated: nothing may change
    assert (again.closed, again.ids) == (60, now.ids)
    later = again.after(60)
    assert (later.closed, later.unknown, len(later.former)) == (None, {}, 120)
    gone = source(TEXT, "http://127.0.0.1:9")[1]
    asked, ask = list[str](), Registry.by_id

    def counted(self: Registry, id: str) -> WriterSchema | None:
        asked.append(id)
        return ask(self, id)

    monkeypatch.setattr(Registry, "by_id", counted)
    assert len(fetched(gone, part, later, garbage[:60], 61).unknown) == 60
    assert asked == garbage[:1]  # one that is not answered is enough
    many = replace(later, unknown=dict.fromkeys(map(str, range(9000, 11000)), 61)).after(61)
    assert len(many.former) == 1000


def test_a_reader_schema_of_another_kind_is_not_kept(registry: Double) -> None:
    registry.add("t-value", SECOND)
    node, options = source(TEXT, registry.url)
    [part] = registered_parts(node, options)
    known = replace(settled(options, part, Known()), reader=WriterSchema("json", "{}"))
    assert settled(options, part, known).reader == WriterSchema("avro", json.dumps(SECOND))


def test_a_checkpoint_that_goes_on_knows_the_schemas_and_asks_again_for_what_was_unknown(tmp_path: Path) -> None:
    old, new = (Files(str(tmp_path / name)) for name in ("old", "new"))
    ids = {"1": WriterSchema("avro", json.dumps(FIRST))}
    known = Known(WriterSchema("avro", json.dumps(SECOND)), ids, {"99": 57}, frozenset({"7"}), 57)
    old.write("vsc/schemas/2.json", with_checksum({"value": known.dump()}))
    inherit(2, 0, cast(Any, old), cast(Any, new))
    inherit(1, 1, cast(Any, old), cast(Any, new))  # which has no schemas
    found = Known.load(read_checksummed(new, "vsc/schemas/0.json")["value"])
    assert found == Known(known.reader, ids, {}, frozenset({"7", "99"}), None)
    assert new.names("vsc/schemas") == ["0.json"]


def test_no_record_ends_a_run_by_its_schema(registry: Double) -> None:
    registry.add("t-value", SECOND)
    node, options = source(TEXT, registry.url)
    [part] = registered_parts(node, options)
    known = settled(options, part, Known())
    broken = registry.add("u", '{"type": "record", "name": "P", "fields": [{"name": "x", "type": "nowhere"}]}')
    other = registry.add("v", "message {", "PROTOBUF")
    strange = registry.add("w", "<x/>", "XML")
    known = fetched(options, part, known, [str(broken), str(other), str(strange), str(2**32 - 1)], epoch=0)
    assert registry.asked["GET /schemas/ids/4294967295"] == 0
    assert read(known, node, *(b"\0" + id.to_bytes(4, "big") for id in (broken, other, strange, 2**32 - 1))) == [
        "its schema (id 2) cannot be read: fastavro does not take a schema of Avro: nowhere",
        "its schema (id 3) cannot be read: protoc does not take a schema of Protobuf: line 1:9: Expected message name.",
        "its schema (id 4) cannot be read: the registry has a schema of XML, which vsc cannot read",
        "its schema id is 4294967295, which the registry does not have",
    ]


def test_a_guid_names_a_schema(registry: Double) -> None:
    id = registry.add("t-value", SECOND)
    node, options = source(TEXT, registry.url)
    [part] = registered_parts(node, options)
    guid = registry.guid(id)
    known = fetched(options, part, settled(options, part, Known()), [guid], epoch=0)
    body = written(id, SECOND, {"amount": 1, "currency": "USD", "at": 0, "place": None})[5:]
    framed = b"\1" + bytes.fromhex(guid.replace("-", "")) + body
    [row] = read(known, node, framed)
    assert (row["amount"], row["currency"]) == (1, "USD")


def test_types_of_other_subjects_are_part_of_a_schema(registry: Double) -> None:
    registry.add("place", {**PLACE, "namespace": "a", "fields": SECOND["fields"][3]["type"][1]["fields"]})
    whole = {**SECOND, "fields": [*SECOND["fields"][:3], {"name": "place", "type": "a.Place"},
                                  {"name": "next", "type": ["null", "a.Place"], "default": None}]}  # fmt: skip
    registry.add("t-value", whole, references=[{"name": "a.Place", "subject": "place", "version": 1}])
    node, options = source(TEXT, registry.url)
    [part] = registered_parts(node, options)
    known = settled(options, part, Known())
    schema = json.loads(known.ids["2"].text)
    value = {"amount": 1, "currency": "X", "at": 0, "place": {"street": "S", "floor": 1}, "next": None}
    [row] = read(known, node, written(2, schema, value))
    assert row["place"] == {"street": "S", "floor": 1}


def test_json_has_its_schema_in_front(registry: Double) -> None:
    text = TEXT.replace("'avro'", "'json'")
    schema = {"type": "object", "properties": {name: {} for name in ("amount", "currency", "at", "place")}}
    id = registry.add("t-value", schema, "JSON")
    node, options = source(text, registry.url)
    check_source(node, options)
    [part] = registered_parts(node, options)
    known = settled(options, part, Known())
    values = [b"\0\0\0\0\1" + body for body in (b'{"amount": 7, "currency": "EUR"}', b'{"amount": "x"}', b"\xff")]
    rows = RegistryReader(0, "value", "json", node.schema.value, TEXT_READER, known).read(
        pa.array([*values, b'{"amount": 7}'], pa.binary())
    )
    assert (id, rows.columns[0].to_pylist(), rows.columns[1].to_pylist()) == (
        1, [7, None, None, None], ["EUR", None, None, None]
    )  # fmt: skip
    problems = rows.problems.to_pylist()
    assert problems[0] is None
    assert problems[1:] == ["column 'amount' (bigint) cannot hold 'x'", "it is not UTF-8 text", NO_ID]
    registry.add("u-value", {"type": "object", "properties": {"amount": {}}}, "JSON")
    with pytest.raises(AvroSchemaError, match="it has no property 'currency'"):
        check_source(*source(text.replace("'t'", "'u'"), registry.url))


def test_a_schema_without_a_column_is_refused_with_both(registry: Double) -> None:
    registry.add("t-value", FIRST)
    node, options = source(TEXT, registry.url)
    with pytest.raises(AvroSchemaError) as caught:
        check_source(node, options)
    assert caught.value.message == (
        "source 'payments' (line 2): the newest schema of 't-value' (version 1, id 1) does not fit the columns: it has "
        'no field \'currency\'; the schema has {amount: "int", time: {"type": "long", "logicalType": '
        '"timestamp-millis"}, place: {"type": "record", "name": "Place", "fields": [{"name": "street", "type": '
        '"string"}]}}, the columns are (amount bigint, currency string, at timestamp, '
        "place struct<street:string,floor:int>)"
    )
    registry.add("u-value", '{"type": "object"}', "JSON")
    node, options = source(TEXT.replace("'t'", "'u'"), registry.url)
    with pytest.raises(AvroSchemaError, match="is one of json, not of avro"):
        settled(options, registered_parts(node, options)[0], Known())


def test_what_was_read_with_a_schema_is_read_again_with_it_without_the_registry(registry: Double) -> None:
    registry.add("t-value", SECOND)
    node, options = source(TEXT, registry.url)
    [part] = registered_parts(node, options)
    known = settled(options, part, Known())
    gone = source(TEXT, "http://127.0.0.1:9")[1]
    assert settled(gone, part, known) == known
    with pytest.raises(SourceError, match=r"schema registry at http://127\.0\.0\.1:9 does not answer: "):
        settled(gone, part, Known())


def test_a_topic_without_a_schema_yet_is_begun(registry: Double) -> None:
    node, options = source(TEXT, registry.url)
    check_source(node, options)
    [part] = registered_parts(node, options)
    assert settled(options, part, Known()) == Known()


def test_credentials_come_from_a_variable_or_a_file_and_never_show(registry: Double, tmp_path: Path) -> None:
    registry.login = "me:s3cret"
    with_auth = TEXT.replace("registry = '${registry}'", "registry = '${registry}', registry_auth = '${auth}'")
    registry.add("t-value", SECOND)
    check_source(*source(with_auth, registry.url, auth="me:s3cret"))
    (tmp_path / "auth").write_text("me:s3cret\n")
    check_source(*source(with_auth, registry.url, auth=f"file:{tmp_path}/auth"))
    with pytest.raises(SourceError, match=r"refuses the credentials \(HTTP 401\)") as caught:
        check_source(*source(with_auth, registry.url, auth="me:wr0ng"))
    assert "wr0ng" not in str(caught.value)
    for auth, why in (("nothing", "neither USER:PASSWORD nor Bearer TOKEN"), ("file:/no/such", "cannot be read: No")):
        with pytest.raises(ConfigurationError, match=why):
            check_source(*source(with_auth, registry.url, auth=auth))
