"""A real Kafka: one or several brokers on loopback, with their own folder and ports; writes and reads topics."""

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

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

from servers.jars import broker_jars
from servers.missing import program
from servers.ports import free_port
from vsc.runtime.spark.connectors.kafka.client import quiet

__all__ = ["Broker", "Record"]

_SETTINGS = """process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners={listeners},CONTROLLER://{controller}
advertised.listeners={listeners}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  user_vsc="right";
log.dirs={folder}/data
num.partitions=2
default.replication.factor={nodes}
min.insync.replicas={insync}
offsets.topic.num.partitions=4
offsets.topic.replication.factor={nodes}
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor={nodes}
transaction.state.log.min.isr={insync}
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
"""
_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"
_SECONDS, _SECONDS_TO_START, _SECONDS_TO_STOP = 60, 180, 20
_SECONDS_TO_SHOW = 10
"""How long the end of a committed transaction may take to become visible in its partitions."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record as a topic holds it. If `partition` is None, the key decides; a `timestamp` of 0 means now."""

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
    """A broker in `folder`, or a cluster of `nodes` brokers. In a cluster, each partition has a replica on every node,
    so losing one node loses no partition. `address` accepts anybody; `guarded` accepts only the user ``vsc`` with the
    password ``right`` (SASL).
    """

    def __init__(self, folder: Path, nodes: int = 1) -> None:
        plain, guarded, controllers = ([f"127.0.0.1:{free_port()}" for _ in range(nodes)] for _ in range(3))
        self.address, self.guarded = ",".join(plain), ",".join(guarded)
        voters = ",".join(f"{node}@{controller}" for node, controller in enumerate(controllers, 1))
        self._nodes = [
            _Node(
                folder if nodes == 1 else folder / str(node), node=node, controller=controllers[node - 1],
                listeners=f"PLAINTEXT://{plain[node - 1]},SASL://{guarded[node - 1]}",
                voters=voters, nodes=nodes, insync=max(1, nodes - 1),
            )
            for node in range(1, nodes + 1)
        ]  # fmt: skip

    def start(self) -> None:
        """Starts the nodes that are not running; waits until all answer and have all records of their partitions."""
        for node in self._nodes:
            node.start()
        deadline = time.monotonic() + _SECONDS_TO_START
        while not self._complete():
            for node in self._nodes:
                node.check()
            assert time.monotonic() < deadline, "the broker does not answer"
            time.sleep(0.1)

    def stop(self) -> None:
        """Shuts a single broker down cleanly, or kills it if that takes long, as it can just after a start. A cluster
        is killed: its last nodes would wait for the others."""
        for node in self._nodes:
            node.end(signal.SIGTERM if len(self._nodes) == 1 else signal.SIGKILL)

    def kill(self, node: int = 0) -> None:
        """Ends one node with ``kill -9``."""
        self._nodes[node].end(signal.SIGKILL)

    def create(self, topic: str, partitions: int = 2, **settings: str) -> None:
        """Creates a topic, and waits until a broker tells of it: the controller, which answers, knows it earlier."""
        admin = self._admin()  # must outlive its answer
        admin.create_topics([NewTopic(topic, partitions, len(self._nodes), config=settings)])[topic].result(_SECONDS)
        self._wait_for(topic, there=True)

    def recreate(self, topic: str, partitions: int = 2) -> None:
        """Deletes a topic with its records, and creates one of the same name."""
        admin = self._admin()
        admin.delete_topics([topic], operation_timeout=_SECONDS)[topic].result(_SECONDS)
        self._wait_for(topic, there=False)
        self.create(topic, partitions)

    def grow(self, topic: str, partitions: int) -> None:
        """Gives a topic more partitions."""
        admin = self._admin()
        admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(_SECONDS)

    def write(self, topic: str, records: Iterable[Record]) -> None:
        """Appends records, in order."""
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
        """All records of a topic, by partition and offset. With `committed`, only committed ones.

        A commit returns before its markers are in the topic's partitions, so this waits for open transactions to end:
        `_SECONDS_TO_SHOW` at most, since one may never end."""
        if committed:
            self._wait_for_markers(topic)
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

    def _wait_for(self, topic: str, there: bool) -> None:
        """Waits until the brokers tell of a topic, or no longer do."""
        admin, deadline = self._admin(), time.monotonic() + _SECONDS
        while (topic in admin.list_topics(timeout=_SECONDS).topics) != there:
            assert time.monotonic() < deadline, f"the topic {topic} is still {'missing' if there else 'there'}"
            time.sleep(0.05)

    def _wait_for_markers(self, topic: str) -> None:
        admin, deadline = self._admin(), time.monotonic() + _SECONDS_TO_SHOW
        latest = {
            TopicPartition(topic, partition): OffsetSpec.latest()
            for partition in admin.list_topics(topic, _SECONDS).topics[topic].partitions
        }

        def ends(level: IsolationLevel) -> list[int]:
            answers = admin.list_offsets(latest, isolation_level=level)
            return [answers[place].result(_SECONDS).offset for place in latest]

        while ends(IsolationLevel.READ_COMMITTED) != ends(IsolationLevel.READ_UNCOMMITTED):
            if time.monotonic() > deadline:
                return
            time.sleep(0.02)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address}, logger=quiet)

    def _complete(self) -> bool:
        if not all(node.listens() for node in self._nodes):
            return False
        try:
            found = self._admin().list_topics(timeout=_SECONDS)
        except KafkaException:  # it listens, but is not ready yet
            return False
        partitions = (partition for topic in found.topics.values() for partition in topic.partitions.values())
        return len(found.brokers) == len(self._nodes) and all(len(p.isrs) == len(p.replicas) for p in partitions)


class _Node:
    """The process of a broker."""

    def __init__(self, folder: Path, listeners: str, **settings: object) -> None:
        self._folder, self._address = folder, listeners.split(",")[0].removeprefix("PLAINTEXT://")
        folder.mkdir(parents=True, exist_ok=True)
        self._settings = folder / "server.properties"
        self._settings.write_text(_SETTINGS.format(listeners=listeners, folder=folder, **settings))
        self._java = [program("java", "install Java 17, such as with apt-get install openjdk-17-jre-headless")]
        self._java += ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        self._java += ["-cp", f"{broker_jars()}/*"]
        format = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._settings)]
        subprocess.run([*self._java, *format], check=True, capture_output=True, timeout=_SECONDS)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, unless it is running."""
        if self._process is None:
            with (self._folder / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    [*self._java, "kafka.Kafka", str(self._settings)], stdout=log, stderr=subprocess.STDOUT,
                    start_new_session=True,
                )  # fmt: skip

    def check(self) -> None:
        """Raises AssertionError if it has ended by itself."""
        assert self._process is None or self._process.poll() is None, (self._folder / "log").read_text()[-3000:]

    def listens(self) -> bool:
        """Whether something answers on its port."""
        host, port = self._address.split(":")
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex((host, int(port))) == 0

    def end(self, number: int) -> None:
        """Sends it a signal that ends it, and waits for the end."""
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
