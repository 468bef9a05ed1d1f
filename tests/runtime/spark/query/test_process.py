"""``vsc run`` as real processes: killed, restarted, stopped, with files that come later."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.operators.driving import rows
from tests.runtime.spark.support import parquet_rows, write_json
from vsc.testing import TopologyTestDriver

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

TOPOLOGY = """
stream orders (id bigint, currency string, at bigint)
from files (path = '${in}/orders', format = 'json', 'maxFilesPerTrigger' = '1') timestamp at;
table rates (currency string, rate bigint, at bigint)
from files (path = '${in}/rates', format = 'json', 'maxFilesPerTrigger' = '1')
key currency timestamp at materialize versioned (retention = 1 day);
stream priced = left join orders with rates on currency grace 20 ms select id, rate;
sink priced to files (path = '${out}', format = 'parquet', with_timestamp = true);
"""
FILES = 5


def order_file(number: int) -> list[dict[str, Any]]:
    return [{"id": number * 10 + i, "currency": "ab"[i % 2], "at": 10 * number + i} for i in range(5)]


def rate_file(number: int) -> list[dict[str, Any]]:
    return [{"currency": c, "rate": 100 * number + i, "at": 10 * number} for i, c in enumerate("ab")]


def expected(files: int, drain: bool) -> list[tuple[int, int | None]]:
    """What the test driver gives for these files, an epoch for each; (id, rate), sorted."""
    with TopologyTestDriver(TOPOLOGY, partitions=2) as driver:
        for number in range(files):
            # D12 by hand: each file's times ascend, and a rate stands in front of orders of its time.
            for row in rate_file(number):
                driver.pipe("rates", row)
            for row in order_file(number):
                driver.pipe("orders", row)
        if drain:
            driver.drain()
        return sorted((value["id"], value["rate"]) for _, value, _ in rows(driver, "priced"))


class Job:
    """The command in a folder of its own, with files that must not be taken for Python's modules, or vsc's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("profile", "types", "json", "random", "pandas", "runtime"):
            (folder / f"{name}.py").write_text("raise RuntimeError('imported from the working directory')")
        (folder / "topology.vdsl").write_text(TOPOLOGY)
        for number in range(FILES):
            self.add(number)

    def add(self, number: int) -> None:
        write_json(self.folder / f"in/orders/{number}.json", order_file(number), number)
        write_json(self.folder / f"in/rates/{number}.json", rate_file(number), number)

    def start(self, *more: str) -> subprocess.Popen[str]:
        command = [
            str(Path(sys.executable).with_name("vsc")),
            "run",
            str(self.folder / "topology.vdsl"),
            "--master",
            "local[2]",
        ]
        command += ["--checkpoint", str(self.folder / "ck"), "--partitions", "2", "--progress", "json"]
        command += ["--var", f"in={self.folder}/in", "--var", f"out={self.folder}/out"]
        command += ["--local-dir", str(self.folder / "local"), *more]
        # A group of its own, so that a kill takes the JVM with it.
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=self.folder,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )  # fmt: skip

    def finish(self, *more: str) -> tuple[int, list[dict[str, Any]]]:
        process = self.start(*more)
        out, err = process.communicate(timeout=300)
        assert out == ""
        return process.returncode, events(err)

    def epochs(self) -> int:
        return len(list((self.folder / "ck/vsc/epochs").glob("[0-9]*.json")))

    def rows(self) -> list[tuple[int, int | None]]:
        return sorted((r["id"], r["rate"]) for r in parquet_rows(self.folder / "out"))


def events(lines: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.splitlines()]


def wait_for(what: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 300
    while not what():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def wait_for_epoch(job: Job, process: subprocess.Popen[str], number: int) -> None:
    wait_for(lambda: job.epochs() >= number, process)


@pytest.mark.seam("a restart", "a kill")
def test_stopped_killed_restored_and_run_to_the_end(tmp_path: Path) -> None:
    job = Job(tmp_path)

    # SIGTERM, to the whole group as systemd sends it: the running epoch ends, then all stops.
    process = job.start()
    wait_for_epoch(job, process, 1)
    os.killpg(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "interrupted" in err.splitlines()[-1]
    shown = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert shown[-1]["event"] == "finished"
    done = shown[-1]["batches"]
    assert 0 < done < FILES
    assert (tmp_path / f"ck/commits/{done - 1}").exists()

    # kill -9 of everything, and the disk of the executors lost.
    process = job.start()
    wait_for_epoch(job, process, done + 1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert job.epochs() < FILES
    shutil.rmtree(tmp_path / "local")

    # The same command goes on, takes what is new, and drains.
    job.add(FILES)
    status, shown = job.finish("--drain")
    assert status == 0, shown
    assert job.rows() == expected(FILES + 1, drain=True)
    assert shown[-1]["event"] == "finished"
    assert shown[-1]["held"] == 0
    assert shown[-1]["batches"] <= FILES + 2 - done  # a file each, the one that came later and the drain; none twice
    assert [e["input_rows"] for e in shown[-3:-1]] == [7, 0]
    first, *quiet, drain, _ = (e["restored"] for e in shown)
    assert first > 0 and drain > 0 and quiet and not any(quiet)  # a run, and that of --drain, begin with empty disks
    assert all(e["duration_ms"] > 0 and e["state_rows"] > 0 and e["state_bytes"] > 0 for e in shown[:-1])
