"""`vsc upgrade` that is killed, again and again; and two upgrades of one checkpoint.

Killed as a process (``kill -9``) at the first point, at the last by an exception that nothing catches, in the session
of the tests. With ``VSC_KILLS`` set, a process is killed at every point.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.runtime.spark.killing import killing
from tests.runtime.spark.support import compiled, parquet_rows, run_once
from tools.kept_checkpoint import FILES, TOPOLOGY, half_run
from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.checkpoint.identity import IDENTITY
from vsc.runtime.spark.upgrade import Upgrade, prepare, upgrade

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.long]

POINTS = (
    "rename:vsc/control/seed-000000.txt",  # the seeds of some partitions are in their place, others not yet
    "write:vsc/control/seed-common.txt",  # the first seeds are there
    "write:vsc/plan.json",  # all is there but what makes it a checkpoint
)
LAST = f"write:{IDENTITY}"  # it is a checkpoint
EVERY = "VSC_KILLS" in os.environ
TRIED = (*POINTS, LAST) if EVERY else (POINTS[0], LAST)


class Killed(BaseException):
    """The end of an upgrade, as a signal would end it: nothing takes note of it."""


def execute(folder: Path, variables: dict[str, str], *how: str) -> tuple[int, str]:
    """The command; its exit status and what it says. No process of it is left."""
    command = [sys.executable, "-m", *how, "upgrade", "new.vdsl", "--from", "ck", "--checkpoint", "new"]
    command += ["--partitions", "3", "--master", "local[2]", *(f"--var={k}={v}" for k, v in variables.items())]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    _, err = process.communicate(timeout=200)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # the JVM goes with it
        while some_run(process.pid):
            time.sleep(0.05)
    return process.returncode, err


def some_run(group: int) -> bool:
    """Whether a process of the group still runs; one that has ended may be listed for ever."""
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                return True
    return False


def killed_here(job: Upgrade, spark: SparkSession, point: str) -> None:
    """Upgrades in this session, and is killed at the point."""

    def kill() -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Files, *killing(point, kill))
        upgrade(prepare(job), spark, lambda _: None)


def rows(folder: Path, name: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in parquet_rows(folder / name))


def test_killed_and_repeated_and_two_from_one(spark: SparkSession, tmp_path: Path) -> None:
    new = compiled(TOPOLOGY)
    variables = half_run(spark, tmp_path)
    (tmp_path / "new.vdsl").write_text(TOPOLOGY)
    other = Upgrade(new, str(tmp_path / "ck"), str(tmp_path / "other"), variables)
    assert upgrade(prepare(other), spark, lambda _: None) is not None

    job = replace(other, new=str(tmp_path / "new"), partitions=3)
    for point in TRIED:
        if EVERY or point != LAST:
            status, err = execute(tmp_path, variables, "tests.runtime.spark.killing", point)
            assert status == -signal.SIGKILL, err
        else:
            killed_here(job, spark, point)
        assert (tmp_path / "new" / IDENTITY).exists() is (point == LAST)
        if point != LAST:
            with pytest.raises(CheckpointError, match="was not finished"):
                run_once(new, spark, tmp_path / "new", variables=variables)
    status, err = execute(tmp_path, variables, "vsc")  # without a JVM
    assert (status, "is a checkpoint already" in err) == (1, True), err

    # Two checkpoints go on from the old one: until one has written to a sink, any of the three may be run.
    reports = run_once(new, spark, tmp_path / "new", variables=variables)
    assert sum(report.read["orders"] for report in reports) == 12 * (FILES - 2)
    whole = {**variables, "out": str(tmp_path / "whole")}
    run_once(new, spark, tmp_path / "one", variables=whole, partitions=3)
    for name in ("priced", "closed", "once"):
        assert rows(tmp_path / "out", name) == rows(tmp_path / "whole", name), name
    with pytest.raises(CheckpointError, match=r"ck was upgraded to .*/new as well, which has written"):
        run_once(new, spark, tmp_path / "other", variables=variables)
    with pytest.raises(CheckpointError, match=r"ck was upgraded to .*/new, and that has written"):
        run_once(new, spark, tmp_path / "ck", variables=variables)
    with pytest.raises(CheckpointError, match=r"ck was upgraded to .*/new, and that has written"):
        prepare(Upgrade(new, other.old, str(tmp_path / "fourth"), variables))
