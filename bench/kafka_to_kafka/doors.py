"""How rows get to an application, and its results back: through topics, or through folders of JSON files."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.kafka_to_kafka.rows import Payments, Rates
from servers.kafka import Broker
from vsc.runtime.spark.connectors.kafka.client import quiet

__all__ = ["Door", "Files", "Topics"]

PARTITIONS = 2
_FILE_ROWS = 250_000
"""Two files make an epoch of vsc as large as one from Kafka."""
_SECONDS = 120


class Door(Protocol):
    """Everything published at once becomes visible at once. `results` gives new results, after waiting a moment."""

    def rates(self, rows: Rates) -> None: ...

    def payments(self, rows: Payments) -> None: ...

    def results(self) -> Sequence[bytes]: ...

    def close(self) -> None: ...


class Topics:
    """The application's own topics, with a `prefix`."""

    def __init__(self, broker: Broker, prefix: str) -> None:
        self._prefix = prefix
        for topic in ("rates", "payments", "priced"):
            broker.create(prefix + topic, PARTITIONS)
        servers = {"bootstrap.servers": broker.address}
        producing = {"transactional.id": f"{prefix}feed", "partitioner": "murmur2_random", "compression.type": "lz4"}
        self._producer = Producer({**servers, **producing, "transaction.timeout.ms": 600_000}, logger=quiet)
        self._producer.init_transactions(_SECONDS)
        self._consumer = Consumer({**servers, "group.id": f"{prefix}read", "enable.auto.commit": False}, logger=quiet)
        self._consumer.assign([TopicPartition(f"{prefix}priced", number, 0) for number in range(PARTITIONS)])

    def rates(self, rows: Rates) -> None:
        self._publish("rates", rows.key.tolist(), rows.values(), rows.at.tolist())

    def payments(self, rows: Payments) -> None:
        self._publish("payments", rows.key.tolist(), rows.values(), rows.at.tolist())

    def results(self) -> Sequence[bytes]:
        found = []
        for message in self._consumer.consume(10_000, 0.5):
            if message.error() is not None:
                raise RuntimeError(str(message.error()))
            found.append(message.value() or b"{}")
        return found

    def close(self) -> None:
        self._consumer.close()

    def _publish(self, topic: str, keys: Sequence[int], values: Sequence[str], times: Sequence[int]) -> None:
        self._producer.begin_transaction()
        for key, value, at in zip(keys, values, times, strict=True):
            while True:
                try:
                    self._producer.produce(self._prefix + topic, value, f"key-{key:06d}", timestamp=at)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.commit_transaction(_SECONDS)


class Files:
    """The folders ``rates``, ``payments`` and ``priced`` in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in ("rates", "payments", "priced", "new"):
            (folder / name).mkdir(parents=True)
        self._numbers = itertools.count()
        self._seen: set[Path] = set()

    def rates(self, rows: Rates) -> None:
        self._put("rates", rows.key.tolist(), rows.values(), rows.at.tolist())

    def payments(self, rows: Payments) -> None:
        self._put("payments", rows.key.tolist(), rows.values(), rows.at.tolist())

    def results(self) -> Sequence[bytes]:
        new = [path for path in (self._folder / "priced").glob("[!_.]*") if path not in self._seen]
        self._seen.update(new)
        return [line for path in new for line in path.read_bytes().splitlines()]

    def close(self) -> None:
        """Nothing to close."""

    def _put(self, name: str, keys: Sequence[int], values: Sequence[str], times: Sequence[int]) -> None:
        rows = [f'{{"key":"key-{k:06d}","at":{t},{v[1:]}\n' for k, v, t in zip(keys, values, times, strict=True)]
        written = []
        for begin in range(0, len(rows), _FILE_ROWS):
            path = self._folder / "new" / f"{next(self._numbers):04d}.json"
            path.write_text("".join(rows[begin : begin + _FILE_ROWS]))
            written.append(path)
        for path in written:
            path.rename(self._folder / name / path.name)
