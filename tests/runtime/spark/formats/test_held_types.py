"""Parquet and ORC files of types that the declared ones do not hold are refused before their rows are taken."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tests.runtime.spark.support import compiled, parquet_rows, run_once
from vsc.plan.nodes import Column
from vsc.plan.types import parse_type
from vsc.runtime.errors import SourceError
from vsc.runtime.spark.formats.held_types import HeldTypes
from vsc.runtime.spark.formats.source_columns import PART

TABLE = pa.table({
    "i": pa.array([1], pa.int32()), "l": [2**60], "d": pa.array([Decimal("1.239")], pa.decimal128(10, 3)),
    "f": pa.array([1.5], pa.float32()), "S": ["x"], "b": [b"x"], "t": pa.array([5], pa.timestamp("us")),
    "xs": pa.array([[1]], pa.list_(pa.int64())), "p": [{"a": 1}],
})  # fmt: skip
WRITE = {"orc": orc.write_table, "parquet": pq.write_table}
HELD = "i int; i bigint; i double; i decimal(12,2); l bigint; l decimal(19,0); d decimal(10,3); d decimal(12,3)"
HELD += "; f float; f double; s string; b binary; t timestamp; xs array<bigint>; p struct<a: bigint, z: int>; gone date"
NOT_HELD = {
    "i tinyint": "int", "l int": "bigint", "l double": "bigint", "d decimal(10,2)": "decimal(10,3)",
    "s int": "string", "s binary": "string", "b string": "binary", "t bigint": "timestamp", "l timestamp": "bigint",
    "xs array<int>": "array<bigint>", "p struct<a: int>": "struct<a:bigint>", "i date": "int", "l boolean": "bigint",
}  # fmt: skip


def check(path: Path, column: str) -> None:
    name, _, type = column.partition(" ")
    batch = pa.record_batch({"_vsc_column_0": [1, 2], PART: [f"file:{path}"] * 2})
    assert list(HeldTypes(path.suffix[1:], (Column(name, parse_type(type)),), False)([batch])) == [batch]


@pytest.mark.parametrize("format", ["orc", "parquet"])
def test_types_that_hold_all_values_are_read_and_others_named(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"a.{format}"
    WRITE[format](TABLE, path)
    as_bytes = {"s binary", "b string"} if format == "parquet" else set()
    for column in (*HELD.split("; "), *as_bytes):
        check(path, column)
    for column, held in NOT_HELD.items():
        if column in as_bytes:
            continue
        name, _, type = column.partition(" ")
        with pytest.raises(SourceError) as caught:
            check(path, column)
        message = f"the file file://{path}: column {name} is declared {parse_type(type)}, and holds {held} there"
        assert caught.value.message == message


def test_columns_without_names_go_by_their_places(tmp_path: Path) -> None:
    orc.write_table(pa.table({"_col0": ["x"]}), tmp_path / "a.orc")
    check(tmp_path / "a.orc", "_col0 int")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("format", "column", "held", "wider", "value"),
    [
        ("orc", "d decimal(10,2)", "decimal(10,3)", "d decimal(12,3)", Decimal("1.239")),
        ("parquet", "n tinyint", "int", "n bigint", 300),
    ],
)
def test_a_run_reads_them_or_stops(
    spark: Any, tmp_path: Path, format: str, column: str, held: str, wider: str, value: object
) -> None:
    """ORC would round a decimal with more digits than declared, Spark's own reader of parquet wrap a number around."""
    (tmp_path / "in").mkdir()
    WRITE[format](TABLE.append_column("n", pa.array([300], pa.int32())), tmp_path / "in" / f"a.{format}")
    for declared in (column, wider):
        plan = compiled(f"""
stream r (i bigint, {declared}) from files (path = '{tmp_path}/in', format = '{format}', 'mergeSchema' = 'true')
timestamp i;
sink r to files (path = '{tmp_path}/out', format = 'parquet');
""")
        if declared == column:
            name, _, type = column.partition(" ")
            with pytest.raises(Exception, match=re.escape(f"column {name} is declared {type}, and holds {held}")):
                run_once(plan, spark, tmp_path / "refused")
        else:
            run_once(plan, spark, tmp_path / "read")
    assert [row[column[0]] for row in parquet_rows(tmp_path / "out")] == [value]
