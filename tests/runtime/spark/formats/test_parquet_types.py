"""Parquet columns of every kind, read as every type: by our reader, and by Spark's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.runtime.spark.formats.parquet_kinds import READ, TYPES, write_kinds
from vsc.plan.nodes import Column
from vsc.plan.types import parse_type
from vsc.runtime.errors import SourceError
from vsc.runtime.spark.formats.parquet_files import ParquetFiles
from vsc.runtime.spark.formats.source_columns import PART
from vsc.runtime.values import arrow_type

PAGES: dict[str, dict[str, Any]] = {
    "words": {},
    "plain": {"use_dictionary": False, "data_page_version": "2.0", "compression": "zstd"},
    "bare": {"store_schema": False},
}  # fmt: skip

BY_SPARK = {
    kind: set(types.split(" ")) for kind, types in {
        "bool": "boolean", "int8": "tinyint smallint int bigint double", "int16": "smallint int bigint double",
        "int32": "int bigint double", "int64": "bigint", "uint8": "smallint int bigint double",
        "uint16": "int bigint double", "uint32": "bigint", "date": "date", "date64": "date", "ns": "bigint",
        "uuid": "binary", "far_ms": "bigint", "far_s": "bigint",
    }.items()
}  # fmt: skip
"""What Spark reads of these kinds, and all of the others: to it, more types are misfits; some it would read wrongly."""
NOT_BY_SPARK = {"half", "nothing", "uint64", "dec4"}


def values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    found: list[Any] = (column.cast(pa.binary()) if pa.types.is_string(column.type) else column).to_pylist()
    return found


def expected(kind: str, type: str) -> list[Any]:
    return [v.encode() if isinstance(v, str) else v for v in READ[kind][type]] + [None]


def read(path: Path, kind: str, type: str) -> pa.Array:
    files = ParquetFiles((Column(kind, parse_type(type)),), frozenset({kind}), False)
    (batch,) = files([pa.record_batch({PART: [f"file:{path}"]})])
    return batch.column(0)


@pytest.mark.quick(1)
@pytest.mark.parametrize("pages", PAGES)
def test_each_kind_becomes_each_type_that_it_can(tmp_path: Path, pages: str) -> None:
    paths = write_kinds(tmp_path, **PAGES[pages])
    if pages == "bare":
        del paths["span"]  # then it is a plain number
    for kind, path in paths.items():
        for type in TYPES:
            if type in READ[kind]:
                column = read(path, kind, type)
                assert (column.type, values(column)) == (arrow_type(parse_type(type)), expected(kind, type)), kind
            else:
                with pytest.raises(SourceError, match=f"{path}: column {kind} is declared .* and holds .* there"):
                    read(path, kind, type)


@pytest.mark.spark
def test_spark_reads_the_same(spark: Any, tmp_path: Path) -> None:
    paths = write_kinds(tmp_path)
    for type in TYPES:
        for path in set(paths.values()):
            kinds = [kind for kind, where in paths.items() if where == path and type in READ[kind]]
            kinds = [kind for kind in kinds if kind not in NOT_BY_SPARK and type in BY_SPARK.get(kind, TYPES)]
            if kinds:
                ddl = ", ".join(f"{kind} {type}" for kind in kinds)
                table = spark.read.schema(ddl).parquet(str(path)).toArrow()
                found = {kind: values(table.column(kind)) for kind in kinds}
                assert found == {kind: expected(kind, type) for kind in kinds}, type
