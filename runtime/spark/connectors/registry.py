"""The connectors by kind, and the sources and sinks of a run, which they open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from pyspark.sql import SparkSession

from vsc.plan.nodes import Node, Plan, Sink
from vsc.runtime.errors import SinkError, SourceError
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.builtin import Console, MemorySink, MemorySource, Noop, Rate
from vsc.runtime.spark.connectors.delta.connector import DeltaSource, DeltaTarget
from vsc.runtime.spark.connectors.files.connector import FilesSource, FilesTarget
from vsc.runtime.spark.connectors.iceberg.connector import IcebergSource, IcebergTarget
from vsc.runtime.spark.connectors.kafka.connector import KafkaSource, KafkaTarget
from vsc.runtime.spark.connectors.position import SourceNotes
from vsc.runtime.spark.connectors.postgres.connector import PostgresSource, PostgresTarget
from vsc.runtime.spark.connectors.refusals import keeps_refused
from vsc.runtime.spark.connectors.sink import EpochSink, OpenSink
from vsc.runtime.spark.connectors.source import OpenSource

__all__ = ["CONNECTORS", "Ends", "open_sink", "open_source"]

CONNECTORS: Mapping[str, tuple[type[OpenSource], type[OpenSink]]] = {
    "files": (FilesSource, FilesTarget),
    "kafka": (KafkaSource, KafkaTarget),
    "delta": (DeltaSource, DeltaTarget),
    "iceberg": (IcebergSource, IcebergTarget),
    "jdbc": (PostgresSource, PostgresTarget),
    "rate": (Rate, OpenSink),
    "console": (OpenSource, Console),
    "noop": (OpenSource, Noop),
    "memory": (MemorySource, MemorySink),
}
"""What opens a source and a sink of each kind."""


def open_source(plan: Plan, node: Node) -> OpenSource:
    """A source of `plan`. SourceError for an unknown connector."""
    kind = node.source.connector.kind
    if kind not in CONNECTORS:
        raise SourceError(f"{Options.of_source(node).place} reads from {kind!r}, an unknown connector")
    return CONNECTORS[kind][0](plan, node)


def open_sink(plan: Plan, sink: Sink) -> OpenSink:
    """A sink of `plan`. SinkError for an unknown connector."""
    kind = sink.connector.kind
    if kind not in CONNECTORS:
        raise SinkError(f"{Options.of_sink(sink).place} writes to {kind!r}, an unknown connector")
    return CONNECTORS[kind][1](plan, sink)


class Ends:
    """The sources and sinks of a `plan` whose variables are resolved, opened for one run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.sources = [open_source(plan, node) for node in plan.sources]
        self.sinks = [open_sink(plan, sink) for sink in plan.sinks]

    def check(self, default_local: bool) -> None:
        """Refuses what can be refused without Spark: options, local paths that do not exist. `default_local`: paths
        without a scheme are on this machine."""
        for source in self.sources:
            source.check(default_local)
        for sink in self.sinks:
            sink.check()

    def reach(self, fresh: bool, default_local: bool) -> None:
        """Refuses, without Spark, what is seen of the sinks by asking for them, and of the sources if the checkpoint is
        `fresh`; changes nothing."""
        for source in self.sources if fresh else ():
            source.reach()
        for sink in self.sinks:
            sink.reach(fresh, default_local)

    def look(self, spark: SparkSession) -> None:
        """Refuses what is seen of the sources by asking for them."""
        for source in self.sources:
            source.look(spark)

    def keep_in(self, folder: str) -> None:
        """Gives each source its own folder in that one of the checkpoint."""
        for source in self.sources:
            source.kept = f"{folder}/{source.node.source.rank}"

    def catch_up(self, spark: SparkSession, checkpoint: Files, offset: Callable[[int], str]) -> None:
        """Prepares the sources of a checkpoint that goes on. `offset` gives how far the one of a number has been
        read."""
        for source in self.sources:
            source.catch_up(spark, SourceNotes(checkpoint, source.number), partial(offset, source.number))

    def take(self, spark: SparkSession, begun: bool) -> None:
        """Takes what is read of sources only once; for `begun` see `OpenSource.take`."""
        for source in self.sources:
            source.take(spark, begun)

    def begin(self, spark: SparkSession, checkpoint: str, ancestors: tuple[str, ...] = ()) -> list[EpochSink]:
        """What writes epochs; `checkpoint` is the checkpoint's id, `ancestors` are those that it goes on from."""
        sinks = [sink.begin(spark, checkpoint) for sink in self.sinks]
        for sink in sinks:
            sink.keeps_refused = keeps_refused(self.plan, sink.id)
            sink.ancestors = ancestors
        return sinks

    def empty(self, spark: SparkSession, read: Mapping[str, int]) -> Iterator[str]:
        """A line for each source that had nothing to bring; only those of which no rows were `read` are asked."""
        for source in self.sources:
            why = None if read.get(source.node.name) else source.nothing_there(spark)
            if why is not None:
                yield f"{source.place} has nothing to read: {why}"
