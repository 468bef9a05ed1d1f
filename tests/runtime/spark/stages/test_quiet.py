"""Steps of quiet on Spark: written before anything acts on them, so the same after a restart; sources that lag."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, parquet_rows, run_once, write_json
from vsc.runtime.spark import start
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.exchange.counters import EpochReport

pytestmark = pytest.mark.spark

TOPOLOGY = """topology plant (quiet = 1 second);
stream a (sensor string, at bigint)
from files (path = '${in}/a', format = 'json', 'maxFilesPerTrigger' = '1') key sensor timestamp at;
stream b (sensor string, at bigint)
from files (path = '${in}/b', format = 'json', 'maxFilesPerTrigger' = '1') key sensor timestamp at;
stream both = merge a, b;
table counts = aggregate both group by sensor window tumbling (size = 60 seconds, grace = 5 seconds) emit final
  select count(*) as n;
sink counts to files (path = '${out}', format = 'parquet');
"""


class Case:
    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.plan = spark, folder, compiled(TOPOLOGY)
        self.variables = {"in": str(folder / "in"), "out": str(folder / "out")}
        self.number = 0
        for name in ("a", "b"):
            (folder / "in" / name).mkdir(parents=True)

    def read(self, source: str, *seconds: int) -> None:
        self.number += 1
        rows = [{"sensor": "s", "at": second * 1000} for second in seconds]
        write_json(self.folder / f"in/{source}/{self.number}.json", rows, self.number)

    def counts(self) -> list[int]:
        return [row["n"] for row in parquet_rows(self.folder / "out")]


@pytest.mark.seam("quiet sources")
def test_a_step_waits_for_a_source_that_lags_and_is_there_after_a_kill(spark: Any, tmp_path: Path) -> None:
    """What a run leaves that was killed when it had written a step."""
    case = Case(spark, tmp_path)
    case.read("a", 50)
    run_once(case.plan, spark, tmp_path / "ck", variables=case.variables, partitions=3)
    assert case.counts() == []
    Checkpoint.open(spark, str(tmp_path / "ck"), case.plan, None).request_quiet(65_000, ["a", "b"])
    case.read("b", 40)
    case.read("b", 58)
    reports = run_once(case.plan, spark, tmp_path / "ck", variables=case.variables)
    assert case.counts() == [3]
    assert reports[0].quieted == {"a": 65_000, "b": 65_000}
    assert not any(report.metrics.as_dict()["dropped_records"] for report in reports)
    case.read("a", 59)
    (report,) = run_once(case.plan, spark, tmp_path / "ck", variables=case.variables)
    assert report.metrics.as_dict()["dropped_records"] == {"counts": {"window_closed": 1, "after_quiet": 1}}
    assert case.counts() == [3]


def test_a_window_closes_when_its_sources_are_quiet(spark: Any, tmp_path: Path) -> None:
    case, reports = Case(spark, tmp_path), list[EpochReport]()
    case.read("a", 50)
    query = start(
        case.plan, spark, checkpoint=str(tmp_path / "ck"), variables=case.variables, partitions=2, trigger="20 ms",
        on_epoch=reports.append,
    )  # fmt: skip
    deadline = time.monotonic() + 200
    while not (reports and reports[-1].quieted) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert case.counts() == [1]
    assert reports[-1].read == {}  # an epoch for it alone
    done = len(reports)
    time.sleep(2.5)
    assert len(reports) == done  # nothing is held: nothing is asked for
    case.read("a", 58)
    while not lost(reports) and time.monotonic() < deadline:  # it waits for `b` until both are quiet again
        time.sleep(0.05)
    query.stop()
    assert lost(reports) == [{"counts": {"window_closed": 1, "after_quiet": 1}}]
    assert case.counts() == [1]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_step_that_a_killed_process_has_written_is_taken_by_the_next_run(spark: Any, tmp_path: Path) -> None:
    """A real process, killed between the write of the step and the epoch that would act on it."""
    case = Case(spark, tmp_path)
    case.read("a", 50)
    case.read("b", 40)
    (tmp_path / "topology.vdsl").write_text(TOPOLOGY)
    command = [sys.executable, "-m", "tests.runtime.spark.killing", "write:vsc/control/*-quiet.txt", "run"]
    command += [str(tmp_path / "topology.vdsl"), "--checkpoint", str(tmp_path / "ck"), "--partitions", "2"]
    command += ["--master", "local[2]", "--trigger", "100 ms", "--local-dir", str(tmp_path / "local")]
    for name, value in case.variables.items():
        command += ["--var", f"{name}={value}"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )  # fmt: skip
    status = process.wait(timeout=300)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # the JVM, too
    assert status == -signal.SIGKILL, process.communicate()[0]
    assert case.counts() == []
    reports = run_once(case.plan, spark, tmp_path / "ck", variables=case.variables)
    assert case.counts() == [2]
    (quieted,) = [report.quieted for report in reports if report.quieted]
    assert quieted.keys() == {"a", "b"}
    assert len(set(quieted.values())) == 1
    case.read("a", 58)
    reports = run_once(case.plan, spark, tmp_path / "ck", variables=case.variables)
    assert lost(reports) == [{"counts": {"window_closed": 1, "after_quiet": 1}}]
    assert case.counts() == [2]


def lost(reports: list[EpochReport]) -> list[Any]:
    return [found for report in reports if (found := report.metrics.as_dict()["dropped_records"])]
