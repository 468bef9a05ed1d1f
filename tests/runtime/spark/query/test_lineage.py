"""A run tells how it begins and ends, from `vsc run` and from `vsc.start`, with its columns and its rows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

import vsc
from tests.lineage.standard import check
from tests.runtime.spark.report.lineage_server import lineage_server
from tests.runtime.spark.support import write_json
from vsc.runtime.errors import CheckpointError, ConfigurationError, SinkError
from vsc.runtime.spark.query.lineage import beginning, tell_end, telling
from vsc.runtime.spark.session.interrupts import Interrupted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = """
topology sums;
stream s (k string, n string, at bigint) from files (path = '${in}', format = 'json') key k timestamp at;
stream numbers = map s select cast(n as int) as n;
sink numbers to files (path = '${out}', format = 'json');
"""


@pytest.mark.parametrize(
    ("error", "at_once", "told"),
    [
        (None, False, ("COMPLETE",)),
        (Interrupted(), False, ("ABORT",)),
        (KeyboardInterrupt(), False, ("ABORT",)),
        (OSError("the JVM is gone"), True, ("ABORT",)),
        (SinkError("the disk is full", "make room"), False, ("FAIL", "the disk is full")),
        (ValueError("token=planted17x\nand more"), False, ("FAIL", "token=...")),
    ],
)
def test_the_end_of_a_run(error: BaseException | None, at_once: bool, told: tuple[str, ...]) -> None:
    lineage = Mock()
    try:
        with telling(lineage, Mock(), Mock(at_once=at_once)):
            if error is not None:
                raise error
    except BaseException as raised:
        assert raised is error
    lineage.begin.assert_called_once()
    lineage.end.assert_called_once_with(*told)


def test_a_run_that_nobody_is_told_of() -> None:
    with telling(None, Mock(), Mock()), beginning(None, Mock()):
        pass


def test_a_query_that_does_not_start() -> None:
    lineage = Mock()
    with pytest.raises(SinkError), beginning(lineage, Mock()):
        raise SinkError("no such table")
    lineage.end.assert_called_once_with("FAIL", "no such table")


@pytest.mark.parametrize(
    ("bounded", "found_nothing", "failure", "told"),
    [
        (True, True, None, ("COMPLETE",)),
        (True, False, None, ("ABORT",)),
        (False, True, None, ("ABORT",)),
        (True, False, ValueError("why"), ("FAIL", "why")),
    ],
)
def test_the_end_of_a_query(
    bounded: bool, found_nothing: bool, failure: Exception | None, told: tuple[str, ...]
) -> None:
    lineage, ended = Mock(), threading.Event()
    lineage.end.side_effect = lambda *_: ended.set()
    query = Mock(**{"exception.return_value": failure, "awaitTermination.side_effect": failure})
    query._jsq.streamingQuery.return_value.noNewData.return_value = found_nothing
    tell_end(query, lineage, bounded)
    assert ended.wait(10)
    lineage.end.assert_called_once_with(*told)


def _until(what: Callable[[], bool]) -> None:
    ends = time.monotonic() + 120
    while not what():
        assert time.monotonic() < ends
        time.sleep(0.05)


def _told(event: dict[str, Any]) -> tuple[str, int, int]:
    """What kind of event, and the rows read and written."""
    check(event)
    [read], [written] = event["inputs"], event["outputs"]
    return (
        event["eventType"],
        read["inputFacets"]["inputStatistics"]["rowCount"],
        written["outputFacets"]["outputStatistics"]["rowCount"],
    )


@pytest.mark.spark
def test_start_tells_a_server(tmp_path: Path, spark: SparkSession) -> None:
    write_json(tmp_path / "in/0.json", [{"k": "a", "n": "1", "at": 1}, {"k": "b", "n": "2", "at": 2}], 0)
    given: dict[str, Any] = {"variables": {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}, "partitions": 1}
    with lineage_server() as server:
        query = vsc.start(TEXT, spark, checkpoint=tmp_path / "ck", lineage=server.url, **given)
        query.awaitTermination()
        _until(lambda: len(server.events) == 2)
        assert [_told(event) for event in server.events] == [("START", 0, 0), ("COMPLETE", 2, 2)]

        query = vsc.start(TEXT, spark, checkpoint=tmp_path / "ck", lineage=server.url, trigger="1 second", **given)
        query.stop()
        _until(lambda: len(server.events) == 4)
        assert _told(server.events[-1]) == ("ABORT", 0, 0)

        write_json(tmp_path / "in/1.json", [{"k": "a", "n": "planted17x", "at": 3}], 1)
        query = vsc.start(TEXT, spark, checkpoint=tmp_path / "ck", lineage=server.url, **given)
        with pytest.raises(vsc.runtime.spark.QueryFailedError):
            query.awaitTermination()
        _until(lambda: len(server.events) == 6)
        assert _told(server.events[-1]) == ("FAIL", 0, 0)
    message = server.events[-1]["run"]["facets"]["errorMessage"]["message"]
    assert "numbers" in message
    [out] = {(one["namespace"], one["name"]) for event in server.events for one in event["outputs"]}
    assert out == ("file", str(tmp_path / "out"))
    runs = [event["run"]["runId"] for event in server.events]
    assert runs[::2] == runs[1::2] and len(set(runs)) == 3


@pytest.mark.spark
def test_start_tells_what_it_refuses_and_who_has_read_all(tmp_path: Path, spark: SparkSession) -> None:
    write_json(tmp_path / "in/0.json", [{"k": "a", "n": "1", "at": 1}], 0)
    given: dict[str, Any] = {"variables": {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}, "partitions": 1}
    events = tmp_path / "events"

    def told() -> list[str]:
        return [json.loads(line)["eventType"] for line in events.read_text().splitlines()]

    vsc.start(TEXT, spark, checkpoint=tmp_path / "ck", lineage=events, trigger="once", **given).awaitTermination()
    _until(lambda: told() == ["START", "COMPLETE"])

    write_json(tmp_path / "in/1.json", [{"k": "b", "n": "2", "at": 2}], 1)

    def stop(report: object) -> None:
        """As others may, in the midst of the one epoch."""
        threading.Thread(target=spark.streams.active[0].stop).start()
        time.sleep(5)

    vsc.start(TEXT, spark, checkpoint=tmp_path / "ck", lineage=events, on_epoch=stop, **given).awaitTermination()
    _until(lambda: told()[2:] == ["START", "ABORT"])

    given["partitions"] = 2
    with pytest.raises(CheckpointError):
        vsc.start(TEXT, spark, checkpoint=tmp_path / "ck", lineage=events, **given)
    assert told()[4:] == ["START", "FAIL"]
    with pytest.raises(ConfigurationError, match="cannot be written"):
        vsc.start(TEXT, spark, checkpoint=tmp_path / "ck", lineage=tmp_path, **given)


def _command(root: Path, folder: Path, *more: str) -> list[str]:
    topology = root / "examples/payments/topology.vdsl"
    data = [f"--var=data={root}/examples/payments/data", f"--var=out={folder}/out"]
    return [
        sys.executable, "-m", "vsc", "run", str(topology), "--master", "local[2]", "--checkpoint", f"{folder}/ck",
        "--partitions", "2", *data, *more,
    ]  # fmt: skip


@pytest.mark.spark
@pytest.mark.slow
def test_an_example_tells_its_columns_and_rows(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "events.jsonl"
    command = _command(root, tmp_path, "--lineage", str(target), "--progress", "none")
    subprocess.run(command, check=True, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}, timeout=300)
    events = [json.loads(line) for line in target.read_text().splitlines()]
    for event in events:
        check(event)
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"]
    last = events[-1]
    written = sum(len(file.read_text().splitlines()) for file in (tmp_path / "out/priced").glob("*.json"))
    [priced] = [one for one in last["outputs"] if one["name"] == f"{tmp_path}/out/priced"]
    assert priced["outputFacets"]["outputStatistics"]["rowCount"] == written > 0
    rows = {Path(one["name"]).name: one["inputFacets"]["inputStatistics"]["rowCount"] for one in last["inputs"]}
    data = root / "examples/payments/data"
    assert rows == {
        name: sum(len(file.read_text().splitlines()) for file in (data / name).glob("*.json")) for name in rows
    }
    fields = priced["facets"]["columnLineage"]["fields"]
    usd = {(Path(one["name"]).name, one["field"]): one["transformations"] for one in fields["usd"]["inputFields"]}
    computed = [{"type": "DIRECT", "subtype": "TRANSFORMATION", "masking": False}]
    assert usd == {("payments", "amount"): computed, ("rates", "rate"): computed}


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_that_is_stopped_tells_so(root: Path, tmp_path: Path) -> None:
    with lineage_server() as server:
        command = _command(root, tmp_path, "--lineage", server.url, "--trigger", "1 second")
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        )
        try:
            _until(lambda: (tmp_path / "ck/commits/0").exists() or process.poll() is not None)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 130, err
    assert [event["eventType"] for event in server.events] == ["START", "ABORT"]
    assert server.events[-1]["run"]["facets"].keys() == {"processing_engine"}
