"""What can be said of lake tables without Spark: releases, settings of a session, types, names."""

from __future__ import annotations

import pytest
from pyspark.sql import types as spark

from tests.runtime.spark.support import compiled
from vsc.plan.parts import Connector
from vsc.plan.types import BIGINT, STRING, TIMESTAMP, ArrayType, DataType, DecimalType, MapType, ScalarType
from vsc.runtime.errors import LakeReleaseError, LakeTableError, StartError
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.delta.connector import DeltaTable
from vsc.runtime.spark.connectors.jars import (
    DELTA,
    ICEBERG,
    Package,
    check_release,
    check_session,
    connector_settings,
    unfetched,
)
from vsc.runtime.spark.connectors.lake.table import identifier, lake_error
from vsc.runtime.spark.connectors.table_types import gives, holds, misfits
from vsc.runtime.spark.query.failures import translated

SOURCE = "stream s (k string) from files (path = 'x', format = 'json');"
PACKAGE = "spark.jars.packages"


@pytest.mark.parametrize(
    ("lake", "version", "works"),
    [(DELTA, "4.0.2", True), (DELTA, "4.1.4", True), (DELTA, "4.2.1", True), (DELTA, "4.3.0", False),
     (ICEBERG, "4.0.2", True), (ICEBERG, "4.1.4", True), (ICEBERG, "4.2.1", False), (ICEBERG, "4.3.0", False)],
)  # fmt: skip
def test_which_release_goes_with_which_spark(lake: Package, version: str, works: bool) -> None:
    if works:
        check_release(lake, "the sink of 's' (line 1)", version)
        return
    with pytest.raises(LakeReleaseError) as raised:
        check_release(lake, "the sink of 's' (line 1)", version)
    expected = f"the sink of 's' (line 1): {lake.name} has no release that works with Spark {version}"
    assert raised.value.message == expected
    known = "4.0 or 4.1 or 4.2" if lake is DELTA else "4.0 or 4.1"
    assert raised.value.help == f"install pyspark {known}: python -m pip install 'pyspark==4.1.*'"


def test_a_session_is_set_up_for_what_the_topology_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    both = compiled(SOURCE + "sink s to delta (path = 'a'); sink s to iceberg (path = 'b');")
    delta, iceberg = DELTA.coordinates("4.1.4"), ICEBERG.coordinates("4.1.4")
    monkeypatch.setattr(Package, "coordinates", lambda lake: {"delta": delta, "iceberg": iceberg}[lake.kind])
    found = connector_settings(both, {PACKAGE: "a:b:1", "spark.sql.extensions": "own.Extension"}, [])
    assert found[PACKAGE].split(",") == ["a:b:1", delta, iceberg]
    assert found["spark.sql.extensions"].split(",") == ["own.Extension", DELTA.extension, ICEBERG.extension]
    assert found["spark.sql.catalog.spark_catalog"] == DELTA.catalog
    # What the run brings along stays.
    given = {"spark.sql.extensions": DELTA.extension, "spark.sql.catalog.spark_catalog": "own.Catalog"}
    only = compiled(SOURCE + "sink s to delta (path = 'a');")
    assert connector_settings(only, given, ["io.delta:delta-spark_4.1_2.13:4.5.0"]) == {}
    assert connector_settings(only, given | {"spark.jars": "/x/delta-spark_4.1_2.13-4.4.0.jar"}, []) == {}
    assert connector_settings(compiled(SOURCE + "sink s to noop ();"), {}, []) == {}
    error = unfetched(f"{delta},{iceberg}", "unresolved dependency: org.apache.iceberg#iceberg-spark-runtime-4.1")
    assert error is not None and error.message.startswith("Spark has no Iceberg: unresolved dependency")
    assert str(iceberg) in str(error.help)
    assert unfetched("a:b:1", "not found") is None
    assert unfetched("", "a#b; not found") is None
    reason = "[unresolved dependency: a#b;1: not found]"
    own = unfetched(f"{delta},a:b:1", reason)
    assert isinstance(own, StartError) and own.message == f"Spark cannot fetch the package a:b:1: {reason}"
    theirs = unfetched(f"{delta},a:b:1", reason.replace("a#b;", "a#bb;"))
    assert theirs is not None and theirs.message.startswith("Spark has no Delta Lake: ")


@pytest.mark.parametrize(
    ("type", "column", "held", "given"),
    [
        (BIGINT, spark.LongType(), True, True),
        (BIGINT, spark.IntegerType(), False, True),
        (ScalarType("tinyint"), spark.IntegerType(), True, False),
        (ScalarType("int"), spark.DecimalType(12, 2), True, False),
        (ScalarType("int"), spark.DecimalType(11, 2), False, False),
        (ScalarType("float"), spark.DoubleType(), True, False),
        (STRING, spark.IntegerType(), False, False),
        (TIMESTAMP, spark.TimestampNTZType(), True, True),
        (TIMESTAMP, spark.DateType(), False, False),
        (DecimalType(10, 2), spark.DecimalType(12, 4), True, False),
        (DecimalType(10, 2), spark.DecimalType(10, 4), False, False),
        (DecimalType(12, 4), spark.DecimalType(10, 2), False, True),
        (DecimalType(19, 0), spark.LongType(), False, True),
        (ArrayType(ScalarType("int")), spark.ArrayType(spark.LongType()), True, False),
        (MapType(STRING, BIGINT), spark.MapType(spark.StringType(), spark.IntegerType()), False, True),
    ],
)
def test_which_columns_hold_a_type_and_give_it(type: DataType, column: spark.DataType, held: bool, given: bool) -> None:
    assert (holds(type, column), gives(type, column)) == (held, given)


def test_what_keeps_columns_from_being_written() -> None:
    table = spark.StructType(
        [spark.StructField("K", spark.StringType()), spark.StructField("n", spark.IntegerType()),
         spark.StructField("must", spark.IntegerType(), False)]
    )  # fmt: skip
    columns = {"k": STRING, "N": BIGINT, "more": STRING}
    assert list(misfits(columns, table, written=True)) == [
        "its column 'n' is int, which cannot hold bigint", "it has no column 'more' (string)",
        "its column 'must' may not be null, and the topology has none of that name",
    ]  # fmt: skip
    assert list(misfits(columns, table, written=False)) == ["it has no column 'more' (string)"]


def test_a_text_of_any_length_is_not_written_into_a_char_or_varchar() -> None:
    noted = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}
    table = spark.StructType([spark.StructField("k", spark.StringType(), True, noted)])
    problem = "its column 'k' is varchar(3), which does not hold every text"
    assert list(misfits({"k": STRING}, table, written=True)) == [problem]
    assert list(misfits({"k": STRING}, table, written=False)) == []


def test_names_of_tables() -> None:
    assert identifier("a", "x") == "`a`"
    assert identifier("cat.my db.`odd.name`", "x") == "`cat`.`my db`.`odd.name`"
    for wrong in ("", "a..b", "a.", "a`b"):
        with pytest.raises(LakeTableError, match="is not the name of a table"):
            identifier(wrong, "x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[DELTA_SOURCE_TABLE_IGNORE_CHANGES] Detected a data update", "rows of a Delta table were changed or deleted"),
        ("Cannot process overwrite snapshot: 7641367389078007998", "rows of an Iceberg table were changed or deleted"),
        ("[DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE] ...", "the Delta table is not the one"),
        (
            'Cannot invoke "java.lang.Long.longValue()" because the return value of '
            '"org.apache.iceberg.Snapshot.parentId()" is null',
            "the snapshot up to which the checkpoint has read an Iceberg table is no longer in its history",
        ),
        (
            "[DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG] Streaming read is not supported on tables "
            "with read-incompatible schema changes",
            "a column of a Delta table was renamed or dropped",
        ),
        ("[DELTA_SCHEMA_CHANGED_WITH_VERSION] Detected schema change in version 3", "the columns of a Delta table"),
        (
            'Cannot invoke "StreamingOffset.json()" because "this.lastOffsetForTriggerAvailableNow" is null',
            "an Iceberg table has no new rows since `vsc upgrade`",
        ),
        ("Cannot load current offset at snapshot 5, the snapshot was expired or removed", "the snapshot up to which"),
    ],
)
def test_what_ends_a_query_that_reads_on(text: str, message: str) -> None:
    error = translated(RuntimeError(f"[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: {text}"))
    assert error is not None
    assert (error.code, error.message.startswith(message), error.help is not None) == ("VSC924", True, True)
    assert "STREAM_FAILED" not in error.message


def test_what_keeps_a_table_from_being_opened() -> None:
    table = DeltaTable(Options("the sink of 's' (line 2)", Connector("delta", (("table", "cat.db.t"),))))
    for text, code, words in (
        ("[TABLE_OR_VIEW_NOT_FOUND] ...", "VSC922", "there is no Delta Lake table 'cat.db.t'"),
        ("[SCHEMA_NOT_FOUND] The schema `db`", "VSC922", "there is no schema for the Delta Lake table 'cat.db.t'"),
        ("[DELTA_UNSUPPORTED_FEATURES_FOR_READ] needs 'x'", "VSC922", "needs a newer Delta Lake"),
        ("[REQUIRES_SINGLE_PART_NAMESPACE] spark_catalog", "VSC923", "the session has no catalog for"),
        ("java.nio.file.AccessDeniedException: /x: Permission denied", "VSC923", "Permission denied"),
        (
            "x.DeltaInvariantViolationException: [DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint pos (v > w) "
            "violated by row with values:\n - v : -5\n - w : 7\n\tat a.b",
            "VSC920",
            "refuses a row: CHECK constraint pos (v > w) violated by row with v : -5, w : 7",
        ),
        (
            "[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] NOT NULL constraint violated for column: v.\n",
            "VSC920",
            "refuses a row: NOT NULL constraint violated for column: v",
        ),
    ):
        error = lake_error(table, RuntimeError(text))
        assert (error.code, words in error.message) == (code, True), error
        assert error.message.startswith("the sink of 's' (line 2): ") and error.help


def test_a_session_that_was_started_without_a_lake() -> None:
    class Conf:
        def get(self, name: str, default: str | None) -> str | None:
            return default

    class Session:
        conf = Conf()

    with pytest.raises(LakeReleaseError, match="the Spark session was started without Delta Lake") as raised:
        check_session(DELTA, Session(), "the sink of 's' (line 2)")  # type: ignore[arg-type]
    assert DELTA.extension in str(raised.value.help) and str(DELTA.catalog) in str(raised.value.help)
