"""Plain JSON, read and written by columns, is what Spark's `from_json` and `to_json` make of it; the rest is left to
them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

from vsc.plan.nodes import Column
from vsc.plan.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, SMALLINT, STRING, TIMESTAMP, TINYINT, DecimalType
from vsc.runtime.spark.connectors.kafka import from_json
from vsc.runtime.spark.connectors.kafka_sink import to_json
from vsc.runtime.spark.plain_json import is_written, parsed, plain_pattern, written
from vsc.runtime.spark.source_columns import CORRUPT
from vsc.runtime.values import arrow_type, to_array

pytestmark = pytest.mark.spark

COLUMNS = (
    Column("id", BIGINT), Column("i", INT), Column("s", SMALLINT), Column("t", TINYINT), Column("b", BOOLEAN),
    Column("x", DOUBLE), Column("d", DecimalType(6, 2)), Column("f", DecimalType(2, 2)),
    Column("w", DecimalType(38, 0)), Column("name", STRING), Column("at", TIMESTAMP), Column("a.b (ü)", STRING),
)  # fmt: skip

PLAIN = [
    "{}", "{ }", '{"id":5}', '{ "id" : 5 , "i" : 6 }', '{"i":null,"id":-0}',
    '{"id":999999999999999999,"i":-999999999}', '{"s":-9999,"t":99}', '{"b":true,"name":""}',
    '{"b":false,"name":"grün \u2028 😀 \x7f"}', '{"x":1.5e3}', '{"x":-0.0}', '{"x":0.1}', '{"x":3}',
    '{"x":123456789012345.12345678901234567}', '{"x":1.7976931348623157e99}', '{"x":4.9e-99}',
    '{"x":2.2250738585072011e-30}', '{"d":1234.5}', '{"d":-0}', '{"d":-0.00}', '{"d":9999.99}', '{"f":0.05}',
    '{"f":-0.9}', '{"w":' + "9" * 38 + "}", '{"id":1,"id":2}',
    '{"d":1.10,"d":2.20,"name":"first","name":"last","x":0.1,"x":1.0}', '{"ID":1,"Id":2}', '{"other":1e40}',
    '{"other":"x","id":1,"more":-1.5e-7,"none":null,"yes":true}', '{"at":"2026-01-31T23:59:59Z"}',
    '{"at":"1970-01-01T00:00:00.000001Z"}', '{"at":"2024-02-28T12:00:00.5Z"}', '{"a.b (ü)":"x","a":1}', '{"":1}',
    '{"name":"null"}',
]  # fmt: skip
NOT_PLAIN = [
    '{"other":1e400}',
    "", " ", "null", "[]", '[{"id":1}]', "5", '"x"', '{"id":1} ', ' {"id":1}', '{"id":1}\n', '{"id":1}x',
    '{"id":1}{"id":2}', '{"id":01}', '{"id":+1}', '{"id":1.0}', '{"id":1e2}', '{"id":"1"}',
    '{"id":9223372036854775807}', '{"id":9223372036854775808}', '{"id":true}', '{"id":[1]}', '{"id":{}}', '{"id":1,}',
    '{,"id":1}', '{"id" 1}', '{"id":1 "i":2}', '{"i":2147483648}', '{"t":128}', '{"t":100}', '{"s":32768}',
    '{"x":-0}', '{"x":NaN}', '{"x":"NaN"}', '{"x":Infinity}', '{"x":"-Infinity"}', '{"x":1e400}', '{"x":.5}',
    '{"x":5.}', '{"x":1E+999}', '{"x":1234567890123456789012345}', '{"d":12345.6}', '{"d":1.234}', '{"d":1e2}',
    '{"d":"1.5"}', '{"f":1}', '{"f":1.0}', '{"name":5}', '{"name":{"a": 1}}', '{"name":[1, 2]}', '{"name":"a\\"b"}',
    '{"name":"a\\u00e9"}', '{"name":"\\ud800"}', '{"name":"a\tb"}', '{"name":true}', "{'name':'x'}", "{name:1}",
    '{"name":"x"', '{"other":{"id":1}}', '{"other":[1]}', '{"other":01}', '{"other":tru}', '{"other":"a\\xb"}',
    '{"b":"true"}', '{"b":1}', '{"at":"2026-02-29T00:00:00Z"}', '{"at":"2026-01-01"}', '{"at":"2026-01-01 00:00:00"}',
    '{"at":"2026-01-01T00:00:00+02:00"}', '{"at":5}', '{"at":"2026-01-01T24:00:00Z"}',
    '{"at":"0001-01-01T00:00:00Z"}', '{"at":"2026-01-01T00:00:00.1234567Z"}', '{"at":"2026-04-31T00:00:00Z"}',
    '{"i\\u0064":1}', '{"id":1}\u0000', '\ufeff{"id":1}', '{"id":1,"d":null,"x":nul}', '{"id"\t:1}',
    '{"' + "n" * 300 + '":1}', '/**/{"id":1}', '{"id":1/**/}', '{"other":NaN}', '{"other":1' + "0" * 50 + "}",
    '{"x":12345678901234567}',
]  # fmt: skip


def made_up(count: int) -> Iterator[str]:
    """Objects of pieces that are right, or not."""
    chance = random.Random(12)
    names = [*(f'"{c.name}"' for c in COLUMNS), '"other"', '"ID"', "id", '"i\\u0064"']
    values = [
        "null", "true", "0", "-0", "-1", "7", "12", "1.5", "-2.25", "0.30", "1e3", "1.0E-5", '"x"', '""', '"a\\nb"',
        '"5"',
        '"2026-03-30T10:20:30.250Z"', '"2026-03-30"', "[]", "{}", "NaN", "99999", "3000000000", "123456789012345678",
        "0.1234567890123456", "8.41", '"true"', "01",
    ]  # fmt: skip
    fitting = {
        '"id"': ["0", "-1", "123456789012345678"], '"i"': ["7", "99999"], '"b"': ["true", "null"],
        '"x"': ["1.5", "-2.25", "1.0E-5", "0.1234567890123456"], '"d"': ["8.41", "0.30", "-1"], '"name"': ['"x"', '""'],
        '"at"': ['"2026-03-30T10:20:30.250Z"', "null"],
    }  # fmt: skip
    for _ in range(count):
        members = []
        for name in chance.choices(names, k=chance.choice((0, 1, 1, 1, 2, 2, 3, 5))):
            known = fitting.get(name, values)
            value = chance.choice(known if chance.random() < 0.9 else values)
            members.append(f"{name}{chance.choice(('', '', ' '))}:{value}")
        yield chance.choice(("{%s}",) * 15 + ("%s", "{%s", " {%s}", "{%s,}", "{ %s }")) % ",".join(members)


def is_once(text: str) -> bool:
    """Whether no member of a plain text is there twice."""
    pairs: list[Any] = json.loads(text, object_pairs_hook=list)
    return len(pairs) == len(dict(pairs))


def same(some: pa.Array, others: pa.Array) -> bool:
    """Whether the values are the same: -0.0 is not 0.0."""
    return list(map(repr, some.to_pylist())) == list(map(repr, others.to_pylist()))


def test_what_is_plain_is_read_as_spark_reads_it(spark: Any) -> None:
    texts = [*PLAIN, *NOT_PLAIN, *dict.fromkeys(made_up(12_000))]
    pattern = plain_pattern(COLUMNS)
    assert pattern is not None
    frame = spark.createDataFrame([(i, text) for i, text in enumerate(texts)], "i int, text string")
    read = frame.select("i", F.col("text").rlike(pattern).alias("plain"), from_json(F.col("text"), COLUMNS).alias("of"))
    found = read.orderBy("i").toArrow().combine_chunks()
    plain, of = found["plain"].combine_chunks(), found["of"].combine_chunks()
    assert plain.to_pylist()[: len(PLAIN)] == [True] * len(PLAIN)
    assert [t for t, p in zip(NOT_PLAIN, plain.to_pylist()[len(PLAIN) :], strict=False) if p] == []
    assert pc.sum(plain).as_py() > 1000
    chosen = pa.array(texts).filter(plain)
    assert pc.all(of.filter(plain).is_valid()).as_py()
    assert of.filter(plain).field(len(COLUMNS)).null_count == len(chosen), CORRUPT
    once = pa.array(map(is_once, chosen.to_pylist()))
    assert 1000 < pc.sum(once).as_py() < len(chosen) - 100
    every, those = parsed(chosen, COLUMNS), parsed(chosen.filter(once), COLUMNS)  # the members of `every` stand twice
    for place, column in enumerate(COLUMNS):
        assert every[place].type == arrow_type(column.type)
        spark_read = of.filter(plain).field(place).cast(arrow_type(column.type))
        assert same(every[place], spark_read), column
        assert same(those[place], spark_read.filter(once)), column
    assert of.field(0).filter(plain).to_pylist()[PLAIN.index('{"id":1,"id":2}')] == 2


def test_texts_that_are_missing_are_rows_of_nulls() -> None:
    columns = (Column("id", BIGINT), Column("d", DecimalType(6, 2)))
    texts = pa.array(["x", None, '{"id":1}', None, '{"d":2.5}', None]).slice(1)
    assert [c.to_pylist() for c in parsed(texts, columns)] == [
        [None, 1, None, None, None], [None, None, None, Decimal("2.50"), None]
    ]  # fmt: skip
    assert [c.to_pylist() for c in parsed(texts.slice(0, 1), columns)] == [[None], [None]]


@pytest.mark.parametrize("column", [Column("a", DATE), Column('a"b', BIGINT)])
def test_other_columns_are_never_plain(column: Column) -> None:
    assert plain_pattern((Column("id", BIGINT), column)) is None
    assert plain_pattern(()) is None
    assert not is_written((Column("id", BIGINT), column))
    assert not is_written(())


def test_what_is_written_is_what_spark_writes(spark: Any) -> None:
    columns = [column for column in COLUMNS if is_written((column,))]
    assert [column.name for column in columns] == ["id", "i", "s", "t", "b", "d", "f", "w", "name", "a.b (ü)"]
    strings = ["", "x", 'a"b\\c/d', "".join(map(chr, range(32))), "\x7f\x80 grün \u2028\u2029 😀", "null", "{}", None]
    numbers = [0, -1, 7, 99, -128, 127, None, 5]
    rows = [
        [2**63 - 1, -(2**63), 0, -1, None, 5, 10**18, 7], [2**31 - 1, -(2**31), 0, None, 1, 2, 3, 4], numbers, numbers,
        [True, False, None, True, None, False, True, None],
        [Decimal(t) for t in ("0.00", "-0.01", "9999.99", "1.50", "-1234.00", "0.10")] + [None, None],
        [Decimal(t) for t in ("0.00", "-0.01", "0.99", "0.50", "-0.10", "0.05")] + [None, None],
        [Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(0), *[None] * 5],
        strings, strings[::-1],
    ]  # fmt: skip
    small = Column("e", DecimalType(18, 9))
    columns.append(small)
    rows.append(
        [Decimal(t) for t in ("0.000000001", "-0.000000120", "0E-9", "1.000000000", "0.000001000")] + [None] * 3
    )
    arrays = [to_array(row, column.type) for row, column in zip(rows, columns, strict=True)]
    table = pa.Table.from_arrays(arrays, [f"c{i}" for i in range(len(columns))])
    for chosen in (table, table.slice(0, 5).slice(3), table.slice(7), table.select(["c8"]), table.select(["c0", "c4"])):
        declared = [columns[int(name[1:])] for name in chosen.column_names]
        named = [F.col(name).alias(column.name) for name, column in zip(chosen.column_names, declared, strict=True)]
        frame = spark.createDataFrame(chosen).coalesce(1).select(to_json(named).alias("text"))
        here = written(declared, [column.combine_chunks() for column in chosen.columns])
        assert here.to_pylist() == [row.text for row in frame.collect()]
    empty = pa.array([None], pa.int64())
    assert written(columns[:1], [empty]).to_pylist() == ["{}"]
