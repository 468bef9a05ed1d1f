"""What the other tests rely on: a read that follows a commit shows all of its records."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from servers.kafka import Broker
from vsc.runtime.spark.connectors.kafka.client import quiet

pytestmark = pytest.mark.spark


def test_a_read_waits_for_the_end_of_a_transaction(broker: Broker, topic: Callable[..., str]) -> None:
    name = topic()
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": name}, logger=quiet)
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(name, b"1", b"k")
    assert producer.flush(60) == 0
    late = threading.Timer(2, producer.commit_transaction)
    late.start()
    assert [r.value for r in broker.read(name)] == [b"1"]
    late.join()
