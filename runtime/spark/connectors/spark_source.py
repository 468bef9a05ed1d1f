"""A source as the running query has it, and what it has still to bring: what Spark has found, and not handed out yet.

Spark keeps that to itself, so it is read from the fields of its sources, which are private (the same in Spark 4.1 to
4.3; where they are not as expected, `SourceError` says so). Reading the folder or asking the broker ourselves would not
do: only Spark knows what it will bring in this run.

Not for deciding who waits for whom: that is `query.pacer`. Driver only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from vsc.runtime.errors import SourceError
from vsc.runtime.spark.base.java import java_class

__all__ = [
    "Backlog",
    "Input",
    "Offsets",
    "SparkSource",
    "private_field",
    "private_reader",
    "running_query",
    "running_sources",
    "unknown_spark",
]

Offsets = Mapping[tuple[str, int], int]
"""By topic and partition."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Input still to be read from a source. `next` is the lowest name of a source partition of it, None for nothing.

    `position` changes whenever the source hands something out. `amounts`: how much it is, by unit, as far as Spark
    knows.
    """

    next: str | None
    position: int
    amounts: Mapping[str, float] = field(default_factory=dict)


class Input:
    """One of Spark's sources."""

    def backlog(self) -> Backlog:
        """What is left, once Spark has taken the input of the running epoch. SourceError for an unknown Spark."""
        raise NotImplementedError

    def begins(self) -> Offsets | None:
        """The offsets at which the running epoch begins; None for a source that has none."""
        return None

    def ends(self) -> Offsets | None:
        """The offsets at which it ends; None for a source that has none."""
        return None


@dataclass(frozen=True, slots=True)
class SparkSource:
    """Spark's object of one source of the query `running`, and the `name` of its class; `everything` is its `ReadLimit`
    without a bound.

    `lists` says whether to look for new input where Spark does so only in the next epoch.
    """

    instance: Any
    name: str
    running: Any
    everything: Any
    lists: bool


def running_query(spark: SparkSession) -> Any:
    """Spark's own object of the query that this thread runs (in foreachBatch)."""
    query = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
    return spark._jsparkSession.streams().get(query).streamingQuery()


def running_sources(spark: SparkSession, lists: bool) -> list[SparkSource]:
    """Spark's sources of the query that this thread runs, without the first, the control source. `lists`: see
    `SparkSource`."""
    try:
        running = running_query(spark)
        found = running.sources()
        limits = java_class(spark, "org.apache.spark.sql.connector.read.streaming.ReadLimit")
        everything = limits.allAvailable()
        instances = [found.apply(i) for i in range(1, found.size())]
        names = [str(instance.getClass().getSimpleName()) for instance in instances]
    except (Py4JError, TypeError, AttributeError) as error:
        raise unknown_spark() from error
    return [SparkSource(one, name, running, everything, lists) for one, name in zip(instances, names, strict=True)]


def private_field(instance: Any, name: str) -> Any:
    """The value of a field that an object of the JVM keeps to itself."""
    return private_reader(instance, name)()


def private_reader(instance: Any, name: str) -> Callable[[], Any]:
    """What gives the value of such a field whenever it is called, each time by one call of the JVM."""
    field = instance.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return lambda: field.get(instance)


def unknown_spark() -> SourceError:
    """That Spark does not have what it is asked for."""
    return SourceError(
        "this version of Spark does not report what its sources still have to read",
        "run with pyspark 4.0 to 4.3",
    )
