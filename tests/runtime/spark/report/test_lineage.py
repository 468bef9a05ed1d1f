"""Events reach a file or a server, or are counted; a run never waits for them."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.lineage.standard import check
from tests.runtime.spark.report.lineage_server import LineageServer, lineage_server
from tests.runtime.spark.support import compiled
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.spark.base.lineage_target import check_target
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.report import lineage as module
from vsc.runtime.spark.report.lineage import RunLineage

PLAN = compiled(
    "topology t; stream s (k string, at bigint) from files (path = '/in', format = 'json') key k timestamp at;"
    "sink s to files (path = '/out', format = 'json'); sink s to noop ();"
)
SPARK = Mock(version="4.1.0")


@pytest.fixture(autouse=True)
def local_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "default_files", lambda spark: "")


@pytest.fixture
def server() -> Iterator[LineageServer]:
    with lineage_server() as found:
        yield found


class _Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def _epoch(number: int, read: int, written: int) -> EpochReport:
    report = EpochReport(number)
    report.read["s"] += read
    report.written["sink-0"] += written
    report.written["sink-1"] += written
    return report


def _rows(event: dict[str, Any]) -> tuple[str, int, int]:
    [read], [written] = event["inputs"], event["outputs"]
    statistics = read["inputFacets"]["inputStatistics"], written["outputFacets"]["outputStatistics"]
    return event["eventType"], *(one["rowCount"] for one in statistics)


def _run(target: str, clock: _Clock | None = None) -> RunLineage:
    clock = clock or _Clock()
    run = RunLineage(PLAN, target, clock)
    run.begin(SPARK)
    for number in range(4):
        clock.now += 25
        run.epoch(_epoch(number, 10, 3))
    return run


def test_a_file_gets_a_line_an_event_with_the_sums_so_far(tmp_path: Path) -> None:
    target = tmp_path / "events.jsonl"
    target.write_text('{"before": 1}\n')
    run = _run(str(target))
    run.end("COMPLETE")
    run.end("FAIL", "later, and not told")
    _, *lines = target.read_text().splitlines()
    events = [json.loads(line) for line in lines]
    for event in events:
        check(event)
    # After 25, 50 and 75 s, of which the last has an event: a minute and more after the start.
    assert [_rows(event) for event in events] == [("START", 0, 0), ("RUNNING", 30, 9), ("COMPLETE", 40, 12)]
    assert len({event["run"]["runId"] for event in events}) == 1
    engine = events[0]["run"]["facets"]["processing_engine"]
    assert (engine["name"], engine["version"], events[0]["job"]["name"]) == ("spark", "4.1.0", "t")


def test_another_run_has_another_id(tmp_path: Path) -> None:
    for _ in range(2):
        _run(str(tmp_path / "events")).end("ABORT")
    ids = [json.loads(line)["run"]["runId"] for line in (tmp_path / "events").read_text().splitlines()]
    assert len(ids) == 6 and len(set(ids)) == 2


def test_a_server_gets_the_events_with_the_key(server: LineageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", " planted-key ")
    _run(server.url).end("FAIL", "the disk is full")
    assert [_rows(event)[0] for event in server.events] == ["START", "RUNNING", "FAIL"]
    assert server.events[-1]["run"]["facets"]["errorMessage"]["message"] == "the disk is full"
    for method, path, headers in server.requests:
        assert (method, path, headers["Content-Type"]) == ("POST", "/api/v1/lineage", "application/json")
        assert headers["Authorization"] == "Bearer planted-key"
    assert "planted" not in json.dumps(server.events)


def test_a_path_in_the_url_is_the_path(server: LineageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENLINEAGE_API_KEY", raising=False)
    _run(f"{server.url}/my/events").end("COMPLETE")
    assert {(path, headers.get("Authorization")) for _, path, headers in server.requests} == {("/my/events", None)}


def test_a_server_that_is_down_is_said_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with caplog.at_level(logging.WARNING):
            _run(url).end("COMPLETE")
    first, last = caplog.messages
    assert first == f"OpenLineage's events do not reach {url}: Connection refused; the run goes on"
    assert last == f"3 of 3 events of OpenLineage did not reach {url}"


@pytest.mark.parametrize(("status", "said"), [(503, "the server says 503 Service Unavailable"), (302, "302 Found")])
def test_an_answer_that_is_no_yes_counts_as_not_delivered(
    status: int, said: str, server: LineageServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.status = status
    with caplog.at_level(logging.WARNING):
        run = _run(server.url)
        while len(server.requests) < 2:
            time.sleep(0.01)
        server.status = 200
        run.end("COMPLETE")
    assert said in caplog.messages[0]
    assert caplog.messages[1:] == [f"2 of 3 events of OpenLineage did not reach {server.url}"]
    assert {method for method, _, _ in server.requests} == {"POST"}  # a redirect is not followed


def test_a_server_that_hangs_is_not_waited_for(
    server: LineageServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT_S", 2)
    server.delay = 30
    began = time.monotonic()
    run = _run(server.url)
    assert time.monotonic() - began < 2
    with caplog.at_level(logging.WARNING):
        run.end("COMPLETE")
    assert time.monotonic() - began < server.delay
    assert "3 of 3 events" in caplog.messages[-1]


def test_a_file_that_goes_away_does_not_fail_the_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    run = RunLineage(PLAN, str(folder / "events"))
    (folder / "events").unlink()
    folder.rmdir()
    with caplog.at_level(logging.WARNING):
        run.begin(SPARK)
        run.end("COMPLETE")
    assert "No such file or directory" in caplog.messages[0] and caplog.messages[1].startswith("2 of 2 events")


@pytest.mark.parametrize("fault", ["job_of", "run_event"])
def test_a_fault_of_its_own_ends_the_events_and_is_said_once(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, fault, Mock(side_effect=KeyError("column")))
    with caplog.at_level(logging.WARNING):
        _run(str(tmp_path / "events")).end("COMPLETE")
    assert caplog.messages == ["there are no more events of OpenLineage: KeyError: 'column'; the run goes on"]
    assert (tmp_path / "events").read_text() == ""


def test_a_fault_in_an_epoch_leaves_what_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = RunLineage(PLAN, str(tmp_path / "events"))
    run.begin(SPARK)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            run.epoch(Mock(read=3))
        run.end("COMPLETE")
    assert [message.partition(";")[0] for message in caplog.messages] == [
        "there are no more events of OpenLineage: TypeError: 'int' object is not iterable"
    ]
    [line] = (tmp_path / "events").read_text().splitlines()
    assert json.loads(line)["eventType"] == "START"


def test_a_run_that_was_refused_before_it_began_is_not_told(tmp_path: Path) -> None:
    RunLineage(PLAN, str(tmp_path / "events")).end("FAIL", "refused")
    assert (tmp_path / "events").read_text() == ""


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (" ", "names neither a file nor a server"),
        ("ftp://host/events", "is not the URL of a server"),
        ("s3://bucket/events", "is not the URL of a server"),
        ("http://", "is not the URL of a server"),
        ("http://host:port", "is not the URL of a server"),
        ("http://[::1", "is not the URL of a server"),
        ("https://me:planted@host", "holds a secret"),
        ("https://planted@host", "holds a secret"),
        ("https://host/lineage?api_key=planted", "holds a secret"),
        ("https://host/lineage?key=planted", "a query or a fragment"),
        ("https://host?pw=planted", "a query or a fragment"),
        ("https://host/lineage#auth=planted", "a query or a fragment"),
        ("https://host/lineage#token=planted", ""),
        ("http:// h", "is not the URL of a server"),
        ("http://h/a b", "is not the URL of a server"),
        ("http://h\n/a", "is not the URL of a server"),
        ("http://h/\x00", "is not the URL of a server"),
    ],
)
def test_what_is_no_target_is_refused_without_what_is_secret(target: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_target(target)
    assert said in refused.value.message
    assert "planted" not in str(refused.value)


@pytest.mark.parametrize("target", ["events.jsonl", "/a b/c", "http://h", "https://h:5000/api/v1/lineage", "a@b", "[x"])
def test_a_target_is_taken(target: str) -> None:
    check_target(target)


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written: No such file or directory"):
        RunLineage(PLAN, str(tmp_path / "none/events"))
    with pytest.raises(ConfigurationError, match="cannot be written: Is a directory"):
        RunLineage(PLAN, str(tmp_path))


def test_a_key_that_is_none_is_refused_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "planted\nHost: x")
    with pytest.raises(ConfigurationError, match="OPENLINEAGE_API_KEY") as refused:
        RunLineage(PLAN, "http://127.0.0.1:1")
    assert "planted" not in str(refused.value)
