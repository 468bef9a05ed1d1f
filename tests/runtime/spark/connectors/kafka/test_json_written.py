"""JSON that is written by columns is what Spark's `to_json` makes of them; the rest is left to it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from vsc.plan.nodes import Column
from vsc.plan.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, SMALLINT, STRING, TIMESTAMP, TINYINT, DecimalType
from vsc.runtime.spark.connectors.kafka.sink import to_json
from vsc.runtime.spark.formats.json_written import is_written, written
from vsc.runtime.values import to_array

pytestmark = pytest.mark.spark

COLUMNS = (
    Column("id", BIGINT), Column("i", INT), Column("s", SMALLINT), Column("t", TINYINT), Column("b", BOOLEAN),
    Column("x", DOUBLE), Column("d", DecimalType(6, 2)), Column("f", DecimalType(2, 2)),
    Column("w", DecimalType(38, 0)), Column("name", STRING), Column("at", TIMESTAMP), Column("a.b (ü)", STRING),
)  # fmt: skip


@pytest.mark.parametrize("column", [Column("a", DATE), Column('a"b', BIGINT)])
def test_other_columns_are_left_to_spark(column: Column) -> None:
    assert not is_written((Column("id", BIGINT), column))
    assert not is_written(())


def test_what_is_written_is_what_spark_writes(spark: Any) -> None:
    columns = [column for column in COLUMNS if is_written((column,))]
    assert [column.name for column in columns] == ["id", "i", "s", "t", "b", "d", "f", "w", "name", "a.b (ü)"]
    strings = ["", "x", 'a"b\\c/d', "".join(map(chr, range(32))), "\x7f\x80 grün \u2028\u2029 😀", "null", "{}", None]
    numbers = [0, -1, 7, 99, -128, 127, None, 5]
    rows: list[list[Any]] = [
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
