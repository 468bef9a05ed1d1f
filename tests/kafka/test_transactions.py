"""Transactions alone, without Spark, while the broker or the writer is killed at random moments: each epoch once."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import time
from pathlib import Path

import pytest

from servers.kafka import Broker
from tests.kafka.batches import records
from vsc.runtime.errors import SinkError
from vsc.runtime.spark.connectors.kafka_epochs import create_epochs
from vsc.runtime.spark.connectors.kafka_transaction import Transaction

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

KILLS, BROKER_KILLS = int(os.environ.get("VSC_KILLS", "4")), int(os.environ.get("VSC_BROKER_KILLS", "2"))
EPOCHS_A_KILL, RECORDS = 6, 5


def write(address: str, done: str, epochs: int) -> None:
    """The epochs that are not in `done`, as a run that knows nothing else: it begins with the one that it was in."""
    settings = {"bootstrap.servers": address}
    create_epochs(settings, "vsc-t", 1, "the sink")
    for epoch in range(int(Path(done).read_text()), epochs):
        rows = records(*((b"k", json.dumps([epoch, i]).encode(), 1 + i) for i in range(RECORDS)))
        with Transaction(settings, "t", "vsc-t", 0, "the sink", epoch) as one:
            one.begin()
            one.add(rows)
            assert one.finish().records == RECORDS
        other = Path(f"{done}.new")
        other.write_text(str(epoch + 1))
        other.replace(done)


def run(address: str, done: str, epochs: int) -> None:
    """In a process of its own: `write`, again and again as long as the sink fails in order."""
    while True:
        try:
            return write(address, done, epochs)
        except SinkError as error:
            assert "other content" not in error.message, error
            assert "older copy" not in error.message, error


@pytest.fixture
def broker(tmp_path: Path) -> Broker:  # not the one that all tests share
    found = Broker(tmp_path / "broker")
    found.start()
    found.create("t", 2)
    return found


@pytest.mark.parametrize("victim", ["writer", "broker"])
def test_each_epoch_is_written_once(victim: str, broker: Broker, tmp_path: Path) -> None:
    chance, kills = random.Random(victim), KILLS if victim == "writer" else BROKER_KILLS
    done, epochs = tmp_path / "done", EPOCHS_A_KILL * kills
    done.write_text("0")
    spawned = multiprocessing.get_context("spawn")
    arguments = (broker.address, str(done), epochs)
    process = spawned.Process(target=run, args=arguments)
    process.start()
    try:
        for _ in range(kills):
            reached = int(done.read_text())
            while int(done.read_text()) < min(reached + 2, epochs - 1):
                assert process.is_alive()
                time.sleep(0.002)
            time.sleep(chance.random() * 0.1)
            if victim == "broker":
                broker.kill()
                broker.start()
            else:
                process.kill()
                process.join()
                process = spawned.Process(target=run, args=arguments)
                process.start()
        process.join(600)
        assert process.exitcode == 0
        found = [r.json for r in broker.read("t")]
        assert found == [[epoch, i] for epoch in range(epochs) for i in range(RECORDS)]
    finally:
        process.kill()
        broker.stop()
