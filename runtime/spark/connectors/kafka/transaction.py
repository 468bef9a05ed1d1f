"""One task's transaction for one epoch, with librdkafka: the records, and beside them that the epoch was written.

Guarantees: after `finish` the records of the epoch are in the topic once, whatever happened to earlier attempts; before
it, no reader of committed records sees any of them. An attempt that is overtaken by another one fails.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import repeat
from operator import length_hint
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from vsc.runtime.errors import SinkError
from vsc.runtime.records import Int64s
from vsc.runtime.spark.connectors.kafka.client import quiet
from vsc.runtime.spark.connectors.kafka.epochs import (
    SECONDS,
    EpochReader,
    Ledger,
    Note,
    OpenTransaction,
    epoch_partitions,
)

__all__ = ["Transaction", "forget_after"]

_DEFAULTS = {
    "partitioner": "murmur2_random",  # as Java's clients place keys
    "transaction.timeout.ms": "300000",
    "linger.ms": "20",
    "queue.buffering.max.messages": "100000",
    "compression.type": "lz4",
}
_POLL_EVERY = 8192
_ENDS = 10
"""How many seconds may pass until the end of a transaction is seen, once Kafka has said that none is open."""
_BY_KEY = (repeat(-1), repeat(None), repeat(None))
"""Arguments of `Producer.produce`, by place: no partition, and no call-back of a record's own, which has two names."""
_COMES_BACK = {
    "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "CONCURRENT_TRANSACTIONS",
    "_TRANSPORT", "_TIMED_OUT", "_WAIT_COORD", "NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE",
    "OFFSET_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_PARTITION", "_UNKNOWN_TOPIC", "_ALL_BROKERS_DOWN",
    "_DESTROY_BROKER", "_NODE_UPDATE", "_UNKNOWN_BROKER",
}  # fmt: skip
_HELP = {
    "INVALID_TIMESTAMP": "the topic refuses event times so far from now: see its message.timestamp.before.max.ms and "
    "message.timestamp.after.max.ms",
    "MSG_SIZE_TOO_LARGE": "raise 'kafka.message.max.bytes' of the sink, and max.message.bytes of the topic",
    "INVALID_TRANSACTION_TIMEOUT": "lower 'kafka.transaction.timeout.ms', or raise transaction.max.timeout.ms of the "
    "broker",
    "_FENCED": "another run writes for the same checkpoint: stop one of them",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "allow this user to write with transactional ids that begin with vsc-",
    "GROUP_AUTHORIZATION_FAILED": "allow this user to use consumer groups whose names begin with vsc-",
    "INVALID_RECORD": "a topic with cleanup.policy=compact takes no record without a key: give each one (`rekey`), or "
    "write to a topic that is not compacted",
    "TOPIC_AUTHORIZATION_FAILED": "allow this user to write the topic, and to read and write topics that begin with "
    "vsc-",
}
T = TypeVar("T")
_log = logging.getLogger(__name__)


class Transaction:
    """The transaction for an epoch of one task (`partition`) of the sink called `name`. SinkError if Kafka does not
    take it. Inside the context, no earlier attempt of the task can write any more.

    `loose`: records may have no time (0), or one that has not come yet, which brokers refuse: they get the time at
    which they are written.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        topic: str,
        name: str,
        partition: int,
        place: str,
        epoch: int,
        loose: bool = False,
    ) -> None:
        self._loose = loose
        self._topic, self._name, self._partition, self._place, self._epoch = topic, name, partition, place, epoch
        self._servers = settings["bootstrap.servers"]
        self._refused: list[tuple[KafkaError, bytes | None]] = []
        own = {"transactional.id": f"{name}-{partition}", "on_delivery": self._delivered}
        only = {"delivery.report.only.error": True}
        self._producer = Producer({**_DEFAULTS, **settings, **own, **only}, logger=quiet)
        self._new_reader = partial(EpochReader, settings, name, partition)
        self._epochs = self._new_reader()
        self._last: Note | None = None
        self._ledger = Ledger()
        self._open = False

    def __enter__(self) -> Self:
        self._asked(lambda: self._producer.init_transactions(SECONDS))
        try:
            self._last = self._last_note()
        finally:
            self._epochs.close()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._open:
            with contextlib.suppress(KafkaException):  # what is still open is ended by whoever comes next
                self._producer.abort_transaction(5)

    def begin(self) -> None:
        """Opens it; but where the epoch was written before, its records will only be compared with those."""
        written = -1 if self._last is None else self._last.epoch
        if written > self._epoch:
            raise self._error(
                f"epoch {written} is written: the checkpoint, at epoch {self._epoch}, is an older copy",
                "restore the newer checkpoint; or go back with --back-to, and results come again",
            )
        if written < self._epoch:
            self._begin()

    def add(self, records: pa.RecordBatch) -> None:
        """Appends records, in their order: key and value (binary, either may be null), time in ms and, if there are
        any, headers, an array of keys and values."""
        self._ledger.add(records)
        if self._open:
            for start in range(0, records.num_rows, _POLL_EVERY):
                self._append(records.slice(start, _POLL_EVERY))
                self._poll(0)

    def finish(self) -> Ledger:
        """Commits the records and the epoch, unless they are there; tells what they are."""
        content = str(self._ledger)
        if self._open:
            self._commit(Note(self._epoch, content))
        elif self._last is not None and self._last.content != content:
            raise self._error(
                f"epoch {self._epoch} was written before with other content ({self._last.content}, now {content})",
                "its input, the options or vsc itself have changed in between: restore what was there; after an "
                "update of vsc, let the release before it end this epoch",
            )
        return self._ledger

    def forget_later(self) -> None:
        """Later epochs count as not written."""
        if self._last is not None and self._last.epoch > self._epoch:
            self._begin()
            self._commit(Note(self._epoch))

    def _last_note(self) -> Note | None:
        """What is written. No transaction of this task is open now, but Kafka may have lost the end of one. If Spark
        has its epoch as done, it was to be committed, and that is done here: the end of a transaction is also that of
        an earlier one of the same transactional id in the same partition, whatever Kafka knows of it."""
        deadline, again = time.monotonic() + _ENDS, False
        while True:
            try:
                return self._asked(self._read)
            except OpenTransaction as found:
                note = found.note
                if time.monotonic() < deadline:
                    time.sleep(0.1)
                elif again or note is None or note.epoch >= self._epoch:
                    raise self._hanging(found) from None
                else:
                    _log.warning(
                        "%s: Kafka has lost the end of the transaction of epoch %d, which is committed again; its "
                        "records show when the next ones of vsc partition %d follow them",
                        self._place, note.epoch, self._partition,
                    )  # fmt: skip
                    self._begin()
                    self._commit(note)
                    deadline, again = time.monotonic() + _ENDS, True

    def _read(self) -> Note | None:
        """One try. Once a broker that has just started has denied the partition, the reader keeps that answer,
        so the next try uses a new reader."""
        try:
            return self._epochs.last()
        except KafkaException:
            self._epochs.close()
            self._epochs = self._new_reader()
            raise

    def _hanging(self, found: OpenTransaction) -> SinkError:
        """Nobody can tell how it was to end."""
        epoch = self._epoch if found.note is None else found.note.epoch
        return self._error(
            f"Kafka has lost the end of a transaction, so it is not known whether epoch {epoch} is written",
            f"if the topic {self._topic!r} has none of it, drop it: kafka-transactions.sh --bootstrap-server "
            f"{self._servers} abort --topic {self._name} --partition {self._partition} --start-offset {found.offset}, "
            f"and the same for what find-hanging --max-transaction-timeout 1 --topic {self._topic} lists; "
            "docs/connectors/kafka.md (Known defect) has the rest",
        )

    def _begin(self) -> None:
        self._asked(self._producer.begin_transaction)
        self._open = True

    def _commit(self, note: Note) -> None:
        self._note(note)
        self._asked(lambda: self._producer.commit_transaction(SECONDS))
        self._open = False

    def _append(self, records: pa.RecordBatch) -> None:
        """Hands records over without a step of Python's for each: that is what costs."""
        keys, values = (records.column(i).to_pylist() for i in range(2))
        times = self._times(records.column(2).to_numpy()).tolist()
        headers = [] if records.num_columns == 3 else [list(map(_headers, records.column(3).to_pylist()))]
        done = 0
        while done < len(keys):
            left = iter(keys[done:])
            columns = [repeat(self._topic), values[done:], left, *_BY_KEY, times[done:]]
            columns += [one[done:] for one in headers]
            try:
                deque(map(self._producer.produce, *columns), 0)
                return
            except BufferError:
                done = len(keys) - length_hint(left) - 1  # without the one that it was raised for
                self._poll(0.1)
            except KafkaException as error:
                raise self._failed(error, keys[len(keys) - length_hint(left) - 1]) from error

    def _times(self, times: Int64s) -> Int64s:
        """As librdkafka takes them: 0 means now."""
        return np.where(times > time.time() * 1000, 0, times) if self._loose else np.maximum(times, 1)

    def _note(self, note: Note) -> None:
        while True:
            try:
                self._producer.produce(self._name, note.encoded(), str(self._partition).encode(), self._partition)
                return
            except BufferError:
                self._poll(0.1)
            except KafkaException as error:
                raise self._failed(error) from error

    def _asked(self, request: Callable[[], T]) -> T:
        """The answer to a request, tried again while a broker comes back."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                return request()
            except KafkaException as error:
                with contextlib.suppress(KafkaException):  # a fatal one is raised again
                    self._producer.poll(0)
                self._check()
                what = error.args[0]
                if not (what.retriable() or what.name() in _COMES_BACK) or time.monotonic() > deadline:
                    raise self._failed(error) from error
                time.sleep(0.1)

    def _poll(self, seconds: float) -> None:
        """Lets librdkafka report. Raises SinkError for what it reports."""
        try:
            self._producer.poll(seconds)
        except KafkaException as error:
            raise self._failed(error) from error
        self._check()

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        """For librdkafka: called for records that could not be written."""
        if error is not None:
            self._refused.append((error, message.key() if message.topic() == self._topic else None))

    def _check(self) -> None:
        """Raises SinkError for the first record that Kafka refused."""
        for error, key in self._refused:
            if not error.name().startswith("_PURGE"):  # those that went with it
                raise self._failed(KafkaException(error), key)

    def _failed(self, error: KafkaException, key: bytes | None = None) -> SinkError:
        what = error.args[0]
        of = "" if key is None else f" the record of key {key[:80].decode(errors='replace')!r} of"
        message = f"Kafka did not take{of} epoch {self._epoch}: {what.str()}"
        return self._error(message, _HELP.get(what.name(), "the same command continues with this epoch"))

    def _error(self, message: str, help: str) -> SinkError:
        return SinkError(f"{self._place}: {message}", help)


def _headers(found: Sequence[Mapping[str, Any]] | None) -> list[tuple[str, bytes | None]] | None:
    """The headers of a record as librdkafka takes them."""
    return [(one["key"], one["value"]) for one in found] if found else None


def forget_after(settings: Mapping[str, str], name: str, epoch: int, place: str) -> None:
    """For all tasks of the sink called `name`: epochs after that one count as not written."""
    try:
        partitions = epoch_partitions(settings, name)
    except KafkaException as error:
        raise SinkError(f"{place}: Kafka does not forget the epochs after {epoch}: {error.args[0].str()}") from error
    for partition in range(partitions):
        with Transaction(settings, name, name, partition, place, epoch) as one:
            one.forget_later()
