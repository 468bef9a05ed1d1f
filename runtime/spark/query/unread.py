"""What a running query's sources have still to bring: what Spark has found in files and topics, and not handed out yet.

Spark keeps that to itself, so it is read from the fields of its sources, which are private (the same in Spark 4.1 to
4.3; where they are not as expected, `SourceError` says so). Reading the folder or asking the broker ourselves would not
do: only Spark knows what it will bring in this run. Files without a byte do not count, as nothing comes of them, not
even a task.

Not for deciding who waits for whom: that is `vsc.runtime.spark.query.pacer`. Driver only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import unquote

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from vsc.plan.nodes import Plan
from vsc.runtime.errors import SourceError
from vsc.runtime.operators.steps import stages_in_step
from vsc.runtime.spark.formats.source_columns import kafka_part

__all__ = [
    "FileInput", "Input", "KafkaInput", "LakeInput", "Rest", "has_inputs", "private_field", "query_inputs",
    "running_query", "unknown_spark",
]  # fmt: skip

_FILES = "FileStreamSource"
_CLASSES = {
    "files": _FILES, "jdbc": _FILES, "kafka": "KafkaMicroBatchStream",
    "delta": "DeltaSource", "iceberg": "SparkMicroBatchStream",
}  # fmt: skip
"""Spark's class for the source of a connector."""
_LAKES = ("DeltaSource", "SparkMicroBatchStream")
_FIRST = "!"
"""Before all names of files and of keys' partitions."""
_ENTRY = re.compile(r"NewFileEntry\((.*),(\d+),\d+\)")


@dataclass(frozen=True, slots=True)
class Rest:
    """Input still to be read from a source. `next` is the lowest name of a source partition of it, None for nothing.

    `position` changes whenever the source hands something out. `amounts`: how much it is, by unit, as far as Spark
    knows.
    """

    next: str | None
    position: int
    amounts: Mapping[str, float] = field(default_factory=dict)


class Input(Protocol):
    """One of Spark's sources."""

    def rest(self) -> Rest:
        """What is left, once Spark has taken the input of the running epoch. SourceError for an unknown Spark."""


def has_inputs(plan: Plan) -> bool:
    """Whether a query of `plan` has to look at its inputs: to keep them in step, or as a Kafka source needs it."""
    kinds = {node.source.connector.kind for node in plan.sources}
    return bool(stages_in_step(plan)) or "kafka" in kinds


def query_inputs(plan: Plan, spark: SparkSession, ends: bool) -> dict[str, Input | None]:
    """The inputs, by source of `plan`, of the query that this thread runs (in foreachBatch); None for a source
    whose future input is unknown.

    `ends`: the query takes what there is and stops, so nothing is left but what Spark has listed.
    """
    try:
        running = running_query(spark)
        found = running.sources()
        instances = [found.apply(i) for i in range(1, found.size())]  # the first is the control source
        jvm: Any = spark._jvm
        everything = jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.allAvailable()
        kinds = [str(instance.getClass().getSimpleName()) for instance in instances]
    except (Py4JError, TypeError, AttributeError) as error:
        raise unknown_spark() from error
    inputs: dict[str, Input | None] = {}
    for node, instance, kind in zip(plan.sources, instances, kinds, strict=True):
        connector = node.source.connector
        expected = _FILES if connector.keeps_history else _CLASSES.get(connector.kind)
        if expected != (kind if kind in _CLASSES.values() else None):
            raise RuntimeError(f"Spark has a {kind} in the place of source '{node.name}'")
        if kind == _FILES:
            inputs[node.name] = FileInput(instance, not ends and len(plan.sources) > 1)
        elif kind in _LAKES:
            inputs[node.name] = LakeInput(instance, running, kind != "DeltaSource")
        else:
            inputs[node.name] = KafkaInput(instance, running, everything) if kind == "KafkaMicroBatchStream" else None
    return inputs


def running_query(spark: SparkSession) -> Any:
    """Spark's own object of the query that this thread runs (in foreachBatch)."""
    query = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
    return spark._jsparkSession.streams().get(query).streamingQuery()


class FileInput:
    """One `FileStreamSource`. `lists` says whether to look for new files where Spark does so only in the next epoch."""

    def __init__(self, source: Any, lists: bool) -> None:
        self._source = source
        self._lists = lists
        # Whether Spark may have taken the running epoch's files without looking into the folder: from its list, or,
        # in the first epoch of a run, from its log.
        self._unlisted = True
        self._left: _Left | None = None

    def rest(self) -> Rest:
        """See `Input`."""
        try:
            parts = list(self._parts())
            position, size = int(self._source.currentLogOffset()), sum(size for _, size in parts)
            left = {"files": len(parts), "bytes": size}
            return Rest(min((part for part, _ in parts), default=None), position, left)
        except (Py4JError, TypeError, AttributeError) as error:
            raise unknown_spark() from error

    def _parts(self) -> Iterator[tuple[str, int]]:
        """The names of the files that are left, as source partitions, and their bytes."""
        unread = private_field(self._source, "unreadFiles")
        if unread is not None and not unread.isEmpty():
            self._unlisted = True
            return ((part, size) for _, _, part, size in _entries(unread))
        listed = private_field(self._source, "allFilesForTriggerAvailableNow")
        if listed is not None:  # one list for the whole run
            if self._left is None:
                self._left = _Left(listed, self._source.seenFiles())
            return self._left.parts()
        if self._lists and self._unlisted:
            self._unlisted = False
            return _Left(
                _method(self._source, "fetchAllFiles").invoke(self._source, None), self._source.seenFiles()
            ).parts()
        return iter(())


class _Left:
    """The files of a list that have not been handed out. They are, in the order of the list."""

    def __init__(self, listed: Any, seen: Any) -> None:
        self._listed, self._seen = listed, seen
        known = set(str(private_field(seen, "map").keySet().toString())[1:-1].split(", "))
        self._files = [(place, part, size) for place, url, part, size in _entries(listed) if url not in known]
        self._at = 0

    def parts(self) -> Iterator[tuple[str, int]]:
        """Their names as source partitions, and their bytes."""
        while self._at < len(self._files) and not self._is_new(self._files[self._at][0]):
            self._at += 1
        return ((part, size) for _, part, size in self._files[self._at :])

    def _is_new(self, place: int) -> bool:
        entry = self._listed.apply(place)
        return bool(self._seen.isNewFile(entry.path(), entry.timestamp()))


class KafkaInput:
    """One `KafkaMicroBatchStream` of the query `running`; `everything` is Spark's `ReadLimit` without a bound."""

    def __init__(self, source: Any, running: Any, everything: Any) -> None:
        self._source, self._running, self._everything = source, running, everything

    def rest(self) -> Rest:
        """See `Input`."""
        try:
            done = self.ends()
            latest = self._latest()
            left = {part: end - done.get(part, 0) for part, end in latest.items() if end > done.get(part, 0)}
            names = (kafka_part(topic, number) for topic, number in left)
            return Rest(min(names, default=None), sum(done.values()), {"offsets": sum(left.values())})
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
        found = private_field(self._source, "allDataForTriggerAvailableNow") or private_field(
            self._source, "latestPartitionOffsets"
        )
        if found is None:
            # It repeats an epoch and has not asked the broker yet: without that, its own report of the epoch fails.
            end = self._source.deserializeOffset(self._end().json())
            self._source.latestOffset(end, self._everything)
            found = private_field(self._source, "latestPartitionOffsets")
        return _partitions(found)


class LakeInput:
    """One source of Delta Lake or Iceberg of the query `running`. What is left is asked for each time: it is a look
    into the table's log. `parses`: the source takes only offsets that it has parsed."""

    def __init__(self, source: Any, running: Any, parses: bool) -> None:
        self._source, self._running, self._parses = source, running, parses

    def rest(self) -> Rest:
        """See `Input`."""
        try:
            end = self._running.availableOffsets().get(self._source).get()
            text = str(end.json())
            start = self._source.deserializeOffset(text) if self._parses else end
            # With the limit with which Spark asks: with another one, Delta Lake steps behind a commit that was read.
            latest = self._source.latestOffset(start, self._source.getDefaultReadLimit())
            left = latest is not None and json.loads(str(latest.json())) != json.loads(text)
            return Rest(_FIRST if left else None, hash(text))
        except Py4JJavaError:
            raise  # what the format says of a table that it cannot read on
        except (Py4JError, TypeError, ValueError, AttributeError) as error:
            raise unknown_spark() from error


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


def _entries(files: Any) -> list[tuple[int, str, str, int]]:
    """Place in the list, URL, source partition and bytes of each file that is not empty.

    They are read as one text: a look at a single entry takes as long as one at all of them.
    """
    found = []
    for place, line in enumerate(str(files.mkString("\n")).splitlines()):
        match = _ENTRY.fullmatch(line)
        if match is None:
            raise TypeError(f"an entry {line!r} in a list of files")
        url, size = match.groups()
        if int(size):
            # As Spark's column for the file's path has it: without the two slashes of an authority that is not there.
            found.append((place, url, unquote(re.sub(r"^([a-z]+):///", r"\1:/", url)), int(size)))
    return found


def private_field(instance: Any, name: str) -> Any:
    """The value of a field that an object of the JVM keeps to itself."""
    field = instance.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(instance)


def _method(instance: Any, name: str) -> Any:
    method: Any = next((m for m in instance.getClass().getDeclaredMethods() if m.getName() == name), None)
    method.setAccessible(True)
    return method


def unknown_spark() -> SourceError:
    """That Spark does not have what it is asked for."""
    return SourceError(
        "this version of Spark does not report what its sources still have to read",
        "run with pyspark 4.1 to 4.3",
    )
