"""A source as the running query has it, and what it has still to bring: what Spark has found, and not handed out yet.

Spark keeps that to itself, so it is read from the fields of its sources, which are private (the same in Spark 4.1 to
4.3; where they are not as expected, `SourceError` says so). Reading the folder or asking the broker ourselves would not
do: only Spark knows what it will bring in this run.

Not for deciding who waits for whom: that is `query.pacer`. Driver only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from vsc.runtime.errors import SourceError

__all__ = ["Backlog", "Input", "SparkSource", "private_field", "running_query", "unknown_spark"]

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
    """Spark's object of one source of the query `running`; `everything` is its `ReadLimit` without a bound.

    `lists` says whether to look for new input where Spark does so only in the next epoch.
    """

    instance: Any
    running: Any
    everything: Any
    lists: bool


def running_query(spark: SparkSession) -> Any:
    """Spark's own object of the query that this thread runs (in foreachBatch)."""
    query = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
    return spark._jsparkSession.streams().get(query).streamingQuery()


def private_field(instance: Any, name: str) -> Any:
    """The value of a field that an object of the JVM keeps to itself."""
    field = instance.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(instance)


def unknown_spark() -> SourceError:
    """That Spark does not have what it is asked for."""
    return SourceError(
        "this version of Spark does not report what its sources still have to read",
        "run with pyspark 4.0 to 4.3",
    )
