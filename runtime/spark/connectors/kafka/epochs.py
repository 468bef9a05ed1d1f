"""Which epochs a sink has written to Kafka: a topic of vsc's own, with a partition for each task of the sink.

A task's transaction ends with a note of its epoch in the task's partition, so Kafka takes the records and the note or
neither. Nobody else writes to that partition: once an earlier attempt has been ended (`init_transactions`), its last
committed record says what is written. A consumer group's offset would not do: after a broker was killed, Kafka 4.3 may
take it for pending for ever, and it forgets idle groups.

The note tells in a few bytes what the task has written (`Ledger`): the same records give the same ledger, however they
are cut into batches.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from vsc.runtime.errors import SinkError
from vsc.runtime.spark.connectors.kafka.client import common, quiet
from vsc.runtime.values import text_bytes

__all__ = ["SECONDS", "EpochReader", "Ledger", "Note", "OpenTransaction", "create_epochs", "epoch_partitions"]

SECONDS = 60
"""How long one request may take, with everything that librdkafka tries again."""
_SETTINGS = {"cleanup.policy": "compact", "segment.bytes": str(16 << 20)}
_FIRST_SPAN, _WIDER = 2, 16
_NULL = -1
"""The length of a key or a value that is null."""


@dataclass(frozen=True, slots=True)
class Note:
    """That an epoch is written, and the check sum of its records; none where a run has gone back to that epoch."""

    epoch: int
    content: str = ""

    def encoded(self) -> bytes:
        """The value of the record."""
        return json.dumps({"epoch": self.epoch, "content": self.content}).encode()

    @classmethod
    def of(cls, value: bytes) -> Self:
        """What `encoded` has made."""
        return cls(**json.loads(value))


class OpenTransaction(Exception):
    """A transaction with a `note` that begins at `offset` has not ended."""

    def __init__(self, note: Note | None, offset: int) -> None:
        super().__init__("a transaction on the topic of its epochs has not ended")
        self.note, self.offset = note, offset


class EpochReader:
    """Reads the notes of one task, of the sink called `name`."""

    def __init__(self, settings: Mapping[str, str], name: str, partition: int) -> None:
        self._topic, self._partition, self._settings = name, partition, settings
        self._consumer = self._made("read_committed")

    def last(self) -> Note | None:
        """The last note. KafkaException or OpenTransaction, as long as it is not known."""
        low, end = self._consumer.get_watermark_offsets(self._at(), SECONDS)
        span = _FIRST_SPAN  # the last record, and the mark of its transaction
        while True:
            start = max(low, end - span)
            found = self._read(self._consumer, start)
            if found is not None or start == low:
                break
            span *= _WIDER
        if self._consumer.get_watermark_offsets(self._at(), cached=True)[1] > end:
            raise OpenTransaction(self._uncommitted(end), end)
        return found

    def close(self) -> None:
        """Ends the connection."""
        self._consumer.close()

    def _made(self, level: str) -> Consumer:
        own = {"group.id": self._topic, "enable.auto.commit": False, "enable.partition.eof": True}
        own |= {"isolation.level": level, "auto.offset.reset": "error"}
        return Consumer({**common(self._settings), **own}, logger=quiet)

    def _uncommitted(self, start: int) -> Note | None:
        """The last note from an offset on, of a transaction that may be open."""
        consumer = self._made("read_uncommitted")
        try:
            return self._read(consumer, start)
        finally:
            consumer.close()

    def _read(self, consumer: Consumer, start: int) -> Note | None:
        """The last note from an offset on that `consumer` sees."""
        consumer.assign([self._at(start)])
        last: bytes | None = None
        while True:
            message = consumer.poll(SECONDS)
            if message is None:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))
            error = message.error()
            if error is None:
                last = message.value()
            elif error.code() == KafkaError._PARTITION_EOF:
                return None if last is None else Note.of(last)
            else:
                raise KafkaException(error)

    def _at(self, offset: int = 0) -> TopicPartition:
        return TopicPartition(self._topic, self._partition, offset)


def create_epochs(settings: Mapping[str, str], name: str, partitions: int, place: str) -> None:
    """Makes the topic of the sink called `name`, unless it is there. Raises SinkError if it cannot be used."""
    admin = AdminClient(common(settings), logger=quiet)
    try:
        existing = _partitions(admin, name)
        if existing == 0:
            new = NewTopic(name, partitions, -1, config=_SETTINGS)
            admin.create_topics([new], operation_timeout=SECONDS, request_timeout=SECONDS)[name].result()
            return
    except KafkaException as error:
        raise SinkError(
            f"{place}: the topic {name!r}, in which vsc notes its epochs, cannot be made: {error.args[0].str()}",
            "allow this user to create topics that begin with vsc-; "
            f"or create it, with {partitions} partitions and cleanup.policy=compact",
        ) from error
    if existing != partitions:
        raise SinkError(
            f"{place}: the topic {name!r}, in which vsc notes its epochs, has {existing} partitions, not {partitions}",
            f"give it {partitions} partitions and cleanup.policy=compact",
        )


def epoch_partitions(settings: Mapping[str, str], name: str) -> int:
    """How many partitions the topic of the sink called `name` has; 0 if it is not there. KafkaException."""
    return _partitions(AdminClient(common(settings), logger=quiet), name)


def _partitions(admin: AdminClient, name: str) -> int:
    asked = admin.describe_topics(TopicCollection([name]), request_timeout=SECONDS)[name]
    try:
        return len(asked.result().partitions)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return 0
        raise


@dataclass(slots=True)
class Ledger:
    """How many records an epoch has for a task, and a check sum of each of the streams of bytes that they are made of:
    keys, their lengths, values, their lengths, times, headers."""

    records: int = 0
    checks: list[int] = field(default_factory=lambda: [0] * 6)

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes in records: key and value (binary), time in ms and, if there are any, headers."""
        parts = [*_bytes(batch.column(0)), *_bytes(batch.column(1)), batch.column(2).to_numpy()]
        parts.append(b"" if batch.num_columns == 3 else b"".join(_headers(batch.column(3), self.records)))
        self.checks = [zlib.crc32(part, check) for part, check in zip(parts, self.checks, strict=True)]
        self.records += batch.num_rows

    def __str__(self) -> str:
        checks = hashlib.blake2b(struct.pack("<6I", *self.checks), digest_size=8)
        return f"{self.records}:{checks.hexdigest()}"


def _bytes(column: pa.Array) -> tuple[memoryview, np.ndarray]:
    """The bytes of a binary column, one value after the other, and their lengths."""
    lengths = pc.fill_null(pc.binary_length(column), _NULL).to_numpy(zero_copy_only=False)
    return text_bytes(column.drop_null().cast(pa.binary())), lengths


def _headers(column: pa.Array, first: int) -> Iterator[bytes]:
    for place, headers in enumerate(column.to_pylist(), first):
        if headers:
            yield repr((place, [(one["key"], one["value"]) for one in headers])).encode()
