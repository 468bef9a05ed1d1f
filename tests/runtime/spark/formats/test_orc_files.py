"""ORC files of types that the declared ones do not hold are refused before their rows are taken."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from tests.runtime.spark.support import compiled, parquet_rows, run_once
from vsc.plan.nodes import Column
from vsc.plan.types import parse_type
from vsc.runtime.errors import SourceError
from vsc.runtime.spark.formats.orc_files import OrcFiles
from vsc.runtime.spark.formats.source_columns import PART

TABLE = pa.table({
    "i": pa.array([1], pa.int32()), "l": [2**60], "d": pa.array([Decimal("1.239")], pa.decimal128(10, 3)),
    "f": pa.array([1.5], pa.float32()), "S": ["x"], "b": [b"x"], "t": pa.array([5], pa.timestamp("us")),
    "xs": pa.array([[1]], pa.list_(pa.int64())), "p": [{"a": 1}],
})  # fmt: skip
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
    assert list(OrcFiles((Column(name, parse_type(type)),), False)([batch])) == [batch]


def test_types_that_hold_all_values_are_read_and_others_named(tmp_path: Path) -> None:
    path = tmp_path / "a.orc"
    orc.write_table(TABLE, path)
    for column in HELD.split("; "):
        check(path, column)
    for column, held in NOT_HELD.items():
        name, _, type = column.partition(" ")
        with pytest.raises(SourceError) as caught:
            check(path, column)
        message = f"the file file://{path}: column {name} is declared {parse_type(type)}, and holds {held} there"
        assert caught.value.message == message


def test_columns_without_names_go_by_their_places(tmp_path: Path) -> None:
    orc.write_table(pa.table({"_col0": ["x"]}), tmp_path / "a.orc")
    check(tmp_path / "a.orc", "_col0 int")


@pytest.mark.spark
def test_a_run_reads_them_or_stops(spark: Any, tmp_path: Path) -> None:
    """A decimal with more digits than declared is what ORC would round."""
    (tmp_path / "in").mkdir()
    orc.write_table(TABLE, tmp_path / "in" / "a.orc")
    for type in ("decimal(10,2)", "decimal(12,3)"):
        plan = compiled(f"""
stream r (i bigint, d {type}) from files (path = '{tmp_path}/in', format = 'orc') timestamp i;
sink r to files (path = '{tmp_path}/out', format = 'parquet');
""")
        if type == "decimal(10,2)":
            with pytest.raises(Exception, match=r"column d is declared decimal\(10,2\), and holds decimal\(10,3\)"):
                run_once(plan, spark, tmp_path / type)
        else:
            run_once(plan, spark, tmp_path / type)
    assert [row["d"] for row in parquet_rows(tmp_path / "out")] == [Decimal("1.239")]
