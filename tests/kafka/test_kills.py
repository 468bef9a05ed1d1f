"""``vsc run`` from topics to topics, with ``kill -9`` of it and of the broker: every result is there once.

``VSC_KILLS`` times of vsc, ``VSC_BROKER_KILLS`` times of the broker.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from servers.jars import connector_jars
from servers.kafka import Broker
from vsc.runtime.spark.connectors.kafka_client import quiet

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

KILLS, BROKER_KILLS = int(os.environ.get("VSC_KILLS", "5")), int(os.environ.get("VSC_BROKER_KILLS", "2"))

TOPOLOGY = """
table rates (c string, rate bigint)
from kafka (bootstrap_servers = '${brokers}', topic = 'rates', format = 'json', 'maxOffsetsPerTrigger' = '10') key c
materialize versioned (retention = 1 day);
stream orders (id string, c string)
from kafka (bootstrap_servers = '${brokers}', topic = 'orders', format = 'json', 'maxOffsetsPerTrigger' = '10') key id;
stream priced = left join orders with rates on c select id, rate;
table counts = aggregate orders group by c select count(*) as orders;
sink priced to kafka (bootstrap_servers = '${brokers}', topic = 'priced', format = 'json');
sink counts to kafka (bootstrap_servers = '${brokers}', topic = 'counts', format = 'json');
"""
ROWS, CODES = 30 * max(3, KILLS * 2 // 3, BROKER_KILLS), "abc"


class Job:
    """The command in a folder of its own, and what it has done so far."""

    def __init__(self, folder: Path, broker: Broker) -> None:
        self.folder, self.broker = folder, broker
        (folder / "topology.vdsl").write_text(TOPOLOGY)
        settings = {"bootstrap.servers": broker.address, "group.id": "ends"}
        self._ends = Consumer({**settings, "isolation.level": "read_uncommitted"}, logger=quiet)

    def start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "vsc", "run", str(self.folder / "topology.vdsl"), "--master", "local[2]"]
        command += ["--checkpoint", str(self.folder / "ck"), "--partitions", "2", "--progress", "none"]
        command += ["--var", f"brokers={self.broker.address}", "--local-dir", str(self.folder / "local")]
        command += ["--conf", f"spark.jars={','.join(connector_jars())}"]
        # A group of its own, so that a kill takes the JVM with it.
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )  # fmt: skip

    def written(self) -> int:
        """How much there is in the output topics, of open and aborted transactions as well."""
        return sum(self._end(TopicPartition(topic, p)) for topic in ("priced", "counts") for p in range(2))

    def _end(self, place: TopicPartition) -> int:
        """Where a partition ends, as soon as a broker that was started again says so."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return int(self._ends.get_watermark_offsets(place, 10)[1])
            except KafkaException:
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def epochs(self, kind: str) -> int:
        """How many epochs Spark has begun (``offsets``) or ended (``commits``)."""
        return sum(file.name.isdigit() for file in (self.folder / "ck" / kind).glob("*"))

    def results(self) -> tuple[list[tuple[str, Any]], dict[str, list[int]]]:
        """What readers of committed records see: the priced orders, and each code's counts in their order."""
        counts: dict[str, list[int]] = {}
        for record in self.broker.read("counts"):
            counts.setdefault((record.key or b"").decode(), []).append(record.json["orders"])
        return sorted((r.json["id"], r.json["rate"]) for r in self.broker.read("priced")), counts


def expected() -> tuple[list[tuple[str, Any]], dict[str, list[int]]]:
    numbers = Counter(CODES[i % 3] for i in range(ROWS))
    counts = {code: list(range(1, n + 1)) for code, n in numbers.items()}
    return sorted((f"o{i}", i) for i in range(ROWS)), counts


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    broker = Broker(tmp_path / "broker")
    broker.start()
    try:
        for topic in ("rates", "orders", "priced", "counts"):
            broker.create(topic, 2)
        broker.write_json("rates", ((CODES[i % 3], {"rate": i}, 10 * i + 1) for i in range(ROWS)))
        broker.write_json("orders", ((f"o{i}", {"c": CODES[i % 3]}, 10 * i + 5) for i in range(ROWS)))
        yield Job(tmp_path, broker)
    finally:
        broker.stop()


def wait_until(process: subprocess.Popen[str], happened: Callable[[], bool]) -> bool:
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
        assert wait_until(process, moment(job)), process.communicate()[1]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


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


def test_vsc_is_killed(job: Job) -> None:
    for _, moment in zip(range(KILLS), cycle((wrote_more, began_more, wrote_more, ended_more, wrote_more))):
        kill_when(job, moment)
    ended(job, job.start())


def test_the_broker_is_killed(job: Job) -> None:
    """Every other time vsc is killed with it; else vsc goes on, or fails in order."""
    process = job.start()
    for number in range(BROKER_KILLS):
        if not wait_until(process, wrote_more(job)):
            process = failed_in_order(job, process)
            if not wait_until(process, wrote_more(job)):
                process = failed_in_order(job, process)
        job.broker.kill()
        job.broker.start()
        if number % 2 == 0:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            process = job.start()
    if process.wait(400) != 0:
        process = failed_in_order(job, process)
    ended(job, process)


def ended(job: Job, process: subprocess.Popen[str]) -> None:
    """Waits for the last life, which is not killed."""
    _, said = process.communicate(timeout=400)
    known_defect(job, said)
    assert process.returncode == 0, said
    assert job.results() == expected()


def failed_in_order(job: Job, process: subprocess.Popen[str]) -> subprocess.Popen[str]:
    """Looks at a life that the loss of the broker has ended, or has kept from beginning; the next life."""
    _, said = process.communicate(timeout=400)
    assert process.returncode in (1, 3), said
    known_defect(job, said)
    assert "[VSC" in said
    return job.start()


def known_defect(job: Job, said: str) -> None:
    """Ends the test where Kafka has lost the end of a transaction: then nothing may be there twice."""
    if "a transaction on the topic of its epochs has not ended" not in said:
        return
    priced, counts = job.results()
    assert len(priced) == len(set(priced))
    assert all(numbers == sorted(set(numbers)) for numbers in counts.values())
    pytest.xfail("Kafka has lost the end of a transaction: docs/connectors/kafka.md, Known defect")
