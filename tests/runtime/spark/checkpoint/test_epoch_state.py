"""Looking into the state of real queries: stopped ones, running ones, earlier epochs; nothing is disturbed."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.spark.support import compiled, run_once, write_json
from vsc.cli import store as command
from vsc.runtime.errors import CheckpointError, ConfigurationError, StateError
from vsc.runtime.spark import read_store, start
from vsc.runtime.spark.checkpoint.epoch_state import EpochState
from vsc.runtime.spark.query.failures import translated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.release]

TOPOLOGY = """
table rates (currency string, rate decimal(6, 2), at timestamp) from files (
  path = '${in}/rates', format = 'json', 'maxFilesPerTrigger' = '1') key currency timestamp at
  materialize versioned (retention = 1 hour);
table totals = aggregate rates group by currency select count(*) as n, max(rate) as highest;
table recent = suppress totals until time limit 1 day;
sink recent to noop ();
"""
SECOND = 1000


def rates(folder: Path, number: int) -> None:
    rows = [{"currency": c, "rate": f"{number}.5{i}", "at": f"1970-01-01T00:00:0{number}Z"} for i, c in enumerate("ab")]
    write_json(folder / f"in/rates/{number}.json", rows, number)


@pytest.fixture(scope="module")
def looked(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A checkpoint of three epochs, each with a version of each key."""
    folder = tmp_path_factory.mktemp("look")
    for number in range(1, 4):
        rates(folder, number)
    run_once(compiled(TOPOLOGY), spark, folder / "ck", variables={"in": str(folder / "in")}, partitions=2)
    before = fingerprint(folder / "ck")
    yield folder
    assert fingerprint(folder / "ck") == before


def fingerprint(checkpoint: Path) -> dict[str, tuple[int, int]]:
    files = (p for p in checkpoint.rglob("*") if p.is_file())
    return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in files}


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(
        (r["currency"], str(r["rate"]), r["_status"], r["_valid_from"], r["_valid_to"]) for r in frame.collect()
    )


def answer(spark: SparkSession, checkpoint: Path, *arguments: str) -> str:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args([*arguments, "--checkpoint", str(checkpoint)])
    return command._answer(args, EpochState.open(spark, args.checkpoint, args.at_epoch))


@pytest.mark.seam("stores")
def test_a_store_is_a_data_frame(spark: SparkSession, looked: Path) -> None:
    checkpoint = str(looked / "ck")
    newest = read_store(spark, checkpoint, "rates")
    assert newest.schema.simpleString() == (
        "struct<currency:string,rate:decimal(6,2),at:timestamp,_status:string,_valid_from:bigint,_valid_to:bigint>"
    )
    assert rows(newest) == [("a", "3.50", "version", 3000, None), ("b", "3.51", "version", 3000, None)]
    as_of = read_store(spark, checkpoint, "rates", key={"currency": "b"}, as_of=2999)
    assert rows(as_of) == [("b", "2.51", "version", 2000, 3000)]


def test_columns_that_are_called_as_those_that_are_added(spark: SparkSession, tmp_path: Path) -> None:
    text = """
    table t (_encoded string, _status string, _valid_from bigint, `a.b` struct<_vsc_x: int>)
    from files (path = '${in}', format = 'json') key _encoded timestamp _valid_from
    materialize versioned (retention = 1 hour);
    sink t to noop ();
    """
    row = {"_encoded": "k", "_status": "mine", "_valid_from": 7, "a.b": {"_vsc_x": 1}}
    write_json(tmp_path / "in/1.json", [row], 1)
    run_once(compiled(text), spark, tmp_path / "ck", variables={"in": str(tmp_path / "in")}, partitions=1)
    (found,) = read_store(spark, str(tmp_path / "ck"), "t").collect()
    assert found.asDict(recursive=True) == {
        "_encoded": "k", "_status": "mine", "_valid_from": 7, "a.b": {"_vsc_x": 1},
        "_vsc_status": "version", "_vsc_valid_from": 7, "_valid_to": None,
    }  # fmt: skip
    assert answer(spark, tmp_path / "ck", "scan", "t", "--format", "csv").splitlines() == [
        "_encoded,_status,_valid_from,a.b,_vsc_status,_vsc_valid_from,_valid_to",
        'k,mine,7,"{""_vsc_x"": 1}",version,7,',
    ]


def test_an_earlier_epoch_is_there_as_long_as_spark_keeps_it(spark: SparkSession, looked: Path) -> None:
    checkpoint = str(looked / "ck")
    first = read_store(spark, checkpoint, "rates", at_epoch=0)
    assert rows(first) == [("a", "1.50", "version", 1000, None), ("b", "1.51", "version", 1000, None)]
    with pytest.raises(CheckpointError, match=r"epoch 9 is not kept in .*: there are 0 to 2"):
        read_store(spark, checkpoint, "rates", at_epoch=9)


def test_all_stores_are_listed_with_their_sizes_and_clocks(spark: SparkSession, looked: Path) -> None:
    listed = {s["store"]: s for s in json.loads(answer(spark, looked / "ck", "list", "--format", "json"))}
    assert listed["rates"]["kind"] == "versioned"
    assert (listed["rates"]["rows"], listed["rates"]["stream_time"], listed["rates"]["stage"]) == (6, 3 * SECOND, 1)
    assert listed["rates"]["key"] == {"currency": "string"}
    assert (listed["totals#groups"]["kind"], listed["totals#groups"]["rows"]) == ("groups", 2)
    assert (listed["recent#suppressed"]["rows"], listed["recent#suppressed"]["node"]) == (2, "recent")
    assert all(s["bytes"] > 0 for s in listed.values())
    parts = listed["rates"]["partitions"]
    assert [sum(part[name] for part in parts) for name in ("rows", "bytes")] == [6, listed["rates"]["bytes"]]
    assert {part["stream_time"] for part in parts} <= {None, 2 * SECOND, 3 * SECOND}
    lines = answer(spark, looked / "ck", "list", "--partitions", "--format", "csv").splitlines()
    assert lines[0] == "store,node,stage,kind,key,partition,rows,bytes,stream_time"
    assert [line.split(",")[5:7] for line in lines if line.startswith("rates,")] == [
        [str(number), str(part["rows"])] for number, part in enumerate(parts)
    ]


@pytest.mark.seam("stores")
def test_the_command_answers_in_three_forms(spark: SparkSession, looked: Path) -> None:
    checkpoint = looked / "ck"
    found = answer(
        spark, checkpoint, "get", "rates", "--key", "a", "--as-of", "1970-01-01T00:00:02Z", "--format", "json"
    )
    assert json.loads(found) == [
        {"key": {"currency": "a"}, "value": {"rate": 2.5, "at": "1970-01-01T00:00:02Z"}, "status": "version",
         "valid_from": 2000, "valid_to": 3000}
    ]  # fmt: skip
    assert '"rate": 2.50' in found
    found = answer(spark, checkpoint, "history", "rates", "--key", "b", "--from", "2000", "--format", "csv")
    assert found.splitlines() == [
        "currency,rate,at,_status,_valid_from,_valid_to",
        "b,3.51,1970-01-01T00:00:03Z,version,3000,",
        "b,2.51,1970-01-01T00:00:02Z,version,2000,3000",
    ]
    found = answer(spark, checkpoint, "scan", "totals#groups", "--from-key", "b")
    assert [line.split() for line in found.splitlines()][::2] == [
        ["currency", "n", "highest", "_status", "_timestamp", "_rows"],
        ["b", "1", "3.51", "row", "1970-01-01", "00:00:03.000", "1"],
    ]
    assert answer(spark, checkpoint, "scan", "rates", "--limit", "0", "--format", "json") == "[\n]\n"


def test_damaged_state_is_an_error_and_no_answer(spark: SparkSession, looked: Path, tmp_path: Path) -> None:
    shutil.copytree(looked / "ck", tmp_path / "ck")
    for path in (tmp_path / "ck/state").rglob("*"):
        if path.is_file() and path.name.startswith(("3_", ".3_")):
            path.unlink()
    with pytest.raises(Exception) as failed:
        read_store(spark, str(tmp_path / "ck"), "rates").collect()
    assert isinstance(translated(failed.value), StateError)


def test_what_is_no_checkpoint_or_no_store_is_refused(spark: SparkSession, looked: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is not a checkpoint of vsc"):
        read_store(spark, str(tmp_path), "rates")
    with pytest.raises(ConfigurationError, match="there is no store 'rate'"):
        read_store(spark, str(looked / "ck"), "rate")


@pytest.mark.slow
def test_a_running_query_is_looked_into(spark: SparkSession, tmp_path: Path) -> None:
    """By the command as a process of its own, and from the query's session; both leave it alone."""
    rates(tmp_path, 1)
    query = start(
        compiled(TOPOLOGY), spark, checkpoint=str(tmp_path / "ck"), variables={"in": str(tmp_path / "in")},
        partitions=2, trigger="200 ms",
    )  # fmt: skip
    try:
        query.processAllAvailable()
        line = [sys.executable, "-m", "vsc", "store", "get", "rates", "--key", "a", "--format", "json"]
        line += ["--checkpoint", str(tmp_path / "ck"), "--master", "local[1]"]
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        ran = subprocess.run(line, capture_output=True, text=True, env=environment, check=False)
        assert (ran.returncode, ran.stderr) == (0, "of epoch 0\n")
        assert [found["valid_from"] for found in json.loads(ran.stdout)] == [1000]
        rates(tmp_path, 2)
        query.processAllAvailable()
        assert rows(read_store(spark, str(tmp_path / "ck"), "rates", key={"currency": "a"}))[0][1] == "2.50"
        assert query.isActive and query.exception() is None
    finally:
        query.stop()
