"""A real Kafka broker: one node on loopback, its own folder and ports; and its topics, written and read."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from servers.jars import broker_jars
from servers.missing import program
from servers.ports import free_port
from vsc.runtime.spark.connectors.kafka_client import quiet

__all__ = ["Broker", "Record"]

_SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={listeners},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={listeners}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  user_vsc="right";
log.dirs={folder}/data
num.partitions=2
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
"""
_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"
_SECONDS, _SECONDS_TO_STOP = 60, 20


@dataclass(frozen=True, slots=True)
class Record:
    """A record as a topic holds it; `partition` None lets the key decide, and `timestamp` 0 means now."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    partition: int | None = None
    offset: int = -1
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def json(self) -> Any:
        """The value, parsed."""
        return None if self.value is None else json.loads(self.value)


class Broker:
    """A broker in `folder`. `address` takes anybody, `guarded` only user ``vsc`` with the password ``right`` (SASL)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        plain, guarded, controller = free_port(), free_port(), free_port()
        self.address, self.guarded = f"127.0.0.1:{plain}", f"127.0.0.1:{guarded}"
        listeners = f"PLAINTEXT://{self.address},SASL://{self.guarded}"
        folder.mkdir(parents=True, exist_ok=True)
        self._settings = folder / "server.properties"
        self._settings.write_text(_SETTINGS.format(listeners=listeners, controller=controller, folder=folder))
        self._java = [program("java", "install Java 17, such as with apt-get install openjdk-17-jre-headless")]
        self._java += ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        self._java += ["-cp", f"{broker_jars()}/*"]
        format = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._settings)]
        subprocess.run([*self._java, *format], check=True, capture_output=True, timeout=_SECONDS)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(self._settings)], stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + _SECONDS
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "log").read_text()[-3000:]
            assert time.monotonic() < deadline, "the broker does not answer"

    def stop(self) -> None:
        """Ends it in order; as `kill` does if that takes long, which it can when it has just started."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it as ``kill -9`` does."""
        self._end(signal.SIGKILL)

    def create(self, topic: str, partitions: int = 2, **settings: str) -> None:
        """Makes a topic."""
        admin = self._admin()  # which must outlive its answer
        admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(_SECONDS)

    def grow(self, topic: str, partitions: int) -> None:
        """Gives a topic more partitions."""
        admin = self._admin()
        admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(_SECONDS)

    def write(self, topic: str, records: Iterable[Record]) -> None:
        """Appends records, in their order."""
        settings = {"bootstrap.servers": self.address, "partitioner": "murmur2_random"}
        producer = Producer(settings, logger=quiet)
        failed: list[object] = []
        for one in records:
            producer.produce(
                topic, one.value, one.key, -1 if one.partition is None else one.partition,
                on_delivery=lambda error, _: failed.append(error) if error is not None else None,
                timestamp=one.timestamp, headers=list(one.headers) or None,
            )  # fmt: skip
            producer.poll(0)
        assert producer.flush(_SECONDS) == 0
        assert not failed, failed

    def write_json(self, topic: str, rows: Iterable[tuple[str, Mapping[str, Any] | None, int]]) -> None:
        """Appends (key, value, timestamp), the value as JSON; None is a tombstone."""
        self.write(
            topic,
            (Record(k.encode(), None if v is None else json.dumps(v).encode(), at) for k, v, at in rows),
        )

    def read(self, topic: str, committed: bool = True) -> list[Record]:
        """All records of a topic, by partition and offset; only those that are `committed`, unless told otherwise."""
        level = "read_committed" if committed else "read_uncommitted"
        settings = {"bootstrap.servers": self.address, "group.id": "tests", "isolation.level": level}
        consumer = Consumer({**settings, "enable.partition.eof": True, "enable.auto.commit": False}, logger=quiet)
        try:
            partitions = consumer.list_topics(topic, _SECONDS).topics[topic].partitions
            consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
            found: list[Record] = []
            open_ = set(partitions)
            while open_:
                message = consumer.poll(_SECONDS)
                assert message is not None, "the broker does not answer"
                if message.error() is None:
                    found.append(_record(message))
                else:
                    assert message.error().name() == "_PARTITION_EOF", message.error()
                    open_.discard(message.partition())
        finally:
            consumer.close()
        return sorted(found, key=lambda r: (r.partition or 0, r.offset))

    def delete(self, topic: str, partition: int, before: int) -> None:
        """Deletes the records of a partition before that offset, as retention does."""
        admin, place = self._admin(), TopicPartition(topic, partition, before)
        admin.delete_records([place])[place].result(_SECONDS)

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """The offsets of a consumer group, by topic and partition."""
        admin = self._admin()
        (found,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        return {(of.topic, of.partition): of.offset for of in found.result(_SECONDS).topic_partitions}

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address}, logger=quiet)

    def _answers(self) -> bool:
        host, port = self.address.split(":")
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex((host, int(port))) != 0:
                time.sleep(0.05)
                return False
        return bool(self._admin().list_topics(timeout=_SECONDS).brokers)

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            try:
                self._process.wait(_SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(_SECONDS)
            self._process = None


def _record(message: Message) -> Record:
    place, headers = (message.partition(), message.offset()), tuple(message.headers() or ())
    return Record(message.key(), message.value(), message.timestamp()[1], *place, headers)
