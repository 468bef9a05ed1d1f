"""Files that are not as declared, as Spark's errors tell of them: the messages name vsc's types."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc
from pyarrow import parquet as pq

from vsc.runtime.spark.formats.file_errors import read_error

TABLE = pa.table({
    "l": pa.array([1], pa.int64()),
    "t": pa.array([1], pa.timestamp("us", tz="UTC")),
    "m": pa.array([1], pa.decimal128(10, 2)),
    "a": pa.array([[1]], pa.list_(pa.int32())),
    "st": pa.array([{"x": "y"}]),
})  # fmt: skip
MISMATCH = (
    "[FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH] Encountered error while reading file {file}. Data type "
    "mismatches when reading Parquet column [{column}]. Expected Spark type {wanted}, actual Parquet type {physical}. "
    "SQLSTATE: KD001"
)
NO_HINT = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file {file}. SQLSTATE: KD001\nCaused by: {why}"


@pytest.mark.parametrize(
    ("column", "wanted", "physical", "held", "guessed"),
    [
        ("l", "string", "INT64", "bigint", "bigint"),
        ("t", "date", "INT64", "timestamp", "bigint"),
        ("m", "bigint", "FIXED_LEN_BYTE_ARRAY", "decimal(10,2)", "decimal or binary"),
        ("st, x", "int", "BINARY", "string", "string or binary"),
        ("gone", "int", "BOOLEAN", "boolean", "boolean"),
    ],
)
def test_a_parquet_column_of_another_type(
    tmp_path: Path, column: str, wanted: str, physical: str, held: str, guessed: str
) -> None:
    file = tmp_path / "a b.parquet"
    pq.write_table(TABLE, file)
    for url, type in ((f"file://{tmp_path}/a%20b.parquet", held), ("s3a://bucket/x", guessed)):
        text = MISMATCH.format(file=url, column=column, wanted=wanted, physical=physical)
        error = read_error(text, "the reason")
        assert error is not None
        name = column.replace(", ", ".")
        assert error.message == f"the file {url}: column {name} is declared {wanted}, and holds {type} there"
        assert error.help == "declare the column with the type that the file has, and cast it in an expression"


@pytest.mark.parametrize(
    "why",
    [
        "org.apache.spark.sql.AnalysisException: Invalid Spark read type: expected optional group a (LIST) {",
        "java.lang.ClassCastException: class org.apache.spark.sql.types.LongType$ cannot be cast to class "
        "org.apache.spark.sql.types.StructType (x)",
        "org.apache.orc.impl.SchemaEvolution$IllegalEvolutionException: ORC does not support type conversion from "
        "file type bigint (1) to reader type date (1)",
    ],
)
@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_column_of_another_shape_is_told_with_the_columns_of_the_file(tmp_path: Path, form: str, why: str) -> None:
    file = tmp_path / "a"
    pq.write_table(TABLE, file) if form == "parquet" else orc.write_table(TABLE, str(file))
    error = read_error(NO_HINT.format(file=f"file://{file}", why=why), "the reason")
    has = "l bigint, t timestamp, m decimal(10,2), a array<int>, st struct<x:string>"
    assert error is not None
    assert error.message == f"the file file://{file}: a column is of another type than declared; the file has {has}"
    error = read_error(NO_HINT.format(file="hdfs://h/x", why=why), "the reason")
    assert error is not None
    assert error.message == "the file hdfs://h/x: a column is of another type than declared: the reason"


def test_what_cannot_be_read_at_all_has_its_reason_and_what_is_no_file_has_nothing() -> None:
    error = read_error(NO_HINT.format(file="/nowhere/x", why="y"), "the reason")
    assert error is not None and error.message == "the file /nowhere/x cannot be read: the reason"
    assert error.help == "fix or remove the file, then run again"
    error = read_error(
        NO_HINT.format(file="/nowhere/x", why="y"), "java.io.FileNotFoundException: File x does not exist"
    )
    assert error is not None and error.message == "the file /nowhere/x is not there any more"
    assert read_error("something else", "the reason") is None


def test_a_declared_column_that_a_file_has_twice_is_told_with_its_names() -> None:
    why = 'Found duplicate field(s) "n": [n, N] in case-insensitive mode.'
    error = read_error(NO_HINT.format(file="/nowhere/x", why=why), f"org.apache.spark.SparkRuntimeException: {why}")
    assert error is not None
    assert error.message == (
        "the file /nowhere/x has several columns for one that is declared, whose names are the same to Spark: n, N"
    )
    assert error.help == "write the file with one of them, or give the others another name"
