"""``vsc run`` from topics to topics, with ``kill -9`` of it and of brokers of a cluster: every result is there once.
The last life, which is not killed, is in the session of the tests.

``VSC_KILLS`` times of vsc, ``VSC_BROKER_KILLS`` times of a broker, each in its turn. (What the loss of the only broker
may mean is in ``test_transactions``.)
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from servers.jars import connector_jars
from servers.kafka import Broker
from tests.runtime.spark.support import compiled, run_once
from vsc.runtime.spark.connectors.kafka.client import quiet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600), pytest.mark.long]

KILLS, BROKER_KILLS = int(os.environ.get("VSC_KILLS", "1")), int(os.environ.get("VSC_BROKER_KILLS", "1"))

TOPOLOGY = """
table rates (c string, rate bigint)
from kafka (bootstrap_servers = '${brokers}', topic = '${rates}', format = 'json', 'maxOffsetsPerTrigger' = '10') key c
materialize versioned (retention = 1 day);
stream orders (id string, c string)
from kafka (bootstrap_servers = '${brokers}', topic = '${orders}', format = 'json', 'maxOffsetsPerTrigger' = '10')
key id;
stream priced = left join orders with rates on c select id, rate;
table counts = aggregate orders group by c select count(*) as orders;
sink priced to kafka (bootstrap_servers = '${brokers}', topic = '${priced}', format = 'json');
sink counts to kafka (bootstrap_servers = '${brokers}', topic = '${counts}', format = 'json');
"""
ROWS, FED, CODES = 20 * (KILLS + 1), 10, "abc"


class Job:
    """The command in a folder of its own, with topics of its own, and what it has done so far."""

    def __init__(self, folder: Path, broker: Broker, topics: dict[str, str], rows: int) -> None:
        self.folder, self.broker, self.topics, self.rows, self._fed = folder, broker, topics, rows, 0
        self._log = folder / "log"
        (folder / "topology.vdsl").write_text(TOPOLOGY)
        for topic in topics.values():
            broker.create(topic, 2)
        broker.write_json(topics["rates"], ((CODES[i % 3], {"rate": i}, 10 * i + 1) for i in range(rows)))
        self._ends = self._consumer()

    def feed(self, count: int) -> None:
        """Writes so many more orders."""
        numbers = range(self._fed, self._fed + count)
        self.broker.write_json(self.topics["orders"], ((f"o{i}", {"c": CODES[i % 3]}, 10 * i + 5) for i in numbers))
        self._fed += count

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "vsc", "run", str(self.folder / "topology.vdsl"), "--master", "local[2]"]
        command += ["--checkpoint", str(self.folder / "ck"), "--partitions", "2", "--progress", "none", *options]
        for name, value in self.variables.items():
            command += ["--var", f"{name}={value}"]
        command += ["--local-dir", str(self.folder / "local")]
        command += ["--conf", f"spark.jars={','.join(connector_jars())}"]
        with self._log.open("w") as log:  # not a pipe, which would fill while nobody reads
            # A group of its own, so that a kill takes the JVM with it.
            return subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            )  # fmt: skip

    @property
    def variables(self) -> dict[str, str]:
        return {"brokers": self.broker.address, **self.topics}

    def said(self) -> str:
        """What the last life has printed."""
        return self._log.read_text()

    def written(self) -> int:
        """How much there is in the output topics, of open and aborted transactions as well."""
        return sum(self._end(TopicPartition(self.topics[t], p)) for t in ("priced", "counts") for p in range(2))

    def _end(self, place: TopicPartition) -> int:
        """Where a partition ends, as soon as a broker that was started again says so."""
        deadline = time.monotonic() + 200
        while True:
            try:
                return int(self._ends.get_watermark_offsets(place, 10)[1])
            except KafkaException:
                assert time.monotonic() < deadline
                time.sleep(0.05)
                self._ends.close()
                self._ends = self._consumer()  # the old one may believe a broker that knew of no topic yet

    def _consumer(self) -> Consumer:
        settings = {"bootstrap.servers": self.broker.address, "group.id": "ends"}
        return Consumer({**settings, "isolation.level": "read_uncommitted"}, logger=quiet)

    def epochs(self, kind: str) -> int:
        """How many epochs Spark has begun (``offsets``) or ended (``commits``)."""
        return sum(file.name.isdigit() for file in (self.folder / "ck" / kind).glob("*"))

    def results(self) -> tuple[list[tuple[str, Any]], dict[str, list[int]]]:
        """What readers of committed records see: the priced orders, and each code's counts in their order."""
        counts: dict[str, list[int]] = {}
        for record in self.broker.read(self.topics["counts"]):
            counts.setdefault((record.key or b"").decode(), []).append(record.json["orders"])
        return sorted((r.json["id"], r.json["rate"]) for r in self.broker.read(self.topics["priced"])), counts


def expected(rows: int) -> tuple[list[tuple[str, Any]], dict[str, list[int]]]:
    numbers = Counter(CODES[i % 3] for i in range(rows))
    counts = {code: list(range(1, n + 1)) for code, n in numbers.items()}
    return sorted((f"o{i}", i) for i in range(rows)), counts


Jobs = Callable[[Broker, int], Job]


@pytest.fixture
def job(tmp_path: Path, topic_names: Iterator[str]) -> Jobs:
    """Makes a job of so many orders, with topics that no other test has."""
    names = ("rates", "orders", "priced", "counts")
    return lambda broker, rows: Job(tmp_path, broker, {name: next(topic_names) for name in names}, rows)


def wait_until(process: subprocess.Popen[bytes], happened: Callable[[], bool]) -> bool:
    """Whether it happened before the process ended."""
    deadline = time.monotonic() + 400
    while not happened():
        if process.poll() is not None:
            return False
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return True


def kill_when(job: Job, moment: Callable[[Job], Callable[[], bool]]) -> None:
    """Starts a life, and kills it as soon as something happened in it."""
    process = job.start()
    try:
        assert wait_until(process, moment(job)), job.said()
    finally:
        end(process)


def wrote_more(job: Job) -> Callable[[], bool]:
    """The sink has appended something: its transaction is open, or committed while Spark does not know."""
    before = job.written()
    return lambda: job.written() > before


def began_more(job: Job) -> Callable[[], bool]:
    before = job.epochs("offsets")
    return lambda: job.epochs("offsets") > before


def ended_more(job: Job) -> Callable[[], bool]:
    before = job.epochs("commits")
    return lambda: job.epochs("commits") > before + 1


def test_vsc_is_killed(job: Jobs, broker: Broker, spark: SparkSession) -> None:
    killed = job(broker, ROWS)
    killed.feed(ROWS)
    for _, moment in zip(range(KILLS), cycle((wrote_more, began_more, wrote_more, ended_more, wrote_more))):
        kill_when(killed, moment)
    ended(killed, spark)


def test_a_broker_is_killed(job: Jobs, cluster: Broker, spark: SparkSession) -> None:
    """While vsc writes. Every other time it is killed as well; else it goes on."""
    going = job(cluster, FED * (BROKER_KILLS + 1))
    process = going.start("--trigger", "1 second")
    try:
        for number in range(BROKER_KILLS):
            writes_more(going, process)
            cluster.kill(number % 3)
            if number % 2 == 1:
                end(process)
                process = going.start("--trigger", "1 second")
            cluster.start()
        writes_more(going, process)
    finally:
        end(process)
    ended(going, spark)


def writes_more(job: Job, process: subprocess.Popen[bytes]) -> None:
    wrote = wrote_more(job)
    job.feed(FED)
    assert wait_until(process, wrote), job.said()


def end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def ended(job: Job, spark: SparkSession) -> None:
    """The last life, which is not killed."""
    run_once(compiled(TOPOLOGY), spark, job.folder / "ck", variables=job.variables)
    assert job.results() == expected(job.rows)
