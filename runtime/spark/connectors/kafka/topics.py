"""What a running query asks of Kafka about the topics that it reads: their ids, and the offsets that they hold.

Kafka's client for Python is asked. Where a source has options that only its client for Java understands, that one is:
it is there, since Spark reads with it. Guarantees: a broker may be away for `SECONDS` while it is asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from vsc.runtime.errors import SourceError
from vsc.runtime.spark.base.hadoop import first_line
from vsc.runtime.spark.base.java import java_class
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.kafka.client import PREFIX, admin_for_python, offset_ranges, topic_id

__all__ = ["SECONDS", "JavaTopics", "TopicLook"]

T = TypeVar("T")

SECONDS = 60
_AGAIN_SECONDS = 0.2
_NO_ID = "A" * 22
"""The id that a broker before 2.8 gives."""


class TopicLook:
    """Looks at topics, for a query of `spark`."""

    def __init__(self, spark: SparkSession) -> None:
        self._java = JavaTopics(spark)
        self._admins: dict[Options, Any] = {}

    def id(self, options: Options) -> str | None:
        """The id of a connector's topic: no other topic has it, not even one of the same name. None if the broker has
        no ids. SourceError if Kafka does not tell, or has no such topic."""
        admin = self._admin(options)
        found = _patient(lambda: self._java.id(options) if admin is None else topic_id(options, admin))
        return None if found == _NO_ID else found

    def ranges(self, options: Options) -> Mapping[int, tuple[int, int]]:
        """As `offset_ranges`."""
        admin = self._admin(options)
        return _patient(lambda: self._java.ranges(options) if admin is None else offset_ranges(options))

    def _admin(self, options: Options) -> Any:
        if options not in self._admins:
            self._admins[options] = admin_for_python(options)
        return self._admins[options]


class JavaTopics:
    """What a broker says of topics, asked by Kafka's client for Java."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._admins: dict[Options, Any] = {}

    def id(self, options: Options) -> str:
        """See `TopicLook`; 22 times A if the broker has no ids."""
        return str(self._asked(options, self._described).topicId().toString())

    def ranges(self, options: Options) -> dict[int, tuple[int, int]]:
        """See `TopicLook`. The ends are those of all records, committed or not."""

        def found(admin: Any, topic: str) -> dict[int, tuple[int, int]]:
            parts = [part.partition() for part in self._described(admin, topic).partitions()]
            specs = java_class(self._spark, "org.apache.kafka.clients.admin.OffsetSpec")
            low, high = (self._offsets(admin, topic, parts, spec) for spec in (specs.earliest(), specs.latest()))
            return {part: (low[part], high[part]) for part in parts}

        return self._asked(options, found)

    def _described(self, admin: Any, topic: str) -> Any:
        names = java_class(self._spark, "java.util.Collections").singletonList(topic)
        return admin.describeTopics(names).allTopicNames().get().get(topic)

    def _offsets(self, admin: Any, topic: str, parts: list[int], spec: Any) -> dict[int, int]:
        place_of = java_class(self._spark, "org.apache.kafka.common.TopicPartition")
        places = {part: place_of(topic, part) for part in parts}
        wanted = java_class(self._spark, "java.util.HashMap")()
        for place in places.values():
            wanted.put(place, spec)
        answer = admin.listOffsets(wanted)
        return {part: int(answer.partitionResult(place).get().offset()) for part, place in places.items()}

    def _asked(self, options: Options, ask: Callable[[Any, str], T]) -> T:
        topic = options.text("topic")
        try:
            return ask(self._admin(options), topic)
        except Py4JJavaError as error:
            why = first_line(error)
            raise SourceError(f"{options.place}: Kafka does not tell about the topic {topic!r}: {why}") from error

    def _admin(self, options: Options) -> Any:
        if options not in self._admins:
            settings = java_class(self._spark, "java.util.Properties")()
            settings.put("bootstrap.servers", options.text("bootstrap_servers"))
            for name, value in options.spark.items():
                if name.startswith(PREFIX):
                    settings.put(name.removeprefix(PREFIX), value)
            admins = java_class(self._spark, "org.apache.kafka.clients.admin.Admin")
            self._admins[options] = admins.create(settings)
        return self._admins[options]


def _patient(ask: Callable[[], T]) -> T:
    """Asks until there is an answer, for `SECONDS`: not every broker knows a new topic yet, or one has gone away."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return ask()
        except SourceError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_AGAIN_SECONDS)
