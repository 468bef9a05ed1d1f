"""The backlog of a Kafka source, and the offsets of the running epoch."""

from __future__ import annotations

import json
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from vsc.runtime.spark.connectors.spark_source import Backlog, Input, SparkSource, private_field, unknown_spark
from vsc.runtime.spark.formats.source_columns import kafka_part

__all__ = ["KafkaInput"]


class KafkaInput(Input):
    """One `KafkaMicroBatchStream`."""

    def __init__(self, source: SparkSource) -> None:
        self._source, self._running, self._everything = source.instance, source.running, source.everything

    def backlog(self) -> Backlog:
        """See `Input`."""
        try:
            done = self.ends()
            latest = self._latest()
            left = {part: end - done.get(part, 0) for part, end in latest.items() if end > done.get(part, 0)}
            names = (kafka_part(topic, number) for topic, number in left)
            return Backlog(min(names, default=None), sum(done.values()), {"offsets": sum(left.values())})
        except (Py4JError, TypeError, ValueError, AttributeError) as error:
            raise unknown_spark() from error

    def begins(self) -> dict[tuple[str, int], int]:
        """The offsets at which the running epoch begins, by topic and partition."""
        try:
            before = self._running.committedOffsets().get(self._source)
            return _by_partition(before.get() if before.isDefined() else self._source.initialOffset())
        except (Py4JError, TypeError, ValueError, AttributeError) as error:
            raise unknown_spark() from error

    def ends(self) -> dict[tuple[str, int], int]:
        """The offsets at which it ends."""
        return _by_partition(self._end())

    def _end(self) -> Any:
        return self._running.availableOffsets().get(self._source).get()

    def _latest(self) -> dict[tuple[str, int], int]:
        """Where Spark saw the topic end: in a run that ends, once for the whole of it."""
        offsets = private_field(self._source, "allDataForTriggerAvailableNow") or private_field(
            self._source, "latestPartitionOffsets"
        )
        if offsets is None:
            # It repeats an epoch and has not asked the broker yet: without that, its own report of the epoch fails.
            end = self._source.deserializeOffset(self._end().json())
            self._source.latestOffset(end, self._everything)
            offsets = private_field(self._source, "latestPartitionOffsets")
        return _partitions(offsets)


def _by_partition(offset: Any) -> dict[tuple[str, int], int]:
    """An offset of Spark's for Kafka."""
    topics = json.loads(str(offset.json()))
    return {(topic, int(n)): int(offset) for topic, parts in topics.items() for n, offset in parts.items()}


def _partitions(offsets: Any) -> dict[tuple[str, int], int]:
    """A map of Scala's, of topic partitions to numbers."""
    found = {}
    for line in str(offsets.mkString("\n")).splitlines():
        part, _, offset = line.partition(" -> ")
        topic, _, number = part.rpartition("-")
        found[topic, int(number)] = int(offset)
    return found
