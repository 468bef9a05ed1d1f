"""Change events of Debezium from a broker and from files: the same table, with what is not a change as a bad row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from servers.kafka import Broker, Record
from tests.runtime.spark.support import compiled, parquet_rows, run_once
from vsc.plan.nodes import Column, Connector
from vsc.plan.types import BIGINT, STRING
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.layout import Layout, Part
from vsc.runtime.spark.connectors.kafka.texts import texts_reader
from vsc.runtime.spark.formats.source_columns import BAD, CORRUPT, DELETED, OFFSET, TIME, VALUE

TABLES = """
table a (id bigint, k string, price decimal(6, 2))
from kafka (bootstrap_servers = '${brokers}', topic = '${in}', format = 'debezium', decimals = 'base64') key k;
table b (id bigint, k string, price decimal(6, 2))
from files (path = '${files}', format = 'debezium', decimals = 'base64') key k;
table both = join a with b select a.id, a.price, b.price as other;
sink a to kafka (bootstrap_servers = '${brokers}', topic = '${a}', format = 'json');
sink b to kafka (bootstrap_servers = '${brokers}', topic = '${b}', format = 'json');
sink both to kafka (bootstrap_servers = '${brokers}', topic = '${both}', format = 'json');
sink dropped to files (path = '${lost}', format = 'parquet');
"""


def event(op: str, time: int, before: object, after: object) -> bytes:
    return json.dumps({"before": before, "after": after, "op": op, "source": {"ts_ms": time}, "ts_ms": 1}).encode()


def row(id: int, k: str, price: str) -> dict[str, Any]:
    return {"id": id, "k": k, "price": price}


CHANGES = (
    event("r", 1000, None, row(1, "x", "AeJA")),  # 123456
    event("u", 2000, row(1, "x", "AeJA"), row(1, "y", "AeJA")),  # another key
    event("c", 3000, None, row(2, "z", "AQ==")),
    event("d", 4000, row(2, "z", "AQ=="), None),
    b"null",
    event("t", 5000, None, None),
    event("c", 6000, None, row(3, "v", "1.50")),
)


@pytest.mark.seam("formats of Kafka")
@pytest.mark.spark
def test_changes_are_the_rows_of_a_table(spark: Any, tmp_path: Path, broker: Broker, topic: Callable[..., str]) -> None:
    names = {name: topic(1) for name in ("in", "a", "b", "both")}
    texts = [None if text == b"null" else text for text in CHANGES]
    broker.write(names["in"], [Record(b'{"id": 1}', text, 9) for text in texts])
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.json").write_bytes(b"\n".join(CHANGES))
    variables = {"brokers": broker.address, "files": str(tmp_path / "files"), "lost": str(tmp_path / "lost"), **names}
    plan = compiled(TABLES)
    [report] = run_once(plan, spark, tmp_path / "ck", variables=variables, partitions=2, on_bad_row="drop")
    changes = [
        (b"x", 1000, {"id": 1, "price": 1234.56}),
        (b"x", 2000, None), (b"y", 2000, {"id": 1, "price": 1234.56}),
        (b"z", 3000, {"id": 2, "price": 0.01}), (b"z", 4000, None),
    ]  # fmt: skip
    for name in ("a", "b"):
        assert sorted(((r.key, r.timestamp, r.json) for r in broker.read(names[name])), key=lambda r: r[:2]) == changes
    pairs = {(r.key, r.timestamp): r.json for r in broker.read(names["both"])}
    assert pairs[b"x", 2000] is pairs[b"z", 4000] is None
    assert pairs[b"y", 2000] == {"id": 1, "price": 1234.56, "other": 1234.56}
    assert report.metrics.as_dict()["dropped_records"] == {"a": {"unreadable": 2}, "b": {"unreadable": 2}}
    lost = sorted(parquet_rows(tmp_path / "lost"), key=lambda one: (one["source"], one["message"]))
    assert [
        (one["source"], json.loads(one["position"]).get("offset"), one["message"].split(": ")[1]) for one in lost
    ] == [
        ("a", 6, "column 'price' (decimal(6,2)) cannot hold '1.50'"),
        ("a", 5, "it empties the whole table (op 't')"),
        ("b", None, "column 'price' (decimal(6,2)) cannot hold '1.50'"),
        ("b", None, "it empties the whole table (op 't')"),
    ]


def test_a_message_may_be_any_number_of_rows() -> None:
    columns = (Column("id", BIGINT), Column("k", STRING))
    options = Options("source 's'", Connector("kafka", (("format", "debezium"),)))
    reader = texts_reader(
        Layout(None, Part("value", "debezium", columns, None), None), columns, frozenset("k"), options
    )
    values = [CHANGES[1], None, b"null", CHANGES[5], CHANGES[0]]
    batch = pa.record_batch(
        {
            OFFSET: pa.array(range(10, 15)), TIME: pa.array([7] * 5), VALUE: pa.array(values, pa.binary()),
        }
    )  # fmt: skip
    [found] = reader([batch])
    assert found.select([OFFSET, "_vsc_column_0", "_vsc_column_1", TIME, DELETED, BAD]).to_pylist() == [
        {OFFSET: 10, "_vsc_column_0": None, "_vsc_column_1": "x", TIME: 2000, DELETED: True, BAD: None},
        {OFFSET: 10, "_vsc_column_0": 1, "_vsc_column_1": "y", TIME: 2000, DELETED: False, BAD: None},
        {OFFSET: 13, "_vsc_column_0": None, "_vsc_column_1": None, TIME: 7, DELETED: False,
         BAD: "it empties the whole table (op 't')"},
        {OFFSET: 14, "_vsc_column_0": 1, "_vsc_column_1": "x", TIME: 1000, DELETED: False, BAD: None},
    ]  # fmt: skip
    assert found.column(CORRUPT).to_pylist() == [None, None, CHANGES[5].decode(), None]
