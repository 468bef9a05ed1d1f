"""``vsc run`` with both lake formats as a real process that is killed at once, and goes on in the session of the tests:
every row is in the tables once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.runtime.spark.support import compiled, run_once, write_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

TOPOLOGY = """
stream orders (id bigint, currency string, at bigint)
from files (path = '${in}', format = 'json', 'maxFilesPerTrigger' = '1') timestamp at;
table totals = aggregate orders group by currency select count(*) as n, sum(id) as ids;
sink orders to delta (path = '${out}/orders', create = true);
sink totals to iceberg (path = '${out}/totals', create = true);
"""
KILLS = int(os.environ.get("VSC_KILLS", "1"))
FILES, ROWS = 2 * KILLS + 2, 50


def commits(table: Path) -> int:
    """How often the table has been written."""
    return len(list((table / "_delta_log").glob("*.json")))


def wait_for(what: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 200
    while not what():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.timeout(900 + 60 * KILLS)
def test_killed_in_the_middle_of_an_epoch(tmp_path: Path, lakes: SparkSession) -> None:
    """``VSC_KILLS`` times: as soon as one table has an epoch that the other and Spark may not have, or later."""
    (tmp_path / "topology.vdsl").write_text(TOPOLOGY)
    for number in range(FILES):
        rows = [{"id": number * ROWS + i, "currency": "abc"[i % 3], "at": number * ROWS + i} for i in range(ROWS)]
        write_json(tmp_path / f"in/{number}.json", rows, number)
    command = [sys.executable, "-m", "vsc", "run", str(tmp_path / "topology.vdsl"), "--master", "local[2]"]
    command += ["--checkpoint", str(tmp_path / "ck"), "--partitions", "2", "--progress", "json"]
    command += ["--var", f"in={tmp_path}/in", "--var", f"out={tmp_path}/out", "--local-dir", str(tmp_path / "local")]

    def started() -> subprocess.Popen[str]:
        # A group of its own, so that a kill takes the JVM with it.
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )  # fmt: skip

    chance = random.Random(13)
    for kill in range(KILLS):
        process, before = started(), commits(tmp_path / "out/orders")
        wait_for(lambda least=before + 2: commits(tmp_path / "out/orders") >= least, process)  # type: ignore[misc]
        time.sleep(chance.random() if kill else 0)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert commits(tmp_path / "out/orders") < FILES + 1
    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    run_once(compiled(TOPOLOGY), lakes, tmp_path / "ck", variables=variables)

    read = lakes.read
    ids = [row.id for row in read.format("delta").load(str(tmp_path / "out/orders")).select("id").collect()]
    assert sorted(ids) == list(range(FILES * ROWS))
    every = {c: [n for n in range(FILES * ROWS) if "abc"[n % ROWS % 3] == c] for c in "abc"}
    expected = {(c, len(ids), sum(ids)) for c, ids in every.items()}
    found = read.format("iceberg").load(str(tmp_path / "out/totals")).select("currency", "n", "ids").collect()
    assert len(found) == 3
    assert {tuple(row) for row in found} == expected
