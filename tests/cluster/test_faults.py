"""What a cluster does to a run beside killing its executors: tasks that run twice, a master that dies, executors that
come and go. The results stay exact.

``VSC_CLUSTER_FAULTS`` names those to try: ``all`` (`make thorough-long`), or a few. The gate tries none: on its
cluster an executor is killed (`test_cluster`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from servers.spark import SparkCluster
from tests.cluster.test_cluster import FILES, base, command, environment, expected, topology, written

__all__ = ["base", "topology"]  # fixtures

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

SPECULATING = {
    "spark.speculation": "true", "spark.speculation.interval": "100ms", "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.3", "spark.speculation.minTaskRuntime": "100ms",
}  # fmt: skip
COMING_AND_GOING = {
    "spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1", "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "1s",
}  # fmt: skip
DECOMMISSIONING = {"spark.decommission.enabled": "true", "spark.storage.decommission.enabled": "true"}
REFUSED = "error[VSC926]: an executor that was ending refused a task"
"""Spark ends an executor in which it kills a copy of a task that waits for its Python worker. Until it has ended, Spark
may send it another task four times, and then gives up; the same command continues."""
SECONDS_STILL = 8
SECONDS_TO_END = 120
ASKED = [fault for fault in os.environ.get("VSC_CLUSTER_FAULTS", "").split(",") if fault]


def speculation(cluster: SparkCluster) -> None:
    """The executors of a worker stand still for a while, so that their tasks are started elsewhere, too."""
    still = cluster.executors(1)
    for process in still:
        process.suspend()
    time.sleep(SECONDS_STILL)
    for process in still:
        process.resume()


def master(cluster: SparkCluster) -> None:
    """The master dies, and comes back without knowing anything."""
    cluster.kill_master()
    time.sleep(2)
    cluster.start_master()


def decommissioning(cluster: SparkCluster) -> None:
    """A worker leaves, another one comes."""
    cluster.decommission_worker(1)
    cluster.start_worker(2)


def allocation(cluster: SparkCluster) -> None:
    """What happens, Spark does by itself."""


FAULTS: dict[str, tuple[Callable[[SparkCluster], None], dict[str, str], str]] = {
    "speculation": (speculation, SPECULATING, '"Speculative":true'),
    "master": (master, {}, "SparkListenerApplicationEnd"),
    "decommissioning": (decommissioning, DECOMMISSIONING, "SparkListenerExecutorRemoved"),
    "allocation": (allocation, COMING_AND_GOING, "SparkListenerExecutorRemoved"),
}
"""What is done once the first epoch is written, the settings, and what Spark's log of events has to have in the end."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    """A master and two workers."""
    found = SparkCluster(tmp_path / "cluster", apart=True)
    try:
        found.start()
        yield found
    finally:
        found.stop()


@pytest.mark.skipif(not ASKED, reason="minutes each: make thorough-long")
@pytest.mark.parametrize("fault", FAULTS if ASKED in ([], ["all"]) else ASKED)
def test_the_results_stay_exact(fault: str, cluster: SparkCluster, topology: Path, base: Path, tmp_path: Path) -> None:
    happens, settings, seen = FAULTS[fault]
    log = tmp_path / "log"
    log.mkdir()
    settings |= {
        "spark.eventLog.enabled": "true", "spark.eventLog.dir": log.as_uri(), "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }  # fmt: skip
    words = command(cluster, topology, base, tmp_path / "out", tmp_path / "ck")
    words += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    status, said = ran(words, tmp_path, lambda: happens(cluster))
    if fault == "speculation" and status == 3 and REFUSED in said:
        status, said = ran(words, tmp_path, lambda: None)
    assert status == 0, said
    assert any(seen in path.read_text() for path in log.iterdir())
    assert "Error in TaskFailureListener" not in cluster.executor_logs()  # a state that was not left as it was
    assert written(tmp_path / "out") == expected()


@pytest.mark.skipif(ASKED != ["all"], reason="the master is asked every 30 seconds: make thorough-long")
def test_a_run_that_its_master_has_forgotten_ends(
    cluster: SparkCluster, topology: Path, base: Path, tmp_path: Path
) -> None:
    """While it has nothing to do: a task that runs as its executor ends may fail by itself."""
    shutil.copytree(base / "in", tmp_path / "in")
    last = tmp_path / f"in/sales/{FILES - 1}.json"
    content = last.read_text()
    last.unlink()
    words = command(cluster, topology, tmp_path, tmp_path / "out", tmp_path / "ck")

    def forget() -> None:
        cluster.kill_master(forgets=True)
        cluster.start_master()
        until = time.monotonic() + SECONDS_TO_END
        while cluster.executors(0) or cluster.executors(1):
            assert time.monotonic() < until
            time.sleep(0.1)
        last.write_text(content)

    going_on = [word for word in words if word != "--drain"] + ["--trigger", "1 second"]
    status, said = ran(going_on, tmp_path, forget, epochs=FILES - 1)
    assert (status, "error[VSC907]" in said, "no longer knows this run" in said) == (3, True, True), said
    assert ran(words, tmp_path, lambda: None)[0] == 0
    assert written(tmp_path / "out") == expected()


def ran(words: list[str], folder: Path, happens: Callable[[], None], epochs: int = 1) -> tuple[int, str]:
    """The exit status of a run and what it says; `happens` once so many epochs are written."""
    said: list[str] = []

    def happen() -> None:
        try:
            happens()
        except BaseException:
            process.kill()  # which would wait for ever for what did not happen
            raise

    happening = threading.Thread(target=happen)
    with subprocess.Popen(words, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            epochs -= '"event": "batch"' in line
            if happening.ident is None and epochs == 0:
                happening.start()
    if happening.ident is not None:
        happening.join()
    return process.returncode, "".join(said)
