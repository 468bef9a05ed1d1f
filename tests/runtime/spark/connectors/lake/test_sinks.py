"""Sinks into real tables of Delta Lake and Iceberg: what they hold after epochs, repeats and refusals."""

from __future__ import annotations

import datetime
import json
import re
import shutil
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.spark.connectors.lake.support import Case
from vsc.runtime.errors import SinkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RATES = """
table rates (currency string, rate double, at bigint, gone boolean)
from files (path = '${in}', format = 'json', 'maxFilesPerTrigger' = '1')
key currency timestamp at delete when gone %s;
sink rates to ${lake} (path = '${table}', create = true);
"""


def rate(currency: str, value: float | None, at: int, gone: bool = False) -> dict[str, Any]:
    return {"currency": currency, "rate": value, "at": at, "gone": gone}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_a_table_is_upserted_and_deleted_by_key_each_epoch_once(tmp_path: Path, lakes: SparkSession, lake: str) -> None:
    case = Case(RATES % "materialize versioned (retention = 1 day)", tmp_path, lakes, lake)
    case.file(0, rate("EUR", 1.0, 10), rate("USD", 2.0, 20), rate("EUR", 1.5, 30), rate("CHF", 9.0, 30))
    # Of a versioned table, an older version is not its newest.
    case.file(1, rate("EUR", None, 40, gone=True), rate("USD", 2.5, 15), rate("JPY", 7.0, 40), rate("JPY", 0, 50, True))
    case.run()
    expected = [("CHF", 9.0, 30, False), ("USD", 2.0, 20, False)]
    assert case.rows() == expected
    before = case.versions()
    # A repeated epoch changes nothing; what comes after it is written.
    case.uncommit(1)
    case.file(2, rate("USD", 3.0, 60), rate("GBP", 4.0, 60), rate("CHF", 0, 60, True))
    assert [r.epoch for r in case.run()] == [1, 2]
    expected = [("GBP", 4.0, 60, False), ("USD", 3.0, 60, False)]
    assert (case.rows(), case.versions()) == (expected, before + 1)
    # A run that goes back writes its epochs again, and those that follow.
    case.delete("currency = 'USD'")
    case.file(3, rate("NOK", 8.0, 80))
    assert [r.epoch for r in case.run(back_to=1)] == [2, 3]
    assert case.rows() == [("GBP", 4.0, 60, False), ("NOK", 8.0, 80, False), ("USD", 3.0, 60, False)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_a_table_that_was_restored_from_an_older_copy_is_refused(
    tmp_path: Path, lakes: SparkSession, lake: str
) -> None:
    case = Case(RATES % "", tmp_path, lakes, lake)
    case.file(0, rate("EUR", 1.0, 10))
    case.run()
    shutil.copytree(tmp_path / "table", tmp_path / "copy")
    case.file(1, rate("USD", 2.0, 20))
    case.run()
    shutil.rmtree(tmp_path / "table")
    shutil.copytree(tmp_path / "copy", tmp_path / "table")
    case.file(2, rate("CHF", 3.0, 30))
    with pytest.raises(SinkError) as caught:
        case.run()
    assert caught.value.message.endswith(
        " has epoch 0 of this checkpoint as the newest; the checkpoint has written up to epoch 1"
    )
    assert [r.epoch for r in case.run(back_to=0)] == [1, 2]
    assert [row[0] for row in case.rows()] == ["CHF", "EUR", "USD"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_a_table_without_any_epoch_is_refused_where_they_do_not_expire(
    tmp_path: Path, lakes: SparkSession, lake: str, caplog: pytest.LogCaptureFixture
) -> None:
    case = Case(RATES % "", tmp_path, lakes, lake)
    lakes.sql(f"create table {case.sql()} (currency string, rate double, at bigint, gone boolean) using {lake}")
    shutil.copytree(tmp_path / "table", tmp_path / "copy")
    case.file(0, rate("EUR", 1.0, 10))
    case.run()
    case.delete("currency = 'EUR'")
    case.file(1, rate("EUR", None, 20, gone=True))  # changes nothing, and is an epoch of the table all the same
    case.run()
    case.file(2, rate("USD", 2.0, 30))
    assert [r.epoch for r in case.run()] == [2]
    shutil.rmtree(tmp_path / "table")
    shutil.copytree(tmp_path / "copy", tmp_path / "table")
    case.file(3, rate("CHF", 3.0, 40))
    if lake == "delta":
        with pytest.raises(SinkError) as caught:
            case.run()
        assert caught.value.message.endswith(
            " has nothing of this checkpoint; the checkpoint has written up to epoch 2"
        )
        case.table.set_property(lakes, "delta.setTransactionRetentionDuration", "interval 1 day")
    assert [r.epoch for r in case.run()] == [3]
    assert any("holds nothing of what this checkpoint wrote" in record.getMessage() for record in caplog.records)


ALL = """
stream values_ (
  k string, b boolean, t tinyint, s smallint, i int, l bigint, f float, d double, n decimal(20, 4), x binary,
  day date, at timestamp, list array<string>, m map<string, double>, r struct<a: int, b: array<string>>
)
from files (path = '${in}', format = 'json', 'maxFilesPerTrigger' = '1') key k timestamp at;
sink values_ to ${lake} (path = '${table}', create = true, with_timestamp = true);
stream last = map values_ select l, i;
sink last to ${lake} (path = '${out}', create = true, with_timestamp = true, mode = 'upsert');
"""
ROW = {
    "k": "full", "b": True, "t": -128, "s": 7, "i": -5, "l": 2**62, "f": 0.5, "d": 1e-300, "n": "1234.5000",
    "x": "AAH/", "day": "1999-10-04", "at": "2026-05-04T01:02:03.123456Z", "list": ["a", None, ""],
    "m": {"x": 1.5}, "r": {"a": 1, "b": ["ä"]},
}  # fmt: skip


@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_a_stream_of_all_types_is_appended_each_epoch_once(tmp_path: Path, lakes: SparkSession, lake: str) -> None:
    case = Case(ALL, tmp_path, lakes, lake)
    case.file(0, ROW)
    case.file(1, {"k": "none", "at": ROW["at"], "i": 1}, {"k": "none", "at": ROW["at"]})
    case.run()
    assert case.rows("out", "k, l, i, _timestamp") == [
        ("full", 2**62, -5, 1777856523123), ("none", None, None, 1777856523123),
    ]  # fmt: skip
    full, *nones = case.rows()
    assert full[:11] == (
        "full", True, -128, 7, -5, 2**62, 0.5, 1e-300, Decimal("1234.5000"), bytearray(b"\x00\x01\xff"),
        datetime.date(1999, 10, 4),
    )  # fmt: skip
    assert (full[12], full[13], tuple(full[14]), full[15]) == (["a", None, ""], {"x": 1.5}, (1, ["ä"]), 1777856523123)
    assert [row[0] for row in nones] == ["none", "none"]
    before = case.versions()
    case.uncommit(1)
    case.run()
    assert (len(case.rows()), case.versions()) == (3, before)
    # A table of wider columns in another order, and one more, which stays null.
    case.variables["table"] = str(tmp_path / "wide")
    narrow = Case(
        "stream a (k string, i int, at bigint) from files (path = '${in}', format = 'json') timestamp at;"
        "sink a to ${lake} (path = '${table}');", tmp_path, lakes, lake,
    )  # fmt: skip
    narrow.variables = {"in": str(tmp_path / "more"), "table": str(tmp_path / "wide")}
    narrow.file(0, {"k": "x", "i": 3, "at": 1}, folder="more")
    error = narrow.refused(checkpoint="ck2")
    assert (error.code, "there is no" in error.message, "create = true" in str(error.help)) == ("VSC922", True, True)
    frame = lakes.createDataFrame([], "at bigint, more string, I bigint, k string")
    if lake == "delta":
        frame.write.format("delta").save(str(tmp_path / "wide"))
    else:
        lakes.sql(f"create table {narrow.sql()} (at bigint, more string, I bigint, k string) using iceberg")
    narrow.run(checkpoint="ck2")
    assert narrow.rows("wide") == [(1, None, 3, "x")]


@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_tables_that_do_not_fit_are_refused(tmp_path: Path, lakes: SparkSession, lake: str) -> None:
    case = Case(RATES % "", tmp_path, lakes, lake)
    case.file(0, rate("EUR", 1.0, 1))
    case.run()
    other = Case(
        "table a (currency string, rate decimal(10,2)) from files (path = '${in}', format = 'json') key currency;"
        "sink a to ${lake} (path = '${table}');", tmp_path, lakes, lake,
    )  # fmt: skip
    error = other.refused(checkpoint="ck2")
    assert error.code == "VSC922"
    assert "its column 'rate' is double, which cannot hold decimal(10,2)" in error.message
    more = Case(
        "table a (currency string, rate double) from files (path = '${in}', format = 'json') key currency;"
        "table b = map a select rate as rates; sink b to ${lake} (path = '${table}');", tmp_path, lakes, lake,
    )  # fmt: skip
    assert "it has no column 'rates' (double)" in more.refused(checkpoint="ck2").message
    assert not (tmp_path / "ck2").exists()
    if lake == "delta":
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["new"], "writerFeatures": ["new"]}
        newest = max((tmp_path / "table/_delta_log").glob("*.json"))
        log = newest.with_name(f"{int(newest.stem) + 1:020d}.json")
        log.write_text(json.dumps({"protocol": protocol}) + "\n")
    else:
        metadata = max((tmp_path / "table/metadata").glob("v*.metadata.json"))
        metadata.write_text(re.sub(r'"format-version" ?: ?2', '"format-version": 9', metadata.read_text()))
        (metadata.parent / f".{metadata.name}.crc").unlink()
    error = case.refused()
    assert (error.code, "needs a newer" in error.message) == ("VSC922", True), error
