"""Slowly changing dimensions: what stands in a table equals the true history, and is read back as it was written."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.spark.connectors.lake.support import Case
from tests.runtime.spark.support import parquet_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Change = tuple[int, int | None, int]
"""A key, a value (None: deleted), a time."""


def history(changes: list[Change]) -> list[tuple[int, int | None, int, int | None]]:
    """The rows of all changes, in the order of arrival: of each key, all its points of time, one after the other."""
    points: dict[int, dict[int, int | None]] = {}
    for key, value, at in changes:
        points.setdefault(key, {})[at] = value
    rows: list[tuple[int, int | None, int, int | None]] = []
    for key, of_key in points.items():
        before = None
        times: list[int | None] = [*sorted(of_key), None]
        for (at, value), until in zip(sorted(of_key.items()), times[1:], strict=True):
            if value is not None:
                rows.append((key, value, at, until))
            elif before is None:
                rows.append((key, None, at, at))
            before = value
    return sorted(rows, key=repr)


def test_the_model() -> None:
    changes = [(1, 10, 5), (1, None, 9), (1, 11, 7), (2, None, 4), (2, 20, 2), (3, None, 1)]
    assert history(changes) == [(1, 10, 5, 7), (1, 11, 7, 9), (2, 20, 2, 4), (3, None, 1, 1)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("lake", "time"), [("delta", "timestamp"), ("iceberg", "bigint")])
def test_any_changes_in_any_epochs(tmp_path: Path, lakes: SparkSession, lake: str, time: str) -> None:
    from vsc.runtime.spark.connectors.lake.history import History, kept
    from vsc.runtime.spark.connectors.lake.merge import Target

    case = Case("sink s to noop (); stream s (k int) from memory ();", tmp_path, lakes, lake)
    case.spark.sql(f"create table {case.sql()} (k int, v int, `from` {time}, until {time}) using {lake}")
    fields = case.table.columns(lakes).fields
    target = Target(case.sql(), ("k", "v"), 1)
    rng = random.Random(12)
    done: list[Change] = []
    as_ms = "`from`, until" if time == "bigint" else "unix_millis(`from`), unix_millis(until)"
    for size in (40, 1, 30, 60):
        changes: list[Change] = []
        for _ in range(size):
            value = None if rng.random() < 0.35 else rng.randint(0, 99)
            changes.append((rng.randint(1, 9), value, rng.randint(1, 25)))
        done += changes
        rows = [(k, v, "delete" if v is None else "upsert", at) for k, v, at in changes]
        frame = lakes.createDataFrame(rows, "c0 int, c1 int, change string, at bigint").repartition(2, "c0")
        ordered = {key: [c for c in changes if c[0] == key] for key in range(1, 10)}  # a key stands in one task
        frame = lakes.createDataFrame(
            [(k, v, "delete" if v is None else "upsert", at) for of_key in ordered.values() for k, v, at in of_key],
            frame.schema,
        )
        kept(frame, target, History(fields[2], fields[3]))
        assert case.rows(columns=f"k, v, {as_ms}") == history(done)


WRITTEN = """
table rates (currency string, rate int, at bigint, gone boolean)
from files (path = '${in}', format = 'json', 'maxFilesPerTrigger' = '1')
key currency timestamp at delete when gone
materialize versioned (retention = 1 day);
table named = map rates select rate;
sink named to ${lake} (
  path = '${table}', create = true, history = 'scd2', valid_from = '__START_AT', valid_to = '__END_AT'
);
"""
READ = """
table rates (currency string, rate int, __START_AT timestamp)
from ${lake} (path = '${table}', history = 'scd2', valid_from = '__START_AT', valid_to = '__END_AT')
key currency materialize versioned (retention = 1 day);
stream asked (id bigint, currency string, at bigint) from files (path = '${in}', format = 'json') timestamp at;
stream found = left join asked with rates on currency select id, rate;
sink found to files (path = '${out}', format = 'parquet');
"""


def rate(currency: str, value: int | None, at: int, gone: bool = False) -> dict[str, Any]:
    return {"currency": currency, "rate": value, "at": at, "gone": gone}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_a_history_is_written_and_seeds_a_table(tmp_path: Path, lakes: SparkSession, lake: str) -> None:
    case = Case(WRITTEN, tmp_path, lakes, lake)
    case.file(0, rate("EUR", 10, 100), rate("EUR", 30, 300), rate("USD", 7, 100), rate("GBP", 0, 200, gone=True))
    case.file(1, rate("EUR", 20, 200), rate("USD", 0, 400, gone=True), rate("GBP", 5, 150))  # late ones among them
    case.run()
    columns = "currency, rate, unix_millis(__START_AT), unix_millis(__END_AT)"
    expected = [("EUR", 10, 100, 200), ("EUR", 20, 200, 300), ("EUR", 30, 300, None), ("GBP", 5, 150, 200),
                ("USD", 7, 100, 400)]  # fmt: skip
    assert case.rows(columns=columns) == expected
    before = case.versions()
    case.uncommit(1)
    case.run()
    assert (case.rows(columns=columns), case.versions()) == (expected, before)

    more = "('CHF', 3, timestamp_millis(50), timestamp '9999-12-31 00:00:00'), ('BAD', 1, null, null)"
    more += ", ('BAD', 2, timestamp_millis(20), timestamp_millis(10))"
    case.spark.sql(f"insert into {case.sql()} values {more}")
    reader = Case(READ, tmp_path, lakes, lake)
    reader.variables["in"] = str(tmp_path / "asked")
    times = {"EUR": (99, 100, 199, 250, 999), "GBP": (149, 199, 200), "USD": (399, 400), "CHF": (49, 5000)}
    times["BAD"] = (30,)
    asked = [(currency, at) for currency, found in times.items() for at in found]
    reader.file(0, *({"id": i, "currency": c, "at": at} for i, (c, at) in enumerate(asked)), folder="asked")
    [report] = reader.run(checkpoint="ck2")
    assert report.read == {"rates": 10, "asked": len(asked)}
    found = {row["id"]: row["rate"] for row in parquet_rows(tmp_path / "out")}
    assert [found[i] for i in range(len(asked))] == [None, 10, 10, 20, 30, None, 5, None, 7, None, None, 3, None]
    wrong = Case(READ.replace("valid_to = '__END_AT'", "valid_to = 'until'"), tmp_path, lakes, lake)
    wrong.variables |= {"in": str(tmp_path / "asked"), "out": str(tmp_path / "other")}
    error = wrong.refused(checkpoint="ck3")
    assert (error.code, "its column 'until' of times is no such column" in error.message) == ("VSC922", True)


COMPLETE = """
table a (k string, x string, at bigint, gone boolean) from files (path = '${in}/a', format = 'json')
key k timestamp at delete when gone materialize versioned (retention = 1 hour);
table b (k string, y string, at bigint, gone boolean) from files (path = '${in}/b', format = 'json')
key k timestamp at delete when gone materialize versioned (retention = 1 hour);
table j = left join a with b select x, y materialize versioned (retention = 1 hour, history = 'complete');
sink j to ${lake} (path = '${table}', create = true, history = 'scd2');
"""


@pytest.mark.timeout(600)
def test_the_history_of_a_join_that_is_complete(tmp_path: Path, lakes: SparkSession) -> None:
    """Rows of either side come behind the end of the other's; the store as of a time says the same."""
    from vsc.runtime.spark import read_store

    case = Case(COMPLETE, tmp_path, lakes, "delta")
    came: list[dict[str, dict[str, Any]]] = [
        {"a": {"x": "a5", "at": 5}, "b": {"y": "b7", "at": 7}},
        {"b": {"at": 20, "gone": True}},
        {"a": {"x": "a10", "at": 10}},
    ]
    for number, rows in enumerate(came):
        for table, row in rows.items():
            case.file(number, {"k": "k", **row}, folder=f"in/{table}")
        case.run()
    expected = [("a10", "b7", 10, 20), ("a10", None, 20, None), ("a5", "b7", 7, 10), ("a5", None, 5, 7)]
    assert case.rows(columns="x, y, unix_millis(valid_from), unix_millis(valid_to)") == expected
    for at, valid in {9: ("a5", "b7"), 15: ("a10", "b7")}.items():
        found = read_store(lakes, str(tmp_path / "ck"), "j", key={"k": "k"}, as_of=at).select("x", "y")
        assert list(map(tuple, found.collect())) == [valid]
