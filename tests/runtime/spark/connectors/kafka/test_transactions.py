"""Transactions alone, without Spark: a broker or the writer is killed at random moments, and each epoch is there once;
the only broker has lost the end of one, and what can be done is done, or told."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from servers.kafka import Broker
from tests.runtime.spark.connectors.kafka.batches import records
from vsc.runtime.errors import SinkError
from vsc.runtime.spark.connectors.kafka import transaction
from vsc.runtime.spark.connectors.kafka.client import quiet
from vsc.runtime.spark.connectors.kafka.epochs import EpochReader, Note, create_epochs
from vsc.runtime.spark.connectors.kafka.transaction import Transaction

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.long]

KILLS, BROKER_KILLS = int(os.environ.get("VSC_KILLS", "2")), int(os.environ.get("VSC_BROKER_KILLS", "1"))
EPOCHS_A_KILL, RECORDS = 6, 5


def write(address: str, topic: str, done: str, epochs: int) -> None:
    """The epochs that are not in `done`, as a run that knows nothing else: it begins with the one that it was in."""
    settings, name = {"bootstrap.servers": address}, f"vsc-{topic}"
    create_epochs(settings, name, 1, "the sink")
    for epoch in range(int(Path(done).read_text()), epochs):
        rows = records(*((b"k", json.dumps([epoch, i]).encode(), 1 + i) for i in range(RECORDS)))
        with Transaction(settings, topic, name, 0, "the sink", epoch) as one:
            one.begin()
            one.add(rows)
            assert one.finish().records == RECORDS
        other = Path(f"{done}.new")
        other.write_text(str(epoch + 1))
        other.replace(done)


def run(address: str, topic: str, done: str, epochs: int) -> None:
    """In a process of its own: `write`, again and again as long as the sink fails in order."""
    while True:
        try:
            return write(address, topic, done, epochs)
        except SinkError as error:
            assert "other content" not in error.message, error
            assert "older copy" not in error.message, error
            assert "has lost the end" not in error.message, error


@pytest.mark.parametrize("victim", ["writer", "broker"])
def test_each_epoch_is_written_once(
    victim: str, request: pytest.FixtureRequest, topic_names: Iterator[str], tmp_path: Path
) -> None:
    chance, kills = random.Random(victim), KILLS if victim == "writer" else BROKER_KILLS
    brokers: Broker = request.getfixturevalue("broker" if victim == "writer" else "cluster")
    topic, done, epochs = next(topic_names), tmp_path / "done", EPOCHS_A_KILL * kills
    brokers.create(topic, 2)
    done.write_text("0")
    spawned = multiprocessing.get_context("spawn")
    arguments = (brokers.address, topic, str(done), epochs)
    process = spawned.Process(target=run, args=arguments)
    process.start()
    try:
        for number in range(kills):
            reached = int(done.read_text())
            while int(done.read_text()) < min(reached + 2, epochs - 1):
                assert process.is_alive() or int(done.read_text()) == epochs
                time.sleep(0.002)
            time.sleep(chance.random() * 0.1)
            if victim == "broker":
                brokers.kill(number % 3)
                brokers.start()
            else:
                process.kill()
                process.join()
                process = spawned.Process(target=run, args=arguments)
                process.start()
        process.join(600)
        assert process.exitcode == 0
        found = [r.json for r in brokers.read(topic)]
        assert found == [[epoch, i] for epoch in range(epochs) for i in range(RECORDS)]
    finally:
        process.kill()


@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError._DESTROY_BROKER])
def test_what_a_lost_broker_did_not_answer_is_asked_again(
    code: int, broker: Broker, topic_names: Iterator[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that has left the cluster is dropped by librdkafka, with the requests that wait for its answer."""
    topic, answers = next(topic_names), [KafkaException(KafkaError(code))]
    settings, name, last = {"bootstrap.servers": broker.address}, f"vsc-{topic}", EpochReader.last

    def failing(reader: EpochReader) -> Note | None:
        if answers:
            raise answers.pop()
        return last(reader)

    monkeypatch.setattr(EpochReader, "last", failing)
    broker.create(topic, 1)
    create_epochs(settings, name, 1, "the sink")
    with Transaction(settings, topic, name, 0, "the sink", 0) as one:
        one.begin()
        one.add(records((b"k", b"1", 5)))
        assert one.finish().records == 1
    assert not answers
    assert [r.json for r in broker.read(topic)] == [1]


def test_the_end_of_a_transaction_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The partition of the notes loses what came after the note of epoch 1, as if its marker had never been written:
    the coordinator knows of nothing that is open."""
    monkeypatch.setattr(transaction, "_ENDS", 1)
    broker, notes = Broker(tmp_path / "broker"), tmp_path / "broker/data/vsc-t-0"
    settings = {"bootstrap.servers": broker.address}

    def attempt(epoch: int) -> int:
        with Transaction(settings, "t", "vsc-t", 0, "the sink", epoch) as one:
            one.begin()
            one.add(records((b"k", b"%d" % epoch, 5)))
            return one.finish().records

    try:
        broker.start()
        broker.create("t", 2)
        create_epochs(settings, "vsc-t", 1, "the sink")
        attempt(0)
        producer = Producer({**settings, "transactional.id": "vsc-t-0"}, logger=quiet)
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("vsc-t", Note(1, "x").encoded(), b"0", 0)
        assert producer.flush(60) == 0
        broker.kill()
        shutil.copytree(notes, tmp_path / "notes")
        broker.start()
        attempt(1)
        attempt(1)  # which begins when the coordinator is done with the one before
        broker.kill()
        shutil.rmtree(notes)
        shutil.copytree(tmp_path / "notes", notes)
        broker.start()
        with pytest.raises(SinkError, match="it is not known whether epoch 1 is written") as caught:
            attempt(1)
        command = f"kafka-transactions.sh --bootstrap-server {broker.address} abort --topic vsc-t --partition 0"
        assert f"{command} --start-offset 2, and" in (caught.value.help or "")
        assert attempt(2) == 1  # Spark knows that epoch 1 is written
        assert [r.value for r in broker.read("t")] == [b"0", b"1", b"2"]
        assert [r.json["epoch"] for r in broker.read("vsc-t")] == [0, 1, 1, 2]
    finally:
        broker.stop()
