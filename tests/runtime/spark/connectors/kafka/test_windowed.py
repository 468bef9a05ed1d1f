"""Windowed keys: the bytes of Kafka Streams 4.3.1, read and written. They were printed by its `TimeWindowedSerializer`
and `SessionWindowedSerializer`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from tests.runtime.spark.support import compiled
from vsc.plan.connectors.kafka import WINDOWED
from vsc.plan.nodes import Column
from vsc.plan.types import parse_type
from vsc.runtime.errors import SinkError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.layout import layout
from vsc.runtime.spark.connectors.kafka.sink import _Encoder
from vsc.runtime.spark.connectors.kafka.texts import texts_reader
from vsc.runtime.spark.formats.source_columns import BAD, KEY, VALUE
from vsc.runtime.values import arrow_type

BYTES = {
    "string": ("EUR", "455552000000000000ea60"), "int": (-7, "fffffff9000000000000ea60"),
    "bigint": (7, "0000000000000007000000000000ea60"),
}  # fmt: skip
SESSION = "4555520000000000015f91000000000000ea60"
SOURCE = """
stream counts (k TYPE, window_start timestamp, window_end timestamp, n int)
from kafka (bootstrap_servers = 'b:1', topic = 't', format = 'json', key_format = 'windowed', OPTIONS)
key k, window_start, window_end;
sink counts to kafka (bootstrap_servers = 'b:1', topic = 'u', format = 'json', key_format = 'windowed', OPTIONS);
"""
SIZE = "window_size = 1 minute"


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def read(text: str, *keys: str) -> list[Any]:
    """The key columns of keys in hexadecimal digits, or why one cannot be read."""
    [node] = compiled(text).sources
    options, columns = Options.of_source(node), node.source.columns
    record = layout(options, node, columns, "read")
    assert record.key is not None
    reader = texts_reader(record, columns, frozenset(c.name for c in node.schema.key), options)
    raw = [bytes.fromhex(key) for key in keys]
    names = [f"_vsc_column_{i}" for i in range(len(columns))]
    batch = pa.record_batch({KEY: pa.array(raw, pa.binary()), VALUE: pa.array([b'{"n": 1}'] * len(raw), pa.binary())})
    [rows] = reader([batch])
    columns_read = [rows.column(name).to_pylist() for name in names[:-1]]
    return [
        tuple(row) if problem is None else problem
        for *row, problem in zip(*columns_read, rows.column(BAD).to_pylist(), strict=True)
    ]


def written(text: str, *rows: tuple[Any, ...]) -> list[str | None]:
    """The keys of rows, in hexadecimal digits."""
    plan = compiled(text)
    node, sink = plan.node(plan.sinks[0].node), plan.sinks[0]
    columns = (*node.schema.key, *node.schema.value)
    record = layout(Options.of_sink(sink), node, columns, "write")
    arrays = [pa.array(values, arrow_type(c.type)) for values, c in zip(zip(*rows, strict=True), columns, strict=True)]
    batch = pa.RecordBatch.from_arrays(
        [*arrays, pa.array(["upsert"] * len(rows)), pa.array([0] * len(rows), pa.int64())],
        names=[f"c{i}" for i in range(len(columns) + 2)],
    )
    keys = _Encoder.of(node, record, "the sink")(batch).column("key").to_pylist()
    return [None if key is None else key.hex() for key in keys]


@pytest.mark.parametrize("type", BYTES)
def test_keys_of_time_windows_there_and_back(type: str) -> None:
    value, key = BYTES[type]
    text = SOURCE.replace("TYPE", type).replace("OPTIONS", SIZE)
    assert read(text, key) == [(value, at(60), at(120))]
    assert written(text, (value, at(60), at(120), 1), (None, at(60), at(120), 1)) == [key, None]


def test_keys_of_sessions_there_and_back() -> None:
    text = SOURCE.replace("TYPE", "string").replace("OPTIONS", "windows = 'session'")
    assert read(text, SESSION) == [("EUR", at(60), at(90.001))]
    assert written(text, ("EUR", at(60), at(90.001), 1)) == [SESSION]


def test_the_start_alone_is_enough_to_read() -> None:
    text = SOURCE.replace("TYPE", "string").replace("window_end timestamp, ", "").replace(", window_end", "")
    text = text[: text.index("sink")].replace("OPTIONS", SIZE) + "sink counts to console ();"
    assert read(text, BYTES["string"][1]) == [("EUR", at(60))]


def test_several_columns_are_json_in_front_of_the_window() -> None:
    text = SOURCE.replace("k TYPE", "k int, l string").replace("key k,", "key k, l,").replace("OPTIONS", SIZE)
    key = b'{"k":5,"l":"x"}'.hex() + "000000000000ea60"
    assert read(text, key) == [(5, "x", at(60), at(120))]
    assert written(text, (5, "x", at(60), at(120), 1)) == [key]


def test_what_is_no_windowed_key_is_a_bad_row() -> None:
    text = SOURCE.replace("TYPE", "bigint").replace("OPTIONS", SIZE)
    assert read(text, "00", "aa" * 7 + "000000000000ea60", "00" * 8 + "7f" * 8, BYTES["bigint"][1]) == [
        "its key cannot be read: it has no bounds of a window: it has 1 bytes",
        "its key cannot be read: 7 bytes are not the 8 of bigint",
        "its key cannot be read: the bounds of its window are out of range", (7, at(60), at(120)),
    ]  # fmt: skip


def test_a_window_of_another_size_is_not_written() -> None:
    text = SOURCE.replace("TYPE", "string").replace("OPTIONS", SIZE)
    with pytest.raises(SinkError, match=r"a window from 60000 to 60001 \(ms\) has not the size of 60000 ms"):
        written(text, ("EUR", at(60), at(60.001), 1))


def test_a_windowed_table_knows_its_windows() -> None:
    text = """
stream rows (k string, v int) from files (path = 'p', format = 'json') key k;
table counts = aggregate rows group by k window WINDOW select count(*) as n;
sink counts to kafka (bootstrap_servers = 'b:1', topic = 'u', format = 'json', key_format = 'windowed');
"""
    tumbling = text.replace("WINDOW", "tumbling (size = 1 minute)")
    options = dict(compiled(tumbling).sinks[0].connector.options)
    assert (options["key_format"], options["windows"], options["window_size"]) == (WINDOWED, "time", 60_000)
    assert written(tumbling, ("EUR", at(60), at(120), 1)) == [BYTES["string"][1]]
    assert written(text.replace("WINDOW", "session (gap = 1 minute)"), ("EUR", at(60), at(90.001), 1)) == [SESSION]


def test_columns_are_those_of_the_key() -> None:
    [node] = compiled(SOURCE.replace("TYPE", "string").replace("OPTIONS", SIZE)).sources
    record = layout(Options.of_source(node), node, node.source.columns, "read")
    assert record.key is not None
    assert record.key.columns == (Column("k", parse_type("string")),)
    assert [column.name for column in record.key.all_columns] == ["k", "window_start", "window_end"]
