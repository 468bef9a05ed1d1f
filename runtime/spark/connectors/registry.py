"""The connectors by kind, and the sources and sinks of a run, which they open."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from itertools import chain

from pyspark.sql import SparkSession

from vsc.plan.nodes import Node, Plan, Sink
from vsc.runtime.errors import SinkError, SourceError, VscRuntimeError
from vsc.runtime.operators.steps import stages_in_step
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.connectors.builtin import Console, MemorySink, MemorySource, Noop, Rate
from vsc.runtime.spark.connectors.delta.connector import DeltaSource, DeltaTarget
from vsc.runtime.spark.connectors.end import End
from vsc.runtime.spark.connectors.file_input import FILE_SOURCE
from vsc.runtime.spark.connectors.files.connector import FilesSource, FilesTarget
from vsc.runtime.spark.connectors.gone_files import EpochFiles
from vsc.runtime.spark.connectors.iceberg.connector import IcebergSource, IcebergTarget
from vsc.runtime.spark.connectors.kafka.connector import KafkaSource, KafkaTarget
from vsc.runtime.spark.connectors.kafka.failures import kafka_failure
from vsc.runtime.spark.connectors.lake.table import lake_failure
from vsc.runtime.spark.connectors.postgres.connector import PostgresSource, PostgresTarget
from vsc.runtime.spark.connectors.refusals import keeps_refused
from vsc.runtime.spark.connectors.sink import EpochSink, OpenSink
from vsc.runtime.spark.connectors.source import OpenSource
from vsc.runtime.spark.connectors.spark_source import Input, running_sources
from vsc.runtime.spark.exchange.counters import EpochReport

__all__ = ["CONNECTORS", "Ends", "known_failure", "open_sink", "open_source"]

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
_log = logging.getLogger(__name__)


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


def known_failure(text: str, why: str) -> VscRuntimeError | None:
    """What Spark's `text` about a query's failure amounts to, as a connector knows; `why` is its innermost cause."""
    return kafka_failure(text, why) or lake_failure(text, why)


class Ends:
    """The sources and sinks of a `plan` whose variables are resolved, opened for one run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.sources = [open_source(plan, node) for node in plan.sources]
        self.sinks = [open_sink(plan, sink) for sink in plan.sinks]
        self.writers: list[EpochSink] = []
        """What writes the epochs of each sink, once the run has begun."""
        self._epoch_files: EpochFiles | None = None

    @property
    def all(self) -> Iterator[End]:
        """The sources, then the sinks."""
        return chain(self.sources, self.sinks)

    @property
    def places(self) -> dict[str, str]:
        """What each source is called in messages, by its name."""
        return {source.node.name: source.place for source in self.sources}

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

    def look_at_columns(self, spark: SparkSession) -> None:
        """Looks for the declared columns of each source once: when the run starts or, if there is nothing to look at
        then, in the first epoch in which there is. Not if the checkpoint has read rows of it: they may change from then
        on. MissingColumnError."""
        for source in self.sources:
            source.looked_at = source.looked_at or source.look_at_columns(spark)

    def keep_in(self, folder: str) -> None:
        """Gives each source its own folder in that one of the checkpoint."""
        for source in self.sources:
            source.kept = f"{folder}/{source.node.source.rank}"

    def begin(self, spark: SparkSession, checkpoint: str, ancestors: tuple[str, ...] = ()) -> None:
        """Makes the `writers`; `checkpoint` is the checkpoint's id, `ancestors` are those that it goes on from."""
        self.writers = [sink.begin(spark, checkpoint) for sink in self.sinks]
        for writer in self.writers:
            writer.keeps_refused = keeps_refused(self.plan, writer.id)
            writer.ancestors = ancestors

    def prepare(self) -> None:
        """Looks at what is written, and repairs what a crash left. SinkError if it is refused."""
        for writer in self.writers:
            writer.prepare()

    def take_up(self, wrote: Mapping[str, int], whole: bool) -> None:
        """As `prepare`, for a checkpoint that goes on. `wrote`: the newest epoch with rows for a sink, by its id;
        `whole`: they should be there, as the run was not told to go back."""
        for writer in self.writers:
            writer.wrote = wrote.get(writer.id) if whole else None
        self.prepare()
        for writer in self.writers:
            lost = writer.lost()
            if lost is not None and writer.id in wrote:
                _log.warning(lost)

    def identify(self, spark: SparkSession, checkpoint: Checkpoint) -> None:
        """Compares what is read and written with what the checkpoint knows of it: see `End.identify`."""
        identified = [end for end in self.all if end.is_identified]
        if identified:
            known = {} if checkpoint.fresh else checkpoint.identities(SparkLogs(checkpoint.files).newest)
            for end in identified:
                end.identify(spark, checkpoint, known.get(end.name))
        for writer in self.writers:
            writer.settle(checkpoint.files)

    @property
    def identities(self) -> dict[str, str]:
        """The identities that are known, by the names of sources and sinks."""
        return {end.name: end.identity for end in self.all if end.identity is not None}

    def inputs(self, spark: SparkSession, stops: bool) -> Mapping[str, Input | None]:
        """The inputs, by source, of the query that this thread runs (in foreachBatch); None for a source whose future
        input is unknown. None at all of a query that does not have to look at them: as no source needs it, and none
        waits for another one.

        `stops`: the query takes what there is and ends, so nothing is left but what Spark has listed.
        """
        if not stages_in_step(self.plan) and not any(source.needs_input for source in self.sources):
            return {}
        lists = not stops and (len(self.sources) > 1 or self.plan.quiet is not None)
        for source, found in zip(self.sources, running_sources(spark, lists), strict=True):
            if source.source_class not in (None, found.name):
                raise RuntimeError(f"Spark has a {found.name} in the place of source '{source.node.name}'")
            source.run_as(found)
        return {source.node.name: source.running for source in self.sources}

    def check_epoch(self, spark: SparkSession) -> None:
        """Refuses an epoch, before its rows are read, whose files are gone, or lack columns. VscRuntimeError."""
        of_files = [source for source in self.sources if source.source_class == FILE_SOURCE]
        if of_files:
            self._epoch_files = self._epoch_files or EpochFiles(spark)
            self._epoch_files.check((source.number, source.options) for source in of_files)
        self.look_at_columns(spark)

    def check_read(self, report: EpochReport) -> bool:
        """Refuses an epoch that has read other rows than its sources had for it: see `OpenSource.check_read`. Whether
        `identities` are others now."""
        before = self.identities
        for source in self.sources:
            source.check_read(report)
        return self.identities != before

    def empty(self, spark: SparkSession, read: Mapping[str, int]) -> Iterator[str]:
        """A line for each source that had nothing to bring; only those of which no rows were `read` are asked."""
        for source in self.sources:
            why = None if read.get(source.node.name) else source.nothing_there(spark)
            if why is not None:
                yield f"{source.place} has nothing to read: {why}"
