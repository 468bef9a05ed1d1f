"""``vsc run`` with PostgreSQL as real processes: the server killed under it, then killed itself; no secret shown.

The last life, which nothing ends, is in the session of the tests.
"""

from __future__ import annotations

import json
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

from servers.postgres import PostgresServer
from tests.runtime.spark.support import compiled, run_once, write_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.long]

TOPOLOGY = """
stream orders (id bigint, currency string, at bigint)
from files (path = '${in}/orders', format = 'json', 'maxFilesPerTrigger' = '1') timestamp at;
table totals = aggregate orders group by currency select count(*) as n, sum(id) as ids;
sink orders to jdbc (url = '${url}', table = 'orders', create = true, 'user' = 'vsc', 'password' = '${pw}');
sink totals to jdbc (url = '${url}?user=vsc&password=${pw}', table = 'totals', create = true);
sink orders to files (path = '${out}', format = 'json');
sink dropped to files (path = '${dropped}', format = 'json');
"""
KILLS = int(os.environ.get("VSC_KILLS", "1"))
FILES, ROWS = 3 * (KILLS + 1) + 1, 50
TAKEN = ROWS - 1
"""Of a file's orders the database refuses one; besides, each has a row without time."""


class Job:
    """The command in a folder of its own."""

    def __init__(self, folder: Path, server: PostgresServer) -> None:
        self.folder, self.server = folder, server
        (folder / "topology.vdsl").write_text(TOPOLOGY)
        for number in range(FILES):
            rows = [{"id": number * ROWS + i, "currency": "abc"[i % 3], "at": number * ROWS + i} for i in range(ROWS)]
            write_json(folder / f"in/orders/{number}.json", [*rows, {"id": number, "currency": "a"}], number)
        server.query(f"create table orders (id bigint check (id % {ROWS} <> 7), currency text, at bigint)")

    def start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "vsc", "run", str(self.folder / "topology.vdsl"), "--master", "local[2]"]
        command += ["--checkpoint", str(self.folder / "ck"), "--partitions", "2", "--progress", "json"]
        command += [word for name, value in self.variables.items() for word in ("--var", f"{name}={value}")]
        command += ["--local-dir", str(self.folder / "local")]
        # A group of its own, so that a kill takes the JVM with it.
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "pw": self.server.password},
        )  # fmt: skip

    @property
    def variables(self) -> dict[str, str]:
        folders = {name: str(self.folder / name) for name in ("in", "out", "dropped")}
        return {**folders, "url": self.server.url()}

    def finish(self, spark: SparkSession) -> None:
        variables = {**self.variables, "pw": self.server.password}
        run_once(compiled(TOPOLOGY), spark, self.folder / "ck", variables=variables)

    def stored(self) -> int:
        """How many orders the database holds."""
        with self.server.connect() as connection:
            [there] = connection.execute("select to_regclass('orders') is not null").fetchone() or [False]
            [count] = connection.execute("select count(*) from orders").fetchone() or [0] if there else [0]
        return int(count)

    def check(self) -> None:
        """Everything is there once, in both systems."""
        every = [(i,) for i in range(FILES * ROWS)]
        refused = [(i,) for i in range(7, FILES * ROWS, ROWS)]
        assert self.server.query("select id from orders order by 1") == [one for one in every if one not in refused]
        dropped = [line for path in (self.folder / "dropped").glob("*.json") for line in path.read_text().splitlines()]
        lost = sorted((row["reason"], json.loads(row["value"])["id"]) for row in map(json.loads, dropped))
        assert lost == [*(("null_timestamp", i) for i in range(FILES)), *(("refused", i) for (i,) in refused)]
        lines = [line for path in (self.folder / "out").glob("*.json") for line in path.read_text().splitlines()]
        assert len(lines) == len(set(lines)) == FILES * ROWS
        totals = {c: [n for n in range(FILES * ROWS) if "abc"[n % ROWS % 3] == c] for c in "abc"}
        expected = [(c, len(ids), sum(ids)) for c, ids in totals.items()]
        assert self.server.query("select currency, n, ids from totals order by 1") == expected
        assert self.server.query("select relname from pg_class where relname like 'vsc_stage%%'") == []


def wait_for(what: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 200
    while not what():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.timeout(600 + 60 * KILLS)
def test_the_server_dies_and_then_the_run_in_the_middle_of_an_epoch(
    tmp_path: Path, server: PostgresServer, spark: SparkSession
) -> None:
    """The run ``VSC_KILLS`` times. As soon as the first sink has an epoch that the second and Spark may not have; or
    later."""
    job, chance = Job(tmp_path, server), random.Random(12)
    err = server_died(job)
    for kill in range(KILLS):
        process, before = job.start(), job.stored()
        wait_for(lambda least=before + TAKEN: job.stored() >= least, process)  # type: ignore[misc]
        time.sleep(chance.random() if kill else 0)
        os.killpg(process.pid, signal.SIGKILL)
        err += "".join(process.communicate())
    assert job.stored() < FILES * TAKEN
    job.finish(spark)
    job.check()
    assert secrets_of(job, err) == []


def server_died(job: Job) -> str:
    """A life whose server is killed and started again; what it says."""
    process = job.start()
    wait_for(lambda: job.stored() >= TAKEN, process)
    job.server.crash()
    try:
        out, err = process.communicate(timeout=200)
    finally:
        job.server.start()
    assert (process.returncode, out) == (3, ""), err
    assert "VSC918" in err and "Traceback" not in err
    return err


def secrets_of(job: Job, shown: str) -> list[str]:
    """Where the password shows: in what was shown, in any file of the run, in the server's tables."""
    secret = job.server.password
    found = ["the output"] if secret in shown else []
    for path in job.folder.rglob("*"):
        if path.is_file() and secret.encode() in path.read_bytes():
            found.append(str(path))
    return found
