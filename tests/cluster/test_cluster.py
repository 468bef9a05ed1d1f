"""``vsc run`` on a standalone cluster of two workers, one of which has some folders as a disk of its own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from servers.spark import SparkCluster, may_hide

pytestmark = [pytest.mark.spark, pytest.mark.slow]

needs_disks = pytest.mark.skipif(not may_hide(), reason="no process may have a mount namespace of its own here")
HOUR = 3_600_000
TOPOLOGY = """
topology sales;
table rates (currency string, rate double, at bigint) from files (path = '${in}/rates', format = 'json')
  key currency timestamp timestamp_millis(at) materialize versioned (retention = 1 day);
stream sales (shop string, currency string, amount double, at bigint)
  from files (path = '${in}/sales', format = 'json', 'maxFilesPerTrigger' = '1') timestamp timestamp_millis(at);
stream priced = join sales with rates on currency grace 30 minutes select amount * rate as price, shop;
table hourly = aggregate priced group by shop window tumbling (size = 1 hour) emit final
  select count(*) as n, sum(price) as total;
sink hourly to files (path = '${out}', format = 'parquet');
"""
FILES, ROWS = 4, 100
STARTS = """
import json, sys
import vsc
from pyspark.sql import SparkSession
from vsc.runtime.errors import VscRuntimeError
spark = SparkSession.builder.master(sys.argv[1]).config("spark.executor.memory", "512m").getOrCreate()
plan = vsc.compile(sys.argv[2])
for one in json.loads(sys.argv[3]):
    try:
        vsc.start(plan, spark, checkpoint=one.pop("checkpoint"), variables=one)
    except VscRuntimeError as error:
        print(type(error).__name__, error.message)
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the folders are."""
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def hidden(base: Path) -> Path:
    """The folder that worker 1 has as a disk of its own, where that can be."""
    return base / "hidden"


@pytest.fixture(scope="module")
def bare(base: Path) -> Path:
    """The programs of an environment whose Python has nothing installed."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", base / "bare"], check=True)
    return base / "bare/bin"


@pytest.fixture(scope="module")
def cluster(base: Path, hidden: Path, bare: Path) -> Iterator[SparkCluster]:
    """A master and two workers, which find the bare Python before others."""
    found = SparkCluster(base / "cluster", own={1: [hidden]} if may_hide() else None, programs=bare)
    try:
        found.start()
        yield found
    finally:
        found.stop()


@pytest.fixture(scope="module")
def topology(base: Path) -> Path:
    """Sales of some hours in files, and rates that change every two."""
    (base / "sales.vdsl").write_text(TOPOLOGY)
    for name in ("rates", "sales"):
        (base / "in" / name).mkdir(parents=True)
    rates = [{"currency": c, "rate": rate_of(c, at), "at": at} for at in range(0, 8 * HOUR, 2 * HOUR) for c in "abc"]
    write(base / "in/rates/0.json", rates)
    for number in range(FILES):
        write(base / f"in/sales/{number}.json", sales_of(number))
        os.utime(base / f"in/sales/{number}.json", (number, number))  # Spark reads files by their age, in ms
    return base / "sales.vdsl"


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def rate_of(currency: str, at: int) -> float:
    return "abc".index(currency) + 1 + min(at // (2 * HOUR), 3) / 4


def sales_of(number: int) -> list[dict[str, Any]]:
    return [
        {
            "shop": f"shop {i % 7}",
            "currency": "abc"[i % 3],
            "amount": float(i),
            "at": number * HOUR + i * HOUR // ROWS,
        }
        for i in range(ROWS)
    ]


def expected(files: int = FILES) -> dict[tuple[str, int], tuple[int, float]]:
    """By shop and hour: how many sales, and their sum."""
    found: dict[tuple[str, int], tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for number in range(files):
        for row in sales_of(number):
            key = row["shop"], row["at"] // HOUR
            n, total = found[key]
            found[key] = n + 1, total + row["amount"] * rate_of(row["currency"], row["at"])
    return dict(found)


def written(out: Path) -> dict[tuple[str, int], tuple[int, float]]:
    rows = [row for file in sorted(out.glob("part-*")) for row in pq.read_table(file).to_pylist()]
    found = {(r["shop"], int(r["window_start"].timestamp()) // 3600): (r["n"], r["total"]) for r in rows}
    assert len(found) == len(rows)
    return found


def command(cluster: SparkCluster, topology: Path, base: Path, out: Path, checkpoint: Path) -> list[str]:
    return [
        sys.executable, "-m", "vsc", "run", str(topology), "--master", cluster.url, "--checkpoint", str(checkpoint),
        "--partitions", "3", "--drain", "--progress", "json", "--var", f"in={base / 'in'}", "--var", f"out={out}",
        "--conf", "spark.executor.memory=512m", "--conf", "spark.ui.enabled=false",
    ]  # fmt: skip


def until(reached: Callable[[], bool], process: subprocess.Popen[Any]) -> None:
    """Waits; the process has to be there still."""
    while not reached():
        assert process.poll() is None
        time.sleep(0.2)


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def events(said: str) -> list[dict[str, Any]]:
    """The events of batches, and of the end."""
    found = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return [event for event in found if event["event"] in ("batch", "finished")]


def refused_beside(words: list[str], base: Path) -> str:
    """What a second driver says to the same checkpoint, and does not wait for Spark to say."""
    began = time.monotonic()
    done = subprocess.run(words, cwd=base, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and time.monotonic() - began < 20
    return done.stderr


@pytest.mark.seam("a standalone cluster")
def test_executors_with_a_packed_environment_one_of_which_is_killed(
    cluster: SparkCluster, topology: Path, base: Path, bare: Path
) -> None:
    """Their own Python is bare, so that they use what ``vsc pack`` has packed; the results do not change."""
    assert subprocess.run([bare / "python", "-c", "import numpy"], capture_output=True, check=False).returncode == 1
    packed, env = [sys.executable, "-m", "vsc", "pack", str(topology)], environment()
    subprocess.run(packed, cwd=base, env=env, capture_output=True, check=True)
    words = [*command(cluster, topology, base, base / "out", base / "ck"), "--archives", "env.tar.gz#env"]
    env["PYSPARK_PYTHON"] = "./env/bin/python"
    killed = False
    with subprocess.Popen(words, cwd=base, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if not killed and '"event": "batch"' in line:
                second = refused_beside(words, base)
                assert f"the checkpoint {base / 'ck'} is in use by another query: process {process.pid} on" in second
                cluster.kill_executor(0)
                killed = True
    assert process.returncode == 0, "".join(said)
    assert killed
    *batches, drain, finished = events("".join(said))
    assert batches[0]["restored"] == 0 and any(event["restored"] for event in batches[1:])
    assert 0 < drain["restored"] <= drain["partitions"]  # a run of its own
    assert finished["restored"] == sum(event["restored"] for event in (*batches, drain))
    assert written(base / "out") == expected()


def test_an_executor_that_no_worker_has_room_for_is_refused(cluster: SparkCluster, topology: Path, base: Path) -> None:
    words = command(cluster, topology, base, base / "out-none", base / "ck-none")
    words[words.index("spark.executor.memory=512m")] = "spark.executor.memory=8g"
    done = subprocess.run(words, cwd=base, env=environment(), capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 1
    assert (
        f"{cluster.url} has no room for an executor: an executor takes 8192 MiB (spark.executor.memory)" in done.stderr
    )
    assert not list((base / "out-none").glob("*"))


@needs_disks
def test_the_doctor_asks_each_executor(cluster: SparkCluster, topology: Path, base: Path, hidden: Path) -> None:
    def report(out: Path, checkpoint: Path) -> tuple[int, list[tuple[str, str, str]]]:
        asked = command(cluster, topology, base, out, checkpoint)
        asked[asked.index("run")] = "doctor"
        for option in ("--partitions", "--progress"):
            del asked[asked.index(option) : asked.index(option) + 2]
        asked[asked.index("--drain")] = "--format=json"
        done = subprocess.run(
            asked, cwd=base, env=environment() | {"PYSPARK_PYTHON": sys.executable},
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert done.stderr == ""
        return done.returncode, [(one["name"], one["status"], one["found"]) for one in json.loads(done.stdout)]

    status, found = report(base / "doctor/out", base / "doctor/ck")
    assert (status, {status for _, status, _ in found}) == (0, {"ok"})
    assert [name for name, _, _ in found if name.startswith(("executor ", "so", "si", "st"))] == [
        *[f"executor {socket.gethostname()}"] * 2, "storage", "source rates", "source sales", "sink of hourly (line 10)"
    ]  # fmt: skip
    status, found = report(hidden / "out", hidden / "ck")
    wrong = [text for _, status, text in found if status == "bad"]
    assert status == 1 and len(wrong) == 2 and all("/work-1/" in text for text in wrong)
    assert wrong[0].startswith(f"the checkpoint ({hidden}/ck) is not shared: ")
    assert wrong[1].startswith(f"the sink of 'hourly' ({hidden}/out) is not shared: ")
    assert not (base / "doctor").exists() and not list(hidden.glob("*"))
    assert not [path for path in cluster.disk_of(1, hidden).rglob("*") if path.is_file()]


@needs_disks
def test_paths_that_are_not_shared_are_refused(cluster: SparkCluster, topology: Path, base: Path, hidden: Path) -> None:
    for name in ("rates", "sales"):
        (hidden / "in" / name).mkdir(parents=True)
        write(hidden / "in" / name / "0.json", sales_of(0) if name == "sales" else [])
    shared = {"checkpoint": base / "ck-refused", "out": base / "out-refused", "in": base / "in"}
    tried = [shared | {name: hidden / name} for name in ("checkpoint", "out", "in")]
    done = subprocess.run(
        [sys.executable, "-c", STARTS, cluster.url, str(topology), json.dumps(tried, default=str)],
        cwd=base, env=environment() | {"PYSPARK_PYTHON": sys.executable},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 3 and all("the executor on " in line and "/work-1/" in line for line in said)
    assert said[0].startswith(f"CheckpointError the checkpoint ({hidden}/checkpoint) is not shared: ")
    assert said[1].startswith(f"SinkError the sink of 'hourly' ({hidden}/out) is not shared: ")
    assert said[2].startswith(f"SourceError the source 'rates' ({hidden}/in/rates) is not shared: ")
    assert not list(shared["out"].glob("*")) and not list(cluster.disk_of(1, hidden).rglob("*"))


@needs_disks
def test_an_executor_that_joins_later_is_asked_before_an_epoch_is_written(tmp_path: Path, topology: Path) -> None:
    given, hidden = tmp_path / "in", tmp_path / "hidden"
    late = SparkCluster(tmp_path / "cluster", workers=1, own={1: [hidden]})
    for folder in (hidden, given / "sales"):
        folder.mkdir(parents=True)
    shutil.copytree(topology.parent / "in/rates", given / "rates")
    write(given / "sales/0.json", sales_of(0))
    words = command(late, topology, tmp_path, hidden / "out", tmp_path / "ck")
    words[words.index("--drain")] = "--trigger=1 second"
    log = tmp_path / "log"
    try:
        late.start()
        with log.open("w") as said, subprocess.Popen(words, cwd=tmp_path, env=environment(), stderr=said) as process:
            until(lambda: '"event": "batch"' in log.read_text(), process)
            late.start_worker(1)
            number = 0
            while process.poll() is None:  # it joins in some epoch
                number += 1
                write(given / f"sales/{number:03}.json", sales_of(number))
                time.sleep(2)
        assert process.returncode == 3, log.read_text()
        assert f"the sink of 'hourly' ({hidden / 'out'}) is not shared: " in log.read_text()
        assert written(hidden / "out").items() <= expected(number + 1).items()
    finally:
        late.stop()
