"""Keys and values in JSON, of which a worker makes columns; and what is said of those that cannot be read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from vsc.plan.nodes import Column, Connector
from vsc.plan.types import BIGINT, INT, STRING, DecimalType
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.layout import Layout, Part
from vsc.runtime.spark.connectors.kafka.texts import texts_reader
from vsc.runtime.spark.formats.source_columns import BAD, CORRUPT, DELETED, KEY, OFFSET, PART, PARTITION, VALUE

OPTIONS = Options("source 's' (line 1)", Connector("kafka", (("topic", "t"),)))
X, ID, D = Column("x", INT), Column("id", BIGINT), Column("d", DecimalType(10, 2))


def read(layout: Layout, columns: list[Column], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is made of records that have these texts."""
    given = [name for name, part in ((KEY, layout.key), (VALUE, layout.value)) if part is not None]
    batch = pa.record_batch({name: pa.array([row.get(name) for row in rows], pa.binary()) for name in given})
    (found,) = texts_reader(layout, columns, frozenset(), OPTIONS)([batch])
    names = [f"_vsc_column_{i}" for i in range(len(columns))]
    assert found.schema.names == [*names, DELETED, BAD, CORRUPT]
    assert found.column(DELETED).to_pylist() == [row.get(VALUE) is None for row in rows]
    return [
        {c.name: row[name] for c, name in zip(columns, names, strict=True)}
        | {name: row[name] for name in (BAD, CORRUPT) if row[name] is not None}
        for row in found.to_pylist()
    ]


def test_columns_come_from_the_key_and_the_value() -> None:
    layout = Layout(Part("key", "json", (ID,), None), Part("value", "json", (X, D), None), None)
    assert read(layout, [X, ID, D], [
        {KEY: b"1", VALUE: b'{"x": 1, "d": 1.5}'}, {KEY: b'{"id": 2}', VALUE: None}, {KEY: None, VALUE: b'{"x": 3}'},
        {KEY: b"one", VALUE: b"{}"}, {KEY: b"\xff", VALUE: b"{}"}, {KEY: b"4", VALUE: b'{"d": "12,5"}'},
        {KEY: b"5", VALUE: b"\xff"}, {KEY: b"6", VALUE: b'{"x":1}{"x":2}'}, {KEY: b"7", VALUE: b'{"d": 1.239}'},
    ]) == [
        {"x": 1, "id": 1, "d": pa.scalar("1.50").cast(pa.decimal128(10, 2)).as_py()},
        {"x": None, "id": 2, "d": None}, {"x": 3, "id": None, "d": None},
        {"x": None, "id": None, "d": None, BAD: "its key 'one' is not JSON for (id bigint)"},
        {"x": None, "id": None, "d": None, BAD: "its key is not UTF-8 text"},
        {"x": None, "id": 4, "d": None, BAD: "column 'd' (decimal(10,2)) cannot hold '12,5'", CORRUPT: '{"d": "12,5"}'},
        {"x": None, "id": 5, "d": None, BAD: "its value is not UTF-8 text", CORRUPT: "\\xff"},
        {"x": None, "id": 6, "d": None, BAD: "'{\"x\":1}{\"x\":2}' is more than one JSON object",
         CORRUPT: '{"x":1}{"x":2}'},
        {"x": None, "id": 7, "d": None, BAD: "column 'd' (decimal(10,2)) cannot hold '1.239'", CORRUPT: '{"d": 1.239}'},
    ]  # fmt: skip


def test_texts_as_they_are() -> None:
    key, value = Column("k", STRING), Column("v", STRING)
    layout = Layout(Part("key", "string", (key,), None), Part("value", "string", (value,), None), None)
    rows: list[dict[str, Any]] = [
        {KEY: b"a", VALUE: "ü\0".encode()}, {KEY: None, VALUE: b""}, {KEY: b"b", VALUE: None},
        {KEY: b"\xff", VALUE: b"v"}, {KEY: b"c", VALUE: b"\xed\xa0\x80"},
    ]  # fmt: skip
    assert read(layout, [value, key], rows) == [
        {"v": "ü\0", "k": "a"}, {"v": "", "k": None}, {"v": None, "k": "b"},
        {"v": "v", "k": None, BAD: "its key is not UTF-8 text"},
        {"v": None, "k": "c", BAD: "its value is not UTF-8 text"},
    ]  # fmt: skip


def test_a_record_tells_its_source_partition_and_what_else_it_has() -> None:
    part = Column("part", INT)
    batch = pa.record_batch({
        VALUE: pa.array([b'{"x": 1}', None, b'{"x": 3}'], pa.binary()), PARTITION: pa.array([11, 11, 2], pa.int32()),
        OFFSET: pa.array([5, 6, 0]), "_vsc_column_0": pa.array([11, 11, 2], pa.int32()),
    })  # fmt: skip
    layout = Layout(None, Part("value", "json", (X,), None), None, part)
    (found,) = texts_reader(layout, [part, X], frozenset(), OPTIONS)([batch])
    assert found.to_pydict() == {
        "_vsc_column_0": [11, 11, 2], "_vsc_column_1": [1, None, 3], OFFSET: [5, 6, 0], DELETED: [False, True, False],
        BAD: [None, None, None], PART: ["t-000011", "t-000011", "t-000002"], CORRUPT: [None, None, None],
    }  # fmt: skip
