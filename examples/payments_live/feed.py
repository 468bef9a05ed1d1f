"""Publishes a story: its records go to Kafka when their time has come."""

from __future__ import annotations

import time
from collections.abc import Sequence

from confluent_kafka import KafkaError, Message, Producer

from examples.payments_live.story import PAYMENTS, Sent
from servers.kafka import Broker
from vsc.runtime.spark.connectors.kafka.client import quiet

__all__ = ["Feed"]

_SECONDS = 30


class Feed:
    """Publishes `records`, the first one at once, and from there on `speed` ms of event time in each ms.

    `publish_due` has to be called often; what it publishes is stamped with event time.
    """

    def __init__(self, broker: Broker, records: Sequence[Sent], speed: float) -> None:
        settings = {"bootstrap.servers": broker.address, "partitioner": "murmur2_random", "linger.ms": 5}
        self._producer = Producer(settings, logger=quiet)
        self._records, self._speed = records, speed
        self._started = time.monotonic()
        self._next = 0
        self.payments = self.changes = 0

    @property
    def done(self) -> bool:
        """Whether everything has been published."""
        return self._next == len(self._records)

    @property
    def share(self) -> float:
        """How much of it has."""
        return self._next / len(self._records)

    def publish_due(self) -> None:
        """Publishes what is due now."""
        elapsed = (time.monotonic() - self._started) * 1000 * self._speed
        due = self._records[0].published + elapsed
        while not self.done and self._records[self._next].published <= due:
            one = self._records[self._next]
            self._producer.produce(one.topic, one.value, one.key, timestamp=one.published, on_delivery=_delivered)
            self._next += 1
            self.payments += one.topic == PAYMENTS
            self.changes += one.topic != PAYMENTS
        self._producer.poll(0)

    def resume(self) -> None:
        """Goes on from where it is, after a time in which nothing was published."""
        behind = self._records[max(self._next - 1, 0)].published - self._records[0].published
        self._started = time.monotonic() - behind / self._speed / 1000

    def flush(self) -> None:
        """Returns when all that was published is in Kafka."""
        if self._producer.flush(_SECONDS):
            raise RuntimeError("the broker does not answer")


def _delivered(error: KafkaError | None, message: Message) -> None:
    if error is not None:
        raise RuntimeError(f"{message.topic()}: {error}")
