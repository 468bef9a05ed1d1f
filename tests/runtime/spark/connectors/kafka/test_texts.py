"""Keys and values in JSON, of which a worker makes columns; and what is said of those that cannot be read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from vsc.plan.nodes import Column, Connector
from vsc.plan.types import BIGINT, INT, STRING, DecimalType
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.layout import Layout, Part
from vsc.runtime.spark.connectors.kafka.texts import texts_reader
from vsc.runtime.spark.formats.source_columns import BAD, CORRUPT, KEY, VALUE
from vsc.runtime.values import arrow_type

OPTIONS = Options("source 's' (line 1)", Connector("kafka"))
X, ID, D = Column("x", INT), Column("id", BIGINT), Column("d", DecimalType(10, 2))


def read(layout: Layout, columns: list[Column], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of records that have these texts, and these columns already."""
    reader = texts_reader(layout, columns, frozenset(), OPTIONS)
    assert reader is not None
    names = [f"_vsc_column_{i}" for i in range(len(columns))]
    arrays = [pa.array([row.get(c.name) for row in rows], arrow_type(c.type)) for c in columns]
    arrays += [pa.array([row.get(name) for row in rows], pa.binary()) for name in (KEY, VALUE)]
    arrays.append(pa.array([row.get(BAD) for row in rows], pa.string()))
    (found,) = reader([pa.record_batch(arrays, names=[*names, KEY, VALUE, BAD])])
    assert found.schema.names == [*names, BAD, CORRUPT]
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


def test_what_is_read_already_stays() -> None:
    key = Column("k", STRING)
    layout = Layout(Part("key", "string", (key,), None), Part("value", "json", (X,), None), None)
    rows: list[dict[str, Any]] = [
        {"k": "a", VALUE: b'{"x": 1}'},
        {"k": None, BAD: "its key is not UTF-8 text", VALUE: b'{"x": "y"}'},
    ]
    reader = texts_reader(layout, [key, X], frozenset(), OPTIONS)
    assert reader is not None
    arrays = [pa.array(["a", None]), pa.nulls(2, pa.int32()), pa.array([row[VALUE] for row in rows], pa.binary()),
              pa.array([None, rows[1][BAD]])]  # fmt: skip
    (found,) = reader([pa.record_batch(arrays, names=["_vsc_column_0", "_vsc_column_1", VALUE, BAD])])
    assert found.to_pydict() == {
        "_vsc_column_0": ["a", None], "_vsc_column_1": [1, None], BAD: [None, rows[1][BAD]],
        CORRUPT: [None, '{"x": "y"}'],
    }  # fmt: skip


def test_records_without_json_need_no_reader() -> None:
    layout = Layout(None, Part("value", "string", (Column("v", STRING),), None), None)
    assert texts_reader(layout, [], frozenset(), OPTIONS) is None
